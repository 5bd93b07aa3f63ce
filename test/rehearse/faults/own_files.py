# own_files.py FAULT: sums squares and logs each step. Its state is in two files of its own: "state",
# saved when it is asked to leave, and "log". Each FAULT is a mistake that its author could have
# made; "none" is the corrected program, and so is "slow-to-end".
import os
import signal
import sys
import time

FAULT = sys.argv[1]
STEPS = 400 if FAULT == "slow-to-end" else 40  # more, so that it is seldom interrupted at its start

asked = False


def ask(_number, _frame):
    global asked
    asked = True


def save(step, total, log_bytes):
    """The lines are in this order, so that a file of which the end is missing can be read."""
    lines = ["%d\n" % step, "%d\n" % total, "%d\n" % log_bytes]
    if FAULT == "half-a-file":
        with open("state", "w") as f:
            f.write(lines[0])
        time.sleep(60)  # the disk is slow
        with open("state", "a") as f:
            f.writelines(lines[1:])
    elif FAULT != "left-unsaved":
        with open("state.new", "w") as f:
            f.writelines(lines)
        os.rename("state.new", "state")


def load():
    if not os.path.exists("state"):
        return 0, 0, 0
    with open("state") as f:
        lines = f.read().split()
    if FAULT == "not-understood" and lines:
        return 0, 0, int(lines[2])  # begins anew, and goes on with the log
    return (list(map(int, lines)) + [0, 0, 0])[:3]


signal.signal(signal.SIGTERM, ask)
step, total, log_bytes = load()
with open("log", "a") as log:
    if FAULT != "appended-twice":
        log.truncate(log_bytes)
    while step < STEPS:
        if FAULT == "appended-twice":
            print(step, file=log, flush=True)
        if asked:
            log_bytes = log.tell()
            if FAULT == "half-a-file":
                log.close()
            save(step, total, log_bytes)
            if FAULT == "slow-to-end":
                time.sleep(0.05)
            sys.exit(0 if FAULT == "left-unsaved" else 75)
        if FAULT != "appended-twice":
            print(step, file=log, flush=True)
        step, total = step + 1, total + step**2
        time.sleep(0.002)
print("total", total)

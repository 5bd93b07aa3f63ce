"""A job that supports saving, using only the status page
(checkpoint-api/sublet_status.h): counts in steps, saves its count when asked, leaves
with exit status 75, and resumes from the saved count.

usage: saver_job.py STEPS  (0: count until asked to leave)"""
import mmap
import os
import signal
import struct
import sys
import time

steps = int(sys.argv[1])
status_file = open(os.environ["SUBLET_STATUS"], "r+b")
status = mmap.mmap(status_file.fileno(), 4096)
checkpoint = os.path.join(os.environ["SUBLET_CHECKPOINT_DIR"], "checkpoint")
asked = set()
count, generation = 0, 0


def put(offset, form, value):
    status[offset:offset + struct.calcsize(form)] = struct.pack(form, value)


if os.path.exists(checkpoint):
    generation, count = map(int, open(checkpoint).read().split())
    put(64, "=Q", generation)
    put(72, "=i", 0)
    print("resumed at", count, flush=True)


def save():
    global generation
    generation += 1
    with open(checkpoint + ".new", "w") as file:
        file.write(f"{generation} {count}")
        file.flush()
        os.fsync(file.fileno())
    os.rename(checkpoint + ".new", checkpoint)
    put(24, "=Q", os.path.getsize(checkpoint))
    put(32, "=Q", time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    put(16, "=Q", generation)


def note(number, _):
    asked.add(number)
    if number == signal.SIGTERM:
        put(60, "=I", 1)  # from now on there is CPU time to save


for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, note)
put(0, "=I", 0x54534253)
put(4, "=I", 2)
put(48, "=i", -1)
put(8, "=I", 1)
if len(sys.argv) > 2:
    open(sys.argv[2], "w").write("ready")
while steps == 0 or count < steps:
    time.sleep(0.01)
    count += 1
    if asked:
        leaving = signal.SIGTERM in asked
        asked.clear()
        save()
        if leaving:
            put(12, "=I", 1)
            sys.exit(75)
print("finished at", count)

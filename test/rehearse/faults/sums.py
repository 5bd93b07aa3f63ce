# sums.py FAULT: sums pseudo-random numbers and prints the result. Its state is saved by the package
# sublet. Each FAULT is a mistake that its author could have made; "none" is the corrected program.
import random
import sys
import time

from sublet import checkpoint

FAULT, STEPS = sys.argv[1], 12

with checkpoint.open("sums", layout=1, period=0) as c:
    total, largest = c.value("total", 0), c.value("largest", 0)
    if FAULT in ("variable-forgotten", "forgotten-and-used"):
        last = 0
    else:
        kept = c.value("last", 0)
    random.seed(7)
    if FAULT != "generator-lost":
        c.generator("random", random)
    with open("numbers", "a") as numbers:  # the folder is a new one in each attempt
        for step in c.range("step", STEPS):
            number = random.randrange(1000)
            total.value += number
            if FAULT == "half-a-step":
                c.point()  # the second half is still to be done
            largest.value = max(largest.value, number)
            if FAULT == "variable-forgotten":
                last += number
            elif FAULT == "forgotten-and-used":
                total.value += last
                last = number
            else:
                kept.value = number
            print(number, file=numbers)
            time.sleep(0.002)
    if FAULT == "variable-forgotten":
        total.value = last
    if FAULT == "state-in-a-file":
        with open("numbers") as numbers:
            total.value = sum(map(int, numbers))
    if FAULT == "wall-clock":
        total.value += time.time_ns()
    with open("result", "w") as result:
        print("total", total.value, file=result)
        print("largest", largest.value, file=result)

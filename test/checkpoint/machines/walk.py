"""The same as walk.c.

usage: walk.py CHECKPOINT STEPS [LEAVE]"""

import array
import os
import signal
import struct
import sys

from sublet import checkpoint

CELLS, ELEMENTS, MOST_NOTES = 32, 3, 4096
CODES = "bBhHiIqQfd"  # of the types 1 to 10
WORD = 2**64 - 1


def print_double(value):
    print("%016x" % struct.unpack("<Q", struct.pack("<d", value)))


def main(path, steps, leave=0):
    with checkpoint.open("walk", 1, path=path, period=0) as c:
        step = c.array("step", array.array("Q", [0]))
        mixed = c.array("mixed", array.array("Q", [1]))
        cells = c.array("cells", array.array("d", [0] * CELLS))
        types = [c.array(str(number), array.array(code, [0] * ELEMENTS))
                 for number, code in enumerate(CODES, 1)]
        notes = c.value("notes", b"")
        while step[0] < steps:
            x = mixed[0] = (mixed[0] * 6364136223846793005 + 1442695040888963407) & WORD
            part = (x >> 11) / 2**53
            cells[x >> 59] = cells[x >> 59] * 0.75 + part
            values = [(x >> 56) - 128, x >> 55 & 0xff, (x >> 48) - 32768, x >> 47 & 0xffff,
                      (x >> 32) - 2**31, x >> 31 & 0xffffffff, (x >> 1) - 2**62, x,
                      (x >> 40) / 2**24, part - 0.5]
            for elements, value in zip(types, values):
                elements[step[0] % ELEMENTS] = value
            if len(notes.value) < MOST_NOTES:
                notes.value += bytes([x >> 33 & 0xff])
            step[0] += 1
            if step[0] == leave:
                os.kill(os.getpid(), signal.SIGTERM)
            c.progress(step[0], steps)
            c.point()
        for value in cells:
            print_double(value)
        for at in range(ELEMENTS):
            print(*(elements[at] for elements in types[:8]))
            print_double(types[8][at])
            print_double(types[9][at])
        print(notes.value.hex())


main(sys.argv[1], *map(int, sys.argv[2:]))

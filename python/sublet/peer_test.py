"""Python and C read each other's files, and agree about damaged and hostile ones."""

import array
import os
import random
import struct
import subprocess
import unittest

from . import _format, checkpoint
from ._crc64 import by_table, crc64
from ._interval import Costs, next_save_ms, put_off_first_ms
from .testing import PYTHON, Case, run

PEER = os.path.join(os.path.dirname(os.path.abspath(os.environ.get(
    "SUBLET_BIN", os.path.join(PYTHON, "..", "build", "bin")))), "unit", "checkpoint-peer")
CODES = "bBhHiIqQfd"  # of the types 1 to 10
MUTANTS = 4000  # of each kind, at a time
ROUNDS = max(1, int(os.environ.get("SUBLET_MUTANTS", "0")) // (2 * MUTANTS))


def sections(c):
    """The peer's sections, as Python has them."""
    return ([c.array(str(number + 1), array.array(code, [0] * 3))
             for number, code in enumerate(CODES)], c.value("stream", b""))


def seal(data):
    """Corrects sizes and checksums, if the number of sections allows it."""
    if len(data) < _format.HEADER_BYTES:
        return data
    head = _format.head_bytes(struct.unpack_from("<I", data, 12)[0])
    if head > len(data):
        return data
    data = bytearray(data)
    struct.pack_into("<Q", data, 24, len(data) - head)
    struct.pack_into("<Q", data, 112, crc64(bytes(data[head:])))
    struct.pack_into("<Q", data, 120, crc64(bytes(data[128:head]), crc64(bytes(data[:120]))))
    return bytes(data)


class Mutator:
    EDGES = (0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 1 << 32, 1 << 61, 2**64 - 1, 2**63 - 1,
             4096, 4097)

    def __init__(self, seed):
        self.random = random.Random(seed)

    def mutate(self, data):
        data = bytearray(data)
        for _ in range(self.random.randint(1, 4)):
            self.once(data)
        return bytes(data)

    def once(self, data):
        pick = self.random
        # Mostly in the head, where the lengths are.
        at = pick.randrange(1 + (len(data) if pick.random() < 0.25 else min(len(data), 320)))
        kind = pick.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << pick.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = pick.randrange(256)
        elif kind == 2 and (at & ~7) + 8 <= len(data):
            struct.pack_into("<Q", data, at & ~7, pick.choice(self.EDGES))
        elif kind == 3 and (at & ~3) + 4 <= len(data):
            struct.pack_into("<I", data, at & ~3, pick.choice(self.EDGES) & 0xffffffff)
        elif kind == 4:
            del data[pick.randrange(len(data) + 1):]
        elif kind == 5:
            data[at:at] = bytes([pick.randrange(256)]) * pick.randrange(300)


class Crc64Test(unittest.TestCase):
    def test_known(self):
        self.assertEqual(crc64(b"123456789"), 0x995dc9bbdf1939fa)
        self.assertEqual(by_table(b"123456789"), 0x995dc9bbdf1939fa)

    def test_in_parts(self):
        data = random.Random(1).randbytes(1000)
        for at in (0, 1, 7, 500, 1000):
            self.assertEqual(crc64(data[at:], crc64(data[:at])), by_table(data))
            self.assertEqual(by_table(data[at:], by_table(data[:at])), crc64(data))


@unittest.skipUnless(os.path.exists(PEER), "skipped: checkpoint-peer is not built")
class PeerTest(Case):
    def peer(self, command):
        return run([PEER, command, self.path], check=True).stdout

    def judge(self, files):
        """The C API's verdicts."""
        frames = b"".join(struct.pack("=I", len(data)) + data for data in files)
        return subprocess.run([PEER, "judge", self.path + ".judged"], input=frames, check=True,
                              stdout=subprocess.PIPE).stdout.decode()

    def verdict(self, data):
        self.write(data)
        for name in ("state.previous", "state.damaged"):
            if os.path.exists(os.path.join(self.folder, name)):
                os.remove(os.path.join(self.folder, name))
        try:
            c = checkpoint.open("peer", 1, path=self.path, period=0)
        except checkpoint.CheckpointRefused:
            return "x"
        try:
            sections(c)
            c.point()
            return "r" if c.resumed else "n"
        except checkpoint.CheckpointRefused:
            return "x"
        finally:
            c.close()

    def verdicts(self, files):
        with self.says("^"):
            return "".join(map(self.verdict, files))

    def original(self):
        self.peer("save")
        return self.read()

    def test_python_reads_c(self):
        self.peer("save")
        c = self.opened("peer")
        numbers, stream = sections(c)
        self.assertEqual((c.resumed, c.generation, stream.value), (True, 1, b"hello"))
        shown = "".join("%d %s\n" % (at + 1, elements.tobytes().hex())
                        for at, elements in enumerate(numbers))
        c.close()
        self.assertEqual(self.peer("show"), "resumed 1\n%sstream 68656c6c6f\n" % shown)
        self.assertEqual(numbers[0][0], -128)  # signed
        self.assertGreater(numbers[1][0], 200)

    def test_the_same_intervals(self):
        pick = random.Random(3)
        cases = [(pick.choice((0, 1, pick.randrange(2000), pick.randrange(10**11))),
                  pick.randrange(10**pick.randrange(1, 11)),
                  pick.randrange(10**pick.randrange(1, 11)),
                  pick.choice((0, 7200, 2**64 - 1, pick.randrange(10**7)))) for _ in range(5000)]
        said = subprocess.run([PEER, "intervals"], check=True, text=True, stdout=subprocess.PIPE,
                              input="".join("%d %d %d %d\n" % case for case in cases)).stdout
        ours = [(next_save_ms(Costs(one, spent), elapsed, idle), put_off_first_ms(spent, elapsed))
                for one, spent, elapsed, idle in cases]
        self.assertEqual([tuple(map(int, line.split())) for line in said.splitlines()], ours)

    def test_one_at_a_time(self):
        c = self.opened("peer")
        self.assertEqual(self.peer("show"), "refused\n")
        c.close()
        self.assertEqual(self.peer("show"), "new\n")

    def test_c_reads_python(self):
        c = self.opened("peer")
        numbers, stream = sections(c)
        stream.value = bytes(range(256))
        for at, elements in enumerate(numbers):
            elements[1] = at + 1
        for _ in range(3):
            c.save()
        c.close()
        shown = "".join("%d %s\n" % (at + 1, elements.tobytes().hex())
                        for at, elements in enumerate(numbers))
        self.assertEqual(self.peer("show"),
                         "resumed 3\n%sstream %s\n" % (shown, bytes(range(256)).hex()))

    def test_the_same_bytes(self):
        """What C saved, saved again by Python, differs in generation and time only."""
        theirs = self.original()
        c = self.opened("peer")
        sections(c)
        c.save()
        ours = bytearray(self.read())
        self.assertEqual(struct.unpack_from("<Q", ours, 16), (2,))
        ours[16:24], ours[32:40] = theirs[16:24], theirs[32:40]
        self.assertEqual(seal(ours), theirs)

    def test_damaged_files(self):
        """With a wrong checksum: the same verdict, and never resumed."""
        original, mutator = self.original(), Mutator(20260101)
        for _ in range(ROUNDS):
            files = [mutator.mutate(original) for _ in range(MUTANTS)]
            verdicts = self.verdicts(files)
            self.assertEqual(verdicts, self.judge(files))
            for data, verdict in zip(files, verdicts):
                self.assertTrue(verdict != "r" or data == original)

    def test_hostile_files(self):
        """With right checksums: both resume from the same ones. About the others they may differ:
        C knows all sections when it starts, and refuses for a wrong number of them before it looks
        at a malformed one; Python sets such a file aside as damaged."""
        original, mutator = self.original(), Mutator(20260102)
        for _ in range(ROUNDS):
            files = [seal(mutator.mutate(original)) for _ in range(MUTANTS)]
            ours, theirs = self.verdicts(files), self.judge(files)
            for at, (our, their) in enumerate(zip(ours, theirs)):
                self.assertEqual(our == "r", their == "r", (at, our, their))
                if their == "n":
                    self.assertEqual(our, "n", at)
            resumed = sum(verdict == "r" and data != original
                          for data, verdict in zip(files, ours))
            self.assertGreater(resumed, MUTANTS // 100)  # else seal() does not work
            self.assertGreater(ours.count("x"), MUTANTS // 100)

    def test_sections_in_another_order(self):
        c = self.opened("peer")
        stream = c.value("stream", b"first")
        for number, code in reversed(list(enumerate(CODES))):
            c.array(str(number + 1), array.array(code, [number] * 3))
        c.save()
        c.close()
        self.assertIn("10 " + array.array("d", [9] * 3).tobytes().hex(), self.peer("show"))
        self.assertEqual(stream.value, b"first")


if __name__ == "__main__":
    unittest.main()

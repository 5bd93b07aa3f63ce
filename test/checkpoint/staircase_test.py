"""Examples of the checkpoint API, each interrupted several times: what it computes does not change
by a byte."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from rehearsal import Rehearsal


def program(name):
    return os.path.join(harness.BIN, name)


class Pi(Rehearsal):
    program = program("pi")

    def test_interrupted_run_is_identical(self):
        # Its first line says where it begins.
        def last_line():
            return self.contents("stdout").splitlines()[-1]
        self.assertTrue(self.interrupt([], 100000))
        self.assertTrue(self.interrupt([], 400000))
        self.result([], self.pool)
        self.assertNotIn(b"term 0\n", self.contents("stdout"))
        self.assertEqual(last_line(), b"pi is about 3.14159265")


class MonteCarlo(Rehearsal):
    program = program("monte-carlo")
    words = ["5", "200000000", "7"]

    def test_interrupted_run_is_identical(self):
        printed, = self.rehearse([self.words] * 6)
        self.assertRegex(printed, b"^dimensions 5\ninside [0-9]{8} of 200000000\nvolume 5\\.26")

    def test_without_a_pool(self):
        self.rehearse_without_pool(self.words + ["saved"])

    def test_a_generator_that_everybody_has(self):
        # As counted by another implementation of xoshiro256**: Python, below.
        self.assertIn(b"inside %d of 1000\n" % inside(3, 1000, 42),
                      self.result(["3", "1000", "42"], self.alone)[0])

    def test_other_numbers_are_refused(self):
        self.assertTrue(self.interrupt(self.words, 1))
        for words in (["4"] + self.words[1:], self.words[:2] + ["8"]):
            self.assertEqual(self.refused(words, self.pool),
                             (1, "monte-carlo: the checkpoint was made with other numbers\n"))

    def test_wrong_usage(self):
        for words in ([], ["0", "10", "1"], ["5", "1", "1"], ["5", "1e3", "1"], ["5", "10", "-1"]):
            status, said = self.refused(words, self.alone)
            self.assertEqual((status, said.split()[0]), (2, "usage:"))


def inside(dimensions, points, seed):
    whole = 2**64 - 1
    state = []
    for _ in range(4):
        seed = seed + 0x9e3779b97f4a7c15 & whole
        word = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9 & whole
        word = (word ^ word >> 27) * 0x94d049bb133111eb & whole
        state.append(word ^ word >> 31)

    def rotated(word, bits):
        return (word << bits | word >> 64 - bits) & whole

    def draw():
        a, b, c, d = state
        c ^= a
        d ^= b
        state[:] = a ^ d, b ^ c, c ^ b << 17 & whole, rotated(d, 45)
        return (rotated(b * 5 & whole, 7) * 9 & whole) >> 11
    return sum(sum((draw() / 2.0**53)**2 for _ in range(dimensions)) < 1 for _ in range(points))


class NQueens(Rehearsal):
    program = program("n-queens")
    words = ["16", "7"]

    def solutions(self, size, first):
        printed, = self.result([str(size), str(first)], self.alone)
        return int(printed.split()[-1])

    def test_interrupted_run_is_identical(self):
        printed, = self.rehearse([self.words] * 6)
        self.assertEqual(printed, b"size 16\nfirst queen in column 7\nsolutions 1290831\n")

    def test_without_a_pool(self):
        self.rehearse_without_pool(self.words + ["saved"])

    def test_the_columns_of_small_boards_add_up(self):
        for size, known in ((2, 0), (4, 2), (6, 4), (8, 92), (10, 724)):
            self.assertEqual(sum(self.solutions(size, first) for first in range(size)), known)

    def test_another_board_is_refused(self):
        self.assertTrue(self.interrupt(self.words, 1))
        for words in (["16", "8"], ["15", "7"]):
            self.assertEqual(self.refused(words, self.pool),
                             (1, "n-queens: the checkpoint was made for another board\n"))

    def test_wrong_usage(self):
        for words in ([], ["1", "0"], ["32", "0"], ["8", "8"], ["8", "-1"], ["8x", "0"]):
            status, said = self.refused(words, self.alone)
            self.assertEqual((status, said.split()[0]), (2, "usage:"))


class Stencil(Rehearsal):
    program = program("stencil")

    def words(self, threads, points=128):
        return [str(points), "100000", str(threads), "ring.txt"]

    def test_interrupted_run_is_identical_with_any_number_of_threads(self):
        each = [self.words(threads) for threads in (1, 2, 4, 3, 1, 2)]
        ring, = self.rehearse(each, ["ring.txt"], most_bytes=128 * 128 * 8 + 1024)
        rows = [[float(one) for one in line.split()] for line in ring.splitlines()]
        self.assertEqual({len(rows)} | {len(row) for row in rows}, {128})
        # The ring is symmetric, has lost heat through the edges, and has filled its middle.
        self.assertEqual(rows, rows[::-1])
        self.assertTrue(0 < rows[64][64] < 100 and rows[0] == [0] * 128)

    def test_without_a_pool(self):
        self.rehearse_without_pool(self.words(2) + ["saved"], ["ring.txt"])

    def test_another_plate_is_refused(self):
        self.assertTrue(self.interrupt(self.words(2), 1))
        self.assertEqual(self.refused(self.words(2, points=127), self.pool),
                         (1, "stencil: the checkpoint was made with another number of points\n"))

    def test_wrong_usage(self):
        for words in ([], ["2", "1", "1", "x"], ["8", "0", "1", "x"], ["8", "1", "0", "x"],
                      ["8", "1", "257", "x"]):
            status, said = self.refused(words, self.alone)
            self.assertEqual((status, said.split()[0]), (2, "usage:"))


if __name__ == "__main__":
    unittest.main()

"""What a program registers, what is refused, and what happens when the disk fails."""

import array
import contextlib
import os
import pickle
import random
import resource
import signal
import struct
import threading
import unittest

from . import _files, checkpoint
from ._crc64 import crc64
from .checkpoint import CheckpointRefused as Refused
from .testing import Case, exit_of, fork


class Point:
    """An object of a program's own."""

    def __init__(self, x):
        self.x = x


class CannotBeRestored:
    def __reduce__(self):
        return (int, ("no number",))


class KindsTest(Case):
    def again(self):
        """The next run of the program."""
        self.last.close()
        self.last = self.opened()
        return self.last

    def setUp(self):
        super().setUp()
        self.last = self.opened()

    def test_values(self):
        values = {"int": -2**63, "float": 0.1, "bool": True, "str": "caf\u00e9 \0", "bytes": b"\xff\0",
                  "empty": "", "infinite": float("-inf")}
        for name, value in values.items():
            self.assertEqual(self.last.value(name, value).value, value)
        self.last.save()
        c = self.again()
        for name, value in values.items():
            restored = c.value(name, type(value)()).value
            self.assertEqual((restored, type(restored)), (value, type(value)))
        self.assertTrue(c.resumed)

    def test_values_keep_their_type(self):
        for first, wrong, error in ((0, 0.5, TypeError), (0, "1", TypeError), (0, 2**63, OverflowError),
                                    (0.0, "1.x", ValueError), (False, 1, TypeError),
                                    ("", b"", TypeError), (b"", "", TypeError),
                                    ("", "\ud800", UnicodeEncodeError)):
            value = self.last.value("v%r%r" % (first, wrong), first)
            with self.assertRaises(error):
                value.value = wrong
            self.assertEqual(value.value, first)
        for wrong in (None, [1], 1j):
            with self.assertRaises(TypeError):
                self.last.value("wrong", wrong)
        with self.assertRaises(OverflowError):
            self.last.value("wrong", 2**63)

    def test_arrays_of_the_standard_library(self):
        kinds = [array.array(code, [1, 2, 100]) for code in "bBhHiIlLqQfd"] + \
            [bytearray(b"abc"), memoryview(bytearray(b"abcd")).cast("i"), bytearray()]
        for number, one in enumerate(kinds):
            self.assertIs(self.last.array(str(number), one), one)
        self.last.save()
        expected = [bytes(memoryview(one)) for one in kinds]
        for one in kinds:
            view = memoryview(one).cast("B")
            view[:] = bytes(len(view))
        c = self.again()
        for number, one in enumerate(kinds):
            c.array(str(number), one)
        self.assertEqual([bytes(memoryview(one)) for one in kinds], expected)

    def test_larger_than_a_buffer(self):
        data = random.Random(1).randbytes(3 << 20)
        self.last.array("data", bytearray(data))
        self.last.save()
        self.assertEqual(self.again().array("data", bytearray(len(data))), data)

    def test_what_is_no_array(self):
        for wrong in ([1, 2], b"read-only", 7, array.array("w" if "w" in array.typecodes else "u")):
            with self.assertRaises(TypeError):
                self.last.array("wrong", wrong)

    def test_generators(self):
        for make in (random.Random, lambda: random):
            self.last.finish()
            c = self.again()
            one = make()
            one.gauss(0, 1)  # it keeps the second one
            c.generator("random", one)
            c.save()
            expected = [one.random(), one.gauss(0, 1), one.getrandbits(64)]
            one.seed(1)
            self.again().generator("random", one)
            self.assertEqual([one.random(), one.gauss(0, 1), one.getrandbits(64)], expected)

    def test_what_is_no_generator(self):
        for wrong in (None, 7, os, random.SystemRandom()):
            with self.assertRaises((TypeError, NotImplementedError)):
                self.last.generator("wrong", wrong)

    def test_objects(self):
        self.last.close()
        c = self.last = self.opened(pickle=True)
        queue = c.object("queue", [Point(1)])
        queue.value.append(Point(2))
        c.save()
        c.close()
        queue = self.opened(pickle=True).object("queue", [])
        self.assertEqual([point.x for point in queue.value], [1, 2])

    def test_ranges_go_on_where_they_were(self):
        """For every pass: a run that leaves at its head, and the next run, do each pass once."""
        for leave_at in range(1, len(self.PASSES) + 1):
            done = []
            for heads in (leave_at, None):
                c = self.again()
                loops = [c.range(name, stop) for name, stop in (
                    ("first", 2), ("outer", 3), ("inner", 2), ("last", 4))]
                for where in self.passes(*loops):
                    if heads is not None:
                        heads -= 1
                    if heads == 0:
                        c.save()
                        break
                    done.append(where)
                else:
                    c.finish()
            with self.subTest(leave_at=leave_at):
                self.assertEqual(done, self.PASSES)

    PASSES = ["first 0", "first 1"] + ["inner %d of %d" % (j, i) for i in range(3) for j in (0, 1)] + \
        ["last 0", "last 1", "after the break"]

    @staticmethod
    def passes(first, outer, inner, last):
        for i in first:
            yield "first %d" % i
        for i in outer:
            for j in inner:
                yield "inner %d of %d" % (j, i)
        for i in last:
            yield "last %d" % i
            if i == 1:
                break
        yield "after the break"

    def test_a_range_within_another_starts_anew(self):
        """Also for a run that resumes at the head of the outer one's pass."""
        c = self.last
        outer, inner = c.range("outer", 3), c.range("inner", 2)
        for i in outer:
            if i == 1:
                c.save()
                break
            self.assertEqual(list(inner), [0, 1])
        c = self.again()
        outer, inner = c.range("outer", 3), c.range("inner", 2)
        self.assertEqual([(i, j) for i in outer for j in inner], [(1, 0), (1, 1), (2, 0), (2, 1)])

    def test_a_range_that_ends_earlier(self):
        for _ in (passes := self.last.range("r", 5)):
            if passes._at == 3:
                self.last.save()
        self.refused("it is at pass 3 of 2", self.again().range, "r", 2)
        self.assertEqual(list(self.again().range("r", 6)), [3, 4, 5])


class RefusalsTest(Case):
    def saved(self, *sections, program="test", layout=1):
        c = self.opened(program, layout)
        for name in sections:
            c.value(name, 1)
        c.save()
        c.close()

    def test_another_program_or_layout(self):
        self.saved("a")
        self.refused("saved by program \"test\", this is \"other\"", self.opened, "other")
        self.refused("it has layout 1, this program has layout 2", self.opened, "test", 2)

    def test_a_newer_format(self):
        self.saved("a")
        data = bytearray(self.read())
        data[8] = 2
        data[120:128] = struct.pack("<Q", crc64(bytes(data[128:192]), crc64(bytes(data[:120]))))
        self.write(data)
        self.refused("format version 2, this program reads version 1: use a newer", self.opened)

    def test_names_are_printed_safely(self):
        self.saved("a", program="\x1b[2Jother")
        self.refused(r"by program \"\?\[2Jother\"", self.opened)

    def test_a_name_used_twice(self):
        c = self.opened()
        c.value("a", 1)
        self.refused("\"a\" is used twice", c.array, "a", bytearray(1))

    def test_bad_names_and_numbers(self):
        for program in ("", "x" * 64, "a\0b"):
            with self.assertRaises(ValueError):
                checkpoint.open(program, 1)
        for layout in (-1, 2**32):
            with self.assertRaises(ValueError):
                checkpoint.open("test", layout)
        c = self.opened()
        for name in ("", "x" * 48, "a\0b", "\u00e9" * 24):
            with self.assertRaises(ValueError):
                c.value(name, 1)
        c.value("x" * 47, 1)
        with self.assertRaises(ValueError):
            checkpoint.open("test", 1, path=self.path + "2", period=-1)

    def test_another_type(self):
        self.saved("a")
        c = self.opened()
        for register, value in ((c.value, 1.0), (c.value, True), (c.value, ""),
                                (c.array, bytearray(8)), (c.array, array.array("q", [1, 2]))):
            self.refused("its section \"a\" has 1 elements of type 7", register, "a", value)
        self.assertEqual(c.array("a", array.array("q", [5]))[0], 1)

    def test_sections_of_one_side_only(self):
        self.saved("a", "b\n", "c")
        c = self.opened()
        self.refused("no section \"d\"", c.value, "d", 1)
        c.value("a", 1)
        for call in (c.point, c.save, c.finish):
            self.refused(r"nobody registered its sections 'b\\n', 'c'", call)

    def test_the_end_of_a_block_refuses_too(self):
        self.saved("a")

        def run():
            with self.opened():
                pass
        self.refused("nobody registered its section 'a'", run)
        self.opened().close()  # that one was closed

    def test_registered_too_late(self):
        c = self.opened()
        c.point()
        with self.assertRaisesRegex(RuntimeError, "after the first safe point"):
            c.value("late", 1)

    def test_contents_that_make_no_sense(self):
        c = self.opened()
        for name, value in (("text", b"\xff"), ("generator", b"{}"), ("other", b'["x",1]')):
            c.value(name, value)
        c.array("flag", bytearray(b"\2"))
        c.array("pass", array.array("q", [-1]))
        c.save()
        c.close()
        c = self.opened(pickle=True)
        for register, name, value in (
                (c.value, "text", ""), (c.generator, "generator", random), (c.value, "flag", True),
                (c.generator, "other", random.Random()), (c.range, "pass", 3),
                (c.object, "text", None)):
            self.refused("cannot read its section \"%s\"" % name, register, name, value)

    def test_pickled_objects(self):
        c = self.opened(pickle=True)
        c.object("object", {1: 2})
        c.object("trap", CannotBeRestored())
        c.save()
        c.close()
        c = self.opened()
        self.refused(r"open\(..., pickle=True\) allows it", c.object, "object", None)
        self.refused("it holds a pickled object", c.value, "object", b"")
        self.refused("it holds a pickled object", c.value, "object", "")
        c.close()
        self.refused("ValueError: invalid literal", self.opened(pickle=True).object, "trap", None)

    def test_a_second_process(self):
        """And no file of the first one is touched, even when that dies."""
        self.saved("a")
        for pool in (None, self.folder):
            if pool:
                os.environ["SUBLET_CHECKPOINT_DIR"] = pool
            started, end = os.pipe(), os.pipe()

            def other():
                c = self.opened()
                os.write(started[1], b"x")
                os.read(end[0], 1)
                os.kill(os.getpid(), signal.SIGKILL)
                c.close()
            pid = fork(other)
            os.read(started[0], 1)
            self.refused("another process uses the checkpoint", self.opened)
            self.opened(path=self.path + "2").close() if not pool else None
            os.write(end[1], b"x")
            self.assertEqual(exit_of(pid), -signal.SIGKILL)
            self.opened().close()
            for fd in started + end:
                os.close(fd)
        self.assertNotIn("state.lock", self.files())

    def test_a_second_one_in_this_process(self):
        self.opened()
        self.refused("already open in this process", self.opened, path=self.path + "2")

    def test_another_thread(self):
        errors = []

        def body():
            try:
                self.opened()
            except RuntimeError as error:
                errors.append(str(error))
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        self.assertEqual(errors, ["a checkpoint is opened by the main thread, which gets the "
                                  "signals"])
        self.assertEqual(self.files(), {})

    def test_a_file_that_is_being_changed(self):
        self.saved("a")
        c = self.opened()
        c.value("a", 1)
        data = self.read()
        os.utime(self.path, ns=(1, 1))
        self.refused("it is being changed", c.point)
        self.assertEqual(self.read(), data)


class DamageTest(Case):
    def saved(self, *values):
        c = self.opened()
        number = c.value("a", 0)
        for number.value in values:
            c.save()
        c.close()

    def run_again(self):
        """The value and generation that the next run starts from."""
        c = self.opened()
        number = c.value("a", 0).value
        c.point()
        generation = c.generation
        c.close()
        return number, generation

    def test_falls_back(self):
        self.saved(1, 2, 3)
        self.write(self.read()[:-1])
        with self.says("state is damaged .its size does not match its head.; set aside, trying "
                       "state.previous\n.*resuming from state.previous, generation 2"):
            c = self.opened()
            before = self.files()
            self.assertEqual(c.value("a", 0).value, 2)
            self.assertEqual(self.files(), before)
            c.save()
        self.assertEqual(c.generation, 4)  # the number of a lost one is not reused
        self.assertEqual(sorted(self.files()), ["state", "state.damaged", "state.lock",
                                                "state.previous"])

    def test_both_damaged(self):
        self.saved(1, 2)
        self.write(b"rubbish")
        self.write(b"rubbish", "state.previous")
        with self.says("set aside, trying .*\n.*state.previous is damaged .it is too short.; "
                       "starting from the beginning"):
            self.assertEqual(self.run_again(), (0, 0))

    def test_no_other(self):
        self.saved(1)
        self.write(b"")
        with self.says("there is no state.previous; starting from the beginning"):
            self.assertEqual(self.run_again(), (0, 0))

    def test_a_refused_start_sets_nothing_aside(self):
        self.saved(1, 2)
        self.write(b"rubbish")
        with self.says("set aside"):
            c = self.opened()
            self.refused("nobody registered", c.point)

    def test_every_flipped_bit(self):
        self.saved(1)
        original = self.read()
        for bit in range(8 * len(original)):
            data = bytearray(original)
            data[bit // 8] ^= 1 << bit % 8
            self.write(data)
            with self.says("state is damaged"):
                c = self.opened()
            self.assertFalse(c.resumed, bit)
            c.close()

    def test_things_that_are_no_files(self):
        """A pipe would block forever, a link may be dangling; so may a leftover of a save."""
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path),
                     lambda path: os.symlink("/dev/zero", path)):
            make(self.path)
            self.write(b"untouched", "victim")
            os.symlink("victim", self.path + ".unfinished")
            with self.says("^"):
                c = self.opened()
                c.save()
            self.assertTrue(os.path.isfile(self.path) and not os.path.islink(self.path))
            self.assertEqual(self.read("victim"), b"untouched")
            c.finish()
            c.close()
            damaged = self.path + ".damaged"
            if os.path.lexists(damaged):
                (os.rmdir if os.path.isdir(damaged) and not os.path.islink(damaged)
                 else os.remove)(damaged)


class DiskTest(Case):
    def test_no_room(self):
        """save() raises, a safe point warns and goes on; the old generation is kept."""
        c = self.opened()
        data = c.array("data", bytearray(100000))
        c.save()
        before = self.files()
        data[0] = 1
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
        try:
            with self.assertRaises(OSError):
                c.save()
            os.kill(os.getpid(), signal.SIGUSR1)
            with self.says("cannot save: File too large; generation 1 is kept"):
                c.point()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.assertEqual(self.files(), before)
        self.assertTrue(c.save())
        self.assertEqual(c.generation, 2)

    def test_no_folder(self):
        for path in (os.path.join(self.folder, "gone", "state"), self.folder + "/"):
            with self.says("cannot open the checkpoint folder .*; nothing will be saved"):
                c = self.opened(path=path)
            c.value("a", 1)
            with self.assertRaises(OSError):
                c.save()
            os.kill(os.getpid(), signal.SIGUSR1)
            with self.says("cannot save: .*; generation 0 is kept"):
                c.point()
            c.finish()
            c.close()

    def test_a_folder_that_goes(self):
        folder = os.path.join(self.folder, "there")
        os.mkdir(folder)
        c = self.opened(path=os.path.join(folder, "state"))
        os.remove(os.path.join(folder, "state.lock"))
        os.rmdir(folder)
        with self.assertRaises(FileNotFoundError):
            c.save()

    def test_an_object_that_cannot_be_pickled(self):
        c = self.opened(pickle=True)
        holder = c.object("o", 1)
        c.save()
        before = self.files()
        holder.value = lambda: None
        with self.assertRaises((pickle.PicklingError, AttributeError)):
            c.save()
        os.kill(os.getpid(), signal.SIGUSR1)
        with self.says("cannot save: .*lambda.*; generation 1 is kept"):
            c.point()
        self.assertEqual(self.files(), before)

    def test_nowhere_to_save(self):
        with checkpoint.open("test", 1) as c:
            number = c.value("a", 7)
            c.point()
            self.assertFalse(c.save())
            c.progress(1, 2)
        self.assertEqual((number.value, c.resumed, self.files()), (7, False, {}))

    def test_finish_removes_the_files(self):
        with self.opened() as c:
            for _ in range(3):
                c.save()
        self.assertEqual(self.files(), {})
        self.assertFalse(c.save())
        os.environ["SUBLET_CHECKPOINT_DIR"] = self.folder  # the pool removes its files itself
        with self.opened() as c:
            c.save()
        self.assertEqual(list(self.files()), ["checkpoint"])

    def test_an_exception_keeps_the_files(self):
        before = signal.getsignal(signal.SIGTERM)
        with self.assertRaises(ZeroDivisionError):
            with self.opened() as c:
                c.save()
                1 / 0
        self.assertEqual(list(self.files()), ["state"])
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)

    def test_a_relative_path(self):
        """The program may change its working directory."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        c = self.opened(path="state")
        os.chdir("/")
        c.save()
        self.assertIn("state", self.files())


class LayoutsTest(Case):
    """A program of layout 3 resumes from files of the layouts 1 and 2 of itself."""

    def save_old(self, layout):
        with contextlib.closing(checkpoint.open("growing", layout, path=self.path)) as c:
            c.array("weights", array.array("d", [1, 2, 3]))
            c.value("step", 17)
            c.value("colour", "red")
            if layout == 2:
                c.value("momentum", 4.0)
            c.save()

    def grown(self, oldest):
        c = checkpoint.open("growing", 3, path=self.path, oldest=oldest)
        self.addCleanup(c.close)
        weights = c.array("weights", array.array("d", [0, 0, 0]))
        momentum = c.value("momentum", 9.0, since=2)
        old_step = c.value("step", 0, until=2)
        step = c.value("step", 0.0, since=3)
        colour = c.value("colour", "", until=2)
        if c.resumed_layout < 3:
            step.value = float(old_step.value)
        return c, (weights.tolist(), momentum.value, step.value, colour.value)

    def test_older_layouts_are_resumed(self):
        for layout, momentum in (1, 9.0), (2, 4.0):
            self.save_old(layout)
            c, values = self.grown(1)
            self.assertEqual((c.resumed, c.resumed_layout), (True, layout))
            self.assertEqual(values, ([1, 2, 3], momentum, 17.0, "red"))
            c.save()
            c.close()
            # What was saved has the new layout, and needs no declaration.
            c, values = self.grown(None)
            self.assertEqual((c.resumed_layout, values), (3, ([1, 2, 3], momentum, 17.0, "")))
            c.finish()
            c.close()

    def test_undeclared_ones_are_refused(self):
        self.save_old(1)
        before = self.files()
        with self.assertRaisesRegex(Refused, "layout 1, this program reads layouts 2 to 3"):
            self.grown(2)
        with self.assertRaisesRegex(Refused, "layout 1, this program has layout 3"):
            self.grown(None)
        c = checkpoint.open("growing", 3, path=self.path, oldest=1)
        self.addCleanup(c.close)
        with self.assertRaisesRegex(Refused, "no section \"momentum\""):
            c.value("momentum", 9.0)  # without `since`
        c.close()
        c = checkpoint.open("growing", 3, path=self.path, oldest=1)
        self.addCleanup(c.close)
        c.array("weights", array.array("d", [0, 0, 0]))
        with self.assertRaisesRegex(Refused, "nobody registered its sections 'step', 'colour'"):
            c.point()
        c.close()
        self.assertEqual(self.files(), before)

    def test_a_new_run(self):
        c, values = self.grown(1)
        self.assertEqual((c.resumed, c.resumed_layout), (False, 3))
        self.assertEqual(values, ([0, 0, 0], 9.0, 0.0, ""))

    def test_wrong_declarations(self):
        for oldest in -1, 4:
            with self.assertRaisesRegex(ValueError, "oldest layout"):
                checkpoint.open("growing", 3, path=self.path, oldest=oldest)
        c = checkpoint.open("growing", 3, path=self.path, oldest=1)
        self.addCleanup(c.close)
        for wrong in {"since": 4}, {"since": -1}, {"until": 3}, {"since": 2, "until": 1}:
            with self.assertRaisesRegex(ValueError, "since is at most"):
                c.value("a", 1, **wrong)
        c.value("a", 1)
        with self.assertRaisesRegex(Refused, "used twice"):
            c.value("a", 1)


class BigEndianTest(Case):
    """The conversion that a big-endian machine makes, here made on its contrary."""

    def test_swapped(self):
        self.addCleanup(setattr, _files, "_SWAPS", _files._SWAPS)
        c = self.opened()
        numbers = c.array("q", array.array("q", [1, -2]))
        c.save()
        plain = self.read()[-16:]
        _files._SWAPS = not _files._SWAPS
        c.save()
        self.assertEqual(self.read()[-16:], plain[7::-1] + plain[:7:-1])
        c.close()
        again = self.opened().array("q", array.array("q", [0, 0]))
        self.assertEqual(again, numbers)


if __name__ == "__main__":
    unittest.main()

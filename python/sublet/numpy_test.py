"""NumPy arrays and the generators of NumPy and PyTorch."""

import random
import unittest

from .testing import Case

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float32", "float64")


@unittest.skipUnless(numpy, "skipped: NumPy is not installed")
class ArraysTest(Case):
    def saved(self, **arrays):
        c = self.opened()
        for name, array in arrays.items():
            c.array(name, array)
        c.save()
        c.close()

    def restored(self, **arrays):
        c = self.opened()
        for name, array in arrays.items():
            self.assertIs(c.array(name, array), array)
        c.finish()
        c.close()

    def test_every_type_and_shape(self):
        for kind in TYPES:
            for shape in ((), (0,), (3,), (2, 3), (4, 0, 2), (200000,)):
                with self.subTest(kind=kind, shape=shape):
                    dice = numpy.random.default_rng(5)
                    array = numpy.asarray(dice.integers(0, 100, shape)).astype(kind)
                    self.saved(a=array, other=numpy.ones(2))
                    again, other = numpy.zeros(shape, kind), numpy.zeros(2)
                    self.restored(a=again, other=other)
                    self.assertTrue((again == array).all() and (other == 1).all())

    def test_exact_floats(self):
        array = numpy.array([numpy.nan, -0.0, numpy.inf, 5e-324, 0.1])
        self.saved(a=array)
        again = numpy.zeros(5)
        self.restored(a=again)
        self.assertEqual(again.tobytes(), array.tobytes())

    def test_a_contiguous_part(self):
        array = numpy.arange(12.0).reshape(4, 3)
        self.saved(a=array[1:3])
        array[:] = 0
        self.restored(a=array[1:3])
        self.assertEqual(array.sum(), 3 + 4 + 5 + 6 + 7 + 8)

    def test_what_cannot_be_saved(self):
        c = self.opened()
        read_only = numpy.zeros(3)
        read_only.flags.writeable = False
        for array, error, why in (
                (numpy.zeros((3, 4))[:, 1], ValueError, "not contiguous"),
                (numpy.zeros((3, 4), order="F"), ValueError, "not contiguous"),
                (read_only, TypeError, "read-only"),
                (numpy.zeros(3, "complex128"), TypeError, "elements of type"),
                (numpy.zeros(3, "float16"), TypeError, "elements of type"),
                (numpy.zeros(3, "i4, f8"), TypeError, "elements of type"),
                (numpy.array([None]), TypeError, "elements of type"),
                (numpy.zeros(3, numpy.dtype("f8").newbyteorder()), TypeError, "byte order")):
            with self.assertRaisesRegex(error, why):
                c.array("a", array)
        c.array("a", numpy.zeros(3, "complex128").view("float64"))

    def test_another_type_or_size(self):
        self.saved(a=numpy.zeros((2, 3)))
        for other in (numpy.zeros((2, 3), "float32"), numpy.zeros((2, 3), "int64"),
                      numpy.zeros((2, 4)), numpy.zeros(5)):
            c = self.opened()
            self.refused("\"a\" has 6 elements of type 10, this program's is %d elements" %
                         other.size, c.array, "a", other)
            c.close()

    def test_a_bool_of_another_value(self):
        self.saved(a=numpy.array([0, 1, 2], "uint8"))
        c = self.opened()
        self.refused("a bool is neither 0 nor 1", c.array, "a", numpy.zeros(3, "bool"))

    def test_values_take_scalars(self):
        c = self.opened()
        number, flag, integer = c.value("f", 0.0), c.value("b", False), c.value("i", 0)
        number.value, flag.value, integer.value = \
            numpy.float32(0.5), numpy.bool_(True), numpy.int32(7)
        self.assertEqual((number.value, flag.value, integer.value), (0.5, True, 7))
        self.assertIs(type(integer.value), int)
        with self.assertRaises(TypeError):
            integer.value = numpy.float64(1)


@unittest.skipUnless(numpy, "skipped: NumPy is not installed")
class GeneratorsTest(Case):
    def goes_on(self, make, draw):
        """A restored generator draws what the saved one would have."""
        one = make(1)
        draw(one)
        c = self.opened()
        self.assertIs(c.generator("g", one), one)
        c.save()
        c.close()
        expected = draw(one)
        other = make(2)
        c = self.opened()
        c.generator("g", other)
        self.assertEqual(draw(other), expected)
        c.finish()
        c.close()

    def test_every_bit_generator(self):
        for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
            with self.subTest(name):
                self.goes_on(
                    lambda seed: numpy.random.Generator(getattr(numpy.random, name)(seed)),
                    lambda g: (g.random(5).tolist(), g.integers(0, 9, 3, "int32").tolist()))

    def test_the_older_ones(self):
        def seeded(seed):
            numpy.random.seed(seed)
            return numpy.random
        for make in (numpy.random.RandomState, seeded):
            self.goes_on(make, lambda g: (g.rand(5).tolist(), g.randn(3).tolist()))

    def test_of_another_class(self):
        c = self.opened()
        c.generator("g", numpy.random.default_rng(1))
        c.save()
        c.close()
        for other, why in ((random.Random(1), "it is of a generator of class numpy.random.Generat"),
                           (numpy.random.Generator(numpy.random.Philox(1)), "does not fit")):
            c = self.opened()
            self.refused(why, c.generator, "g", other)
            c.close()

    @unittest.skipUnless(torch, "skipped: PyTorch is not installed")
    def test_torch(self):
        def seeded(seed):
            torch.manual_seed(seed)
            return torch
        self.goes_on(seeded, lambda g: torch.rand(5).tolist())
        self.goes_on(lambda seed: torch.Generator().manual_seed(seed),
                     lambda g: torch.rand(5, generator=g).tolist())


if __name__ == "__main__":
    unittest.main()

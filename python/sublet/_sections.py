"""What a program saves. Each kind of section has the number of its type in the file, and

    view()          its bytes as a memoryview, in the machine's order; called during a save
    accepts(count)  whether a stored section of so many elements can be restored
    describe()      what it is, for messages
    restore(parts)  takes the stored bytes from an iterable; ValueError: they make no sense
"""

import json
import operator
import pickle
import random
import struct
import sys
import types

from . import _format

_PICKLED = b"sublet pickle\n"
_DOUBLE = struct.Struct("=d")
_SIGNED, _UNSIGNED = (1, 3, 5, 7), (2, 4, 6, 8)


def _type_of(view):
    """The type number of a view's elements; None if the format has none."""
    width = view.itemsize.bit_length() - 1
    if view.format in list("bhilqn"):
        return _SIGNED[width]
    if view.format in list("BHILQN?c"):
        return _UNSIGNED[width]
    return {"f": 9, "d": 10}.get(view.format)


class Array:
    """Memory with a buffer, restored in place."""

    def __init__(self, name, elements):
        view = memoryview(elements)
        self.type = _type_of(view)
        if self.type is None:
            raise TypeError("array \"%s\" has elements of type \"%s\"; a checkpoint holds integers "
                            "of 8 to 64 bits, 32- and 64-bit floats and bools in the machine's "
                            "byte order: register a view of one of these types" % (
                                name, view.format))
        if view.readonly:
            raise TypeError("array \"%s\" is read-only and could not be restored" % name)
        if not view.c_contiguous:
            raise ValueError("array \"%s\" is not contiguous: register a contiguous copy and work "
                             "on that" % name)
        self._count = view.nbytes // view.itemsize
        self._bools = view.format == "?"
        self._view = view.cast("B") if view.nbytes else memoryview(bytearray())

    def view(self):
        return self._view

    def accepts(self, count):
        return count == self._count

    def describe(self):
        return "%d elements of type %d" % (self._count, self.type)

    def restore(self, parts):
        at = 0
        for part in parts:
            if self._bools and part.strip(b"\0\1"):
                raise ValueError("a bool is neither 0 nor 1")
            self._view[at:at + len(part)] = part
            at += len(part)


def _bool(value):
    if type(value).__name__ not in ("bool", "bool_"):  # bool_ is NumPy's
        raise TypeError("a bool is expected, not %r" % (value,))
    return bool(value)


def _int(value):
    value = operator.index(value)
    if not -2**63 <= value < 2**63:
        raise OverflowError("an integer in a checkpoint has 64 bits")
    return value


def _str(value):
    if not isinstance(value, str):
        raise TypeError("a str is expected, not %r" % (value,))
    value.encode()  # lone surrogates cannot be stored
    return value


def _bytes(value):
    return bytes(memoryview(value))


def _read_bool(data):
    if data not in (b"\0", b"\1"):
        raise ValueError("a bool is neither 0 nor 1")
    return data == b"\1"


def _read_stream(data):
    if data.startswith(_PICKLED):
        raise ValueError("it holds a pickled object: register it with object(), after "
                         "open(..., pickle=True)")
    return data


# Class of the first value -> (type, check on assignment, to bytes, from bytes).
_KINDS = {
    bool: (_format.UINT8, _bool, lambda value: b"\1" if value else b"\0", _read_bool),
    int: (_format.INT64, _int, lambda value: value.to_bytes(8, sys.byteorder, signed=True),
          lambda data: int.from_bytes(data, sys.byteorder, signed=True)),
    float: (_format.FLOAT64, float, _DOUBLE.pack,
            lambda data: _DOUBLE.unpack(data)[0]),
    str: (_format.STREAM, _str, str.encode, lambda data: _read_stream(data).decode()),
    bytes: (_format.STREAM, _bytes, bytes, _read_stream),
}


class Value:
    """A number, a text or bytes; `value` reads and changes it. The type stays that of the first
    value: int (64 bits, signed), float, bool, str or bytes. Assignment raises TypeError for
    another type and OverflowError for an integer of more bits."""

    __slots__ = ("_check", "_value")

    def __init__(self, check, value):
        self._check = check
        self._value = check(value)

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = self._check(value)


class ValueSection:
    def __init__(self, name, value):
        for kind in _KINDS:
            if isinstance(value, kind):
                break
        else:
            raise TypeError("value \"%s\" is a %s; int, float, bool, str or bytes is expected" % (
                name, type(value).__name__))
        self._kind = kind.__name__
        self.type, check, self._encode, self._decode = _KINDS[kind]
        self.holder = Value(check, value)

    def view(self):
        return memoryview(self._encode(self.holder.value))

    def accepts(self, count):
        return self.type == _format.STREAM or count == 1

    def describe(self):
        return "a value of class %s" % self._kind

    def restore(self, parts):
        self.holder.value = self._decode(b"".join(parts))


class Object:
    """Any object; `value` reads and replaces it."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class ObjectSection:
    """Pickled at each save."""

    type = _format.STREAM

    def __init__(self, value):
        self.holder = Object(value)

    def view(self):
        # The newest protocol of the oldest Python supported.
        return memoryview(_PICKLED + pickle.dumps(self.holder.value, protocol=5))

    def accepts(self, _count):
        return True

    def describe(self):
        return "a pickled object"

    def restore(self, parts):
        data = b"".join(parts)
        if not data.startswith(_PICKLED):
            raise ValueError("it is no pickled object")
        try:
            self.holder.value = pickle.loads(data[len(_PICKLED):])
        except Exception as error:  # whatever the object's own class raises
            raise ValueError("%s: %s" % (type(error).__name__, error)) from error


# Generators' states as JSON: exact for integers of any size and for floats. Libraries are not
# imported: a generator of theirs exists only if the program has done so.
def _plain(state):
    """A state of NumPy with its arrays as lists."""
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    if hasattr(state, "dtype") and getattr(state, "ndim", 0):
        return {"dtype": str(state.dtype), "elements": state.tolist()}
    return state.item() if hasattr(state, "item") else state


def _numpys(state):
    if not isinstance(state, dict):
        return state
    if set(state) == {"dtype", "elements"}:
        return sys.modules["numpy"].array(state["elements"], dtype=state["dtype"])
    return {key: _numpys(value) for key, value in state.items()}


def _tuples(state):
    return tuple(map(_tuples, state)) if isinstance(state, list) else state


def _torchs(elements):
    torch = sys.modules["torch"]
    return torch.tensor(elements, dtype=torch.uint8)


def _accesses(generator):
    """(what it is, function that returns its state for JSON, function that sets it)."""
    if generator is random or isinstance(generator, random.Random):
        return ("random.Random", generator.getstate,
                lambda state: generator.setstate(_tuples(state)))
    name = generator.__name__ if isinstance(generator, types.ModuleType) else \
        "%s.%s" % (type(generator).__module__.split(".")[0], type(generator).__name__)
    if name in ("numpy.random", "numpy.RandomState"):
        return ("numpy.random.RandomState", lambda: _plain(generator.get_state(legacy=False)),
                lambda state: generator.set_state(_numpys(state)))
    if name == "numpy.Generator":
        bits = generator.bit_generator
        return ("numpy.random.Generator", lambda: _plain(bits.state),
                lambda state: setattr(bits, "state", _numpys(state)))
    if name == "torch":
        return ("torch", lambda: generator.get_rng_state().tolist(),
                lambda state: generator.set_rng_state(_torchs(state)))
    if name == "torch.Generator":
        return ("torch.Generator", lambda: generator.get_state().tolist(),
                lambda state: generator.set_state(_torchs(state)))
    raise TypeError("%s is no random generator of Python, NumPy or PyTorch" % name)


class Generator:
    """A random generator, restored in place."""

    type = _format.STREAM

    def __init__(self, generator):
        self._kind, self._get, self._set = _accesses(generator)
        self.view()  # SystemRandom, for one, has no state: say so now

    def view(self):
        return memoryview(json.dumps([self._kind, self._get()], separators=(",", ":")).encode())

    def accepts(self, _count):
        return True

    def describe(self):
        return "a generator of class %s" % self._kind

    def restore(self, parts):
        try:
            kind, state = json.loads(b"".join(parts))
            if kind == self._kind:
                self._set(state)
        except Exception as error:  # whatever the library raises for a state it cannot take
            raise ValueError("its state does not fit this generator (%s)" % error) from error
        if kind != self._kind:
            raise ValueError("it is of a generator of class %s, this is one of class %s" % (
                kind, self._kind))


class Range:
    """The passes of a loop, from 0 to `stop` - 1. Iterating calls `point` at the head of each pass;
    the first iteration after a resume starts with the pass that the checkpoint had reached, each
    other one with 0. A range that is iterated within a pass of another starts anew with the next
    pass of that one."""

    type = _format.INT64

    def __init__(self, point, loops, stop):
        self._point = point
        self._loops = loops  # those being iterated, the innermost last
        self._stop = operator.index(stop)
        self._at = 0
        self._begun = False
        self._inside = []

    def __iter__(self):
        if self._begun:
            self._at = 0
        self._begun = True
        if self._loops and self not in self._loops[-1]._inside:
            self._loops[-1]._inside.append(self)
        self._loops.append(self)
        try:
            while self._at < self._stop:
                self._point()
                yield self._at
                for inner in self._inside:
                    inner._at = 0
                self._at += 1
        except GeneratorExit:  # `break`: what comes now is after the loop
            self._at = self._stop
            raise
        finally:
            self._loops.remove(self)

    def view(self):
        return memoryview(self._at.to_bytes(8, sys.byteorder, signed=True))

    def accepts(self, count):
        return count == 1

    def describe(self):
        return "a range"

    def restore(self, parts):
        at = int.from_bytes(b"".join(parts), sys.byteorder, signed=True)
        if not 0 <= at <= self._stop:
            raise ValueError("it is at pass %d of %d" % (at, self._stop))
        self._at = at

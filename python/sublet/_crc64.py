"""CRC-64/XZ, as in checkpoint-api/crc64.h. Any thread.

The standard library computes this checksum only inside the module lzma, whose library has it as a
function of its own. An interpreter whose lzma is missing or built in uses the table: about 100
times slower, but the same result."""

import ctypes

_REFLECTED_POLYNOMIAL = 0xc96c5795d7870f42
_ONES = 0xffffffffffffffff


def _make_table():
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = (crc >> 1) ^ (_REFLECTED_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _make_table()


def by_table(data, crc=0):
    crc ^= _ONES
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xff] ^ (crc >> 8)
    return crc ^ _ONES


def _library():
    """The function of liblzma, or None."""
    try:
        import _lzma
        function = ctypes.CDLL(_lzma.__file__).lzma_crc64
    except (ImportError, AttributeError, OSError):
        return None
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    return function


_lzma_crc64 = _library()


def crc64(data, crc=0):
    """The checksum of what `crc` covers followed by `data`, a bytes object; start with 0."""
    if _lzma_crc64 is None:
        return by_table(data, crc)
    return _lzma_crc64(data, len(data), crc)

"""Checkpoint files written from docs/checkpoint-format.md alone, and not by the library."""

import struct

INT32, UINT64, FLOAT64, STREAM = 5, 8, 10, 64
_LAYOUTS = {INT32: "i", UINT64: "Q", FLOAT64: "d", STREAM: "B"}


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0xC96C5795D7870F42 if byte & 1 else 0)
        yield byte


_TABLE = list(_table())


def crc64(data):
    crc = 2**64 - 1
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ (2**64 - 1)


def checkpoint(sections, program="p", layout=1, generation=1):
    """`sections`: a list of (name, type, values)."""
    entries = payload = b""
    for name, kind, values in sections:
        entries += struct.pack("<QII48s", len(values), kind, 0, name.encode())
        payload += struct.pack("<%d%s" % (len(values), _LAYOUTS[kind]), *values)
    header = struct.pack("<8sIIQQqiI64sQ", b"\x89SBCK\r\n\x1a", 1, len(sections), generation,
                         len(payload), 0, -1, layout, program.encode(), crc64(payload))
    return header + struct.pack("<Q", crc64(header + entries)) + entries + payload

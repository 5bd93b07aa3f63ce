"""The head of a checkpoint file, in memory and as bytes (docs/checkpoint-format.md). Pure: no
files. The parser trusts nothing."""

import collections
import struct

from ._crc64 import crc64

VERSION = 1
HEADER_BYTES = 128
ENTRY_BYTES = 64
MAX_NAME = 47
MAX_PROGRAM = 63
MAX_SECTIONS = 4096
MAX_GENERATION = 2**63 - 1
PPM_MAX = 1000000

UINT8, INT64, FLOAT64 = 2, 7, 10
STREAM = 64  # bytes that only the program understands
WIDTHS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 8, 8: 8, 9: 4, 10: 8, STREAM: 1}

_MAGIC = b"\x89SBCK\r\n\x1a"
_HEADER = struct.Struct("<8sIIQQqiI64sQQ")
_ENTRY = struct.Struct("<QII48s")
_SEALED = HEADER_BYTES - 8  # the header without its own checksum

Header = collections.namedtuple("Header", "version sections generation payload_bytes saved_utc_us "
                                "progress_ppm layout program payload_crc head_crc")
Entry = collections.namedtuple("Entry", "name type count")  # the name as bytes


class Damaged(Exception):
    """The bytes are not a whole checkpoint; the text says what is wrong."""


def head_bytes(sections):
    return HEADER_BYTES + ENTRY_BYTES * sections


def entry_bytes(entry):
    return entry.count * WIDTHS[entry.type]


def _unpadded(field):
    """The name in a field of fixed size; None if it is malformed."""
    name, _, rest = field.partition(b"\0")
    return name if name and len(name) < len(field) and not rest.strip(b"\0") else None


def encode_head(header, entries):
    """The head as bytes. The header's own checksum is computed, its `head_crc` ignored."""
    table = b"".join(_ENTRY.pack(entry.count, entry.type, 0, entry.name) for entry in entries)
    start = _HEADER.pack(_MAGIC, header.version, len(entries), header.generation,
                         header.payload_bytes, header.saved_utc_us, header.progress_ppm,
                         header.layout, header.program, header.payload_crc, 0)[:_SEALED]
    return start + struct.pack("<Q", crc64(table, crc64(start))) + table


def decode_header(start, file_bytes):
    """The header in the first HEADER_BYTES of a file of `file_bytes`. Raises Damaged. Checks magic
    and sizes; the checksum needs the whole head."""
    if len(start) < HEADER_BYTES or file_bytes < HEADER_BYTES:
        raise Damaged("it is too short")
    fields = _HEADER.unpack(start[:HEADER_BYTES])
    if fields[0] != _MAGIC:
        raise Damaged("it is not a checkpoint")
    header = Header(*fields[1:])
    if header.sections > MAX_SECTIONS:
        raise Damaged("it has too many sections")
    if head_bytes(header.sections) + header.payload_bytes != file_bytes:
        raise Damaged("its size does not match its head")
    program = _unpadded(header.program)
    if program is None:
        raise Damaged("its program name is malformed")
    if not 1 <= header.generation <= MAX_GENERATION:
        raise Damaged("its generation is impossible")
    if not -1 <= header.progress_ppm <= PPM_MAX:
        raise Damaged("its progress is impossible")
    return header._replace(program=program)


def check_head(header, head):
    """Raises Damaged unless the head (header and entries) matches its checksum."""
    if crc64(head[HEADER_BYTES:], crc64(head[:_SEALED])) != header.head_crc:
        raise Damaged("its head does not match its checksum")


def decode_entries(header, head):
    """The entries of a head of this version. Raises Damaged."""
    entries = []
    for at in range(HEADER_BYTES, len(head), ENTRY_BYTES):
        count, kind, reserved, field = _ENTRY.unpack_from(head, at)
        name = _unpadded(field)
        if name is None:
            raise Damaged("a section's name is malformed")
        if reserved != 0:
            raise Damaged("a reserved field is not zero")
        if kind not in WIDTHS:
            raise Damaged("a section's type or size is impossible")
        entries.append(Entry(name, kind, count))
    if len({entry.name for entry in entries}) != len(entries):
        raise Damaged("two of its sections have the same name")
    if sum(map(entry_bytes, entries)) != header.payload_bytes:
        raise Damaged("its sections do not fill it")
    return entries

"""The status page, in which a job tells its shepherd about its checkpoints
(checkpoint-api/sublet_status.h). The shepherd trusts nothing in it.

Each store is one of a whole aligned word, as the shepherd expects. Python has no ordered stores:
on machines that reorder them (not x86-64) the shepherd may see a new generation an instant before
its size. It reads the generation itself from the file."""

import errno
import mmap
import os
import stat

_BYTES = 4096
_MAGIC = 0x54534253
_VERSION = 2
# Field -> (offset, type of element).
_FIELDS = {
    "magic": (0, "I"), "version": (4, "I"), "aware": (8, "I"), "left": (12, "I"),
    "generation": (16, "Q"), "checkpoint_bytes": (24, "Q"), "saved_boot_ns": (32, "Q"),
    "save_ns": (40, "Q"), "progress_ppm": (48, "i"), "save_failed_errno": (52, "I"),
    "wants_seen": (56, "I"), "leave_seen": (60, "I"), "resumed_generation": (64, "Q"),
    "resumed_progress_ppm": (72, "i"), "message_count": (76, "I"), "points": (80, "Q"),
}
_MESSAGE = 88
_MESSAGE_BYTES = 160


def _map(path):
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size < _BYTES:
            # An access beyond the file's end would kill the program.
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return mmap.mmap(fd, _BYTES, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(fd)


class Page:
    """The page at `path`, or a private one that nobody reads. Raises OSError. The main thread."""

    def __init__(self, path=None):
        page = memoryview(bytearray(_BYTES) if path is None else _map(path))
        self._views = {kind: page.cast(kind) for kind in "BIiQ"}

    def __getitem__(self, field):
        offset, kind = _FIELDS[field]
        view = self._views[kind]
        return view[offset // view.itemsize]

    def __setitem__(self, field, value):
        offset, kind = _FIELDS[field]
        view = self._views[kind]
        view[offset // view.itemsize] = value

    def add_one(self, field):
        self[field] = (self[field] + 1) & 0xffffffff

    def say(self, text):
        """Stores a message, of which only a whole one is shown: the count is odd meanwhile."""
        octets = text.replace("\0", " ").encode(errors="replace")[:_MESSAGE_BYTES]
        octets = octets.decode(errors="ignore").encode().ljust(_MESSAGE_BYTES, b"\0")
        count = self["message_count"] & 0xfffffffe
        self["message_count"] = count + 1
        self._views["B"][_MESSAGE:_MESSAGE + _MESSAGE_BYTES] = octets
        self["message_count"] = (count + 2) & 0xffffffff

    def fill(self, resumed_bytes, resumed_generation, resumed_progress_ppm):
        """Overwrites everything that an earlier run may have left, then says that this one
        answers. Without a checkpoint the arguments are 0, 0, -1."""
        self.say("")
        for field, value in (
                ("left", 0), ("checkpoint_bytes", resumed_bytes), ("saved_boot_ns", 0),
                ("save_ns", 0), ("progress_ppm", resumed_progress_ppm), ("save_failed_errno", 0),
                ("wants_seen", 0), ("points", 0), ("resumed_generation", resumed_generation),
                ("resumed_progress_ppm", resumed_progress_ppm),
                ("generation", resumed_generation), ("magic", _MAGIC), ("version", _VERSION),
                ("aware", 1)):
            self[field] = value

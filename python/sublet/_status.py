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
    "resumed_progress_ppm": (72, "i"), "points": (80, "Q"),
}


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
        self._views = {kind: page.cast(kind) for kind in "IiQ"}

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

    def fill(self, resumed_bytes, resumed_generation, resumed_progress_ppm):
        """Overwrites everything that an earlier run may have left, then says that this one
        answers. Without a checkpoint the arguments are 0, 0, -1."""
        for field, value in (
                ("left", 0), ("checkpoint_bytes", resumed_bytes), ("saved_boot_ns", 0),
                ("save_ns", 0), ("progress_ppm", resumed_progress_ppm), ("save_failed_errno", 0),
                ("wants_seen", 0), ("points", 0), ("resumed_generation", resumed_generation),
                ("resumed_progress_ppm", resumed_progress_ppm),
                ("generation", resumed_generation), ("magic", _MAGIC), ("version", _VERSION),
                ("aware", 1)):
            self[field] = value

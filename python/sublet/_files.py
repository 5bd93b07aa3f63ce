"""The files of one checkpoint: the newest generation and the one before it
(docs/checkpoint-format.md, "Files of one checkpoint")."""

import array
import contextlib
import errno
import fcntl
import os
import stat
import sys
import time

from . import _format
from ._crc64 import crc64

CHUNK = 1 << 20
_SWAPS = sys.byteorder == "big"
_WORDS = {2: "H", 4: "I", 8: "Q"}  # array typecodes by width
_MAX_FILE_NAME = 240
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class Refused(Exception):
    """The file is whole, but of something else; the text says of what."""


class Disk:
    """A save changes the disk only through these functions, so that a test can kill the process
    between any two of them or make any of them fail. `folder` is a descriptor, because the program
    may change its working directory. They raise OSError."""

    @staticmethod
    def create(folder, name):
        # A leftover of a crash is replaced, not reused: it might be a link or a pipe.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW,
                       0o600, dir_fd=folder)

    @staticmethod
    def write(fd, data, offset):
        return os.pwrite(fd, data, offset)

    @staticmethod
    def sync(fd):
        os.fsync(fd)

    @staticmethod
    def close(fd):
        os.close(fd)

    @staticmethod
    def link(folder, old, new):
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=folder)

    @staticmethod
    def rename(folder, old, new):
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)

    @staticmethod
    def remove(folder, name):
        os.unlink(name, dir_fd=folder)


def swapped(data, width):
    """The elements in `data` (bytes) between the machine's byte order and the file's."""
    if not _SWAPS or width == 1:
        return data
    words = array.array(_WORDS[width], data)
    words.byteswap()
    return words.tobytes()


def _printable(name):
    """A name from a file, made safe for a terminal."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7f else "?" for byte in name)


class Source:
    """An open generation that was verified: its head, and its sections by name."""

    def __init__(self, fd, program, layouts):
        """Takes over `fd`; `layouts` are those that are read. Raises Damaged, Refused, OSError."""
        self.fd = fd
        try:
            self._verify(program, layouts)
        except BaseException:
            self.close()
            raise

    def _verify(self, program, layouts):
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            raise _format.Damaged("it is not a regular file")
        start = os.pread(self.fd, _format.HEADER_BYTES, 0)
        self.header = _format.decode_header(start, status.st_size)
        self.bytes = status.st_size
        head = self._pread(_format.head_bytes(self.header.sections), 0)
        _format.check_head(self.header, head)
        self._check_payload(len(head))
        self._compare(program, layouts)
        self.sections = {}
        offset = len(head)
        for entry in _format.decode_entries(self.header, head):
            self.sections[entry.name] = (entry, offset)
            offset += _format.entry_bytes(entry)
        self._stamp = status.st_mtime_ns

    def _pread(self, size, offset):
        data = os.pread(self.fd, size, offset)
        if len(data) != size:
            raise _format.Damaged("it cannot be read")
        return data

    def _check_payload(self, offset):
        crc = 0
        while offset < self.bytes:
            data = self._pread(min(CHUNK, self.bytes - offset), offset)
            crc = crc64(data, crc)
            offset += len(data)
        if crc != self.header.payload_crc:
            raise _format.Damaged("its contents do not match their checksum")

    def _compare(self, program, layouts):
        header = self.header
        if header.version != _format.VERSION:
            raise Refused("it has format version %d, this program reads version %d: use a newer "
                          "release of sublet" % (header.version, _format.VERSION))
        if header.program != program:
            raise Refused("it was saved by program \"%s\", this is \"%s\": use another path" % (
                _printable(header.program), _printable(program)))
        if header.layout not in layouts:
            ours = "has layout %d" % layouts[-1] if len(layouts) == 1 else \
                "reads layouts %d to %d" % (layouts[0], layouts[-1])
            raise Refused("it has layout %d, this program %s: remove it, or run the program that "
                          "saved it" % (header.layout, ours))

    def read(self, name):
        """Yields the contents of a section in parts of whole elements, in the machine's order."""
        entry, offset = self.sections[name]
        left = _format.entry_bytes(entry)
        while left > 0:
            data = self._pread(min(CHUNK, left), offset)
            yield swapped(data, _format.WIDTHS[entry.type])
            offset += len(data)
            left -= len(data)

    def unchanged(self):
        """Whether nobody has written to the file since it was verified."""
        status = os.fstat(self.fd)
        return (status.st_size, status.st_mtime_ns) == (self.bytes, self._stamp)

    def close(self):
        os.close(self.fd)


class Files:
    """The folder of a checkpoint, locked. One process at a time: BlockingIOError."""

    def __init__(self, folder, base, shared_folder):
        """`shared_folder`: other checkpoints may be there too, so a file of this one is locked.
        Raises OSError."""
        if not base or len(os.fsencode(base)) > _MAX_FILE_NAME:
            code = errno.ENAMETOOLONG if base else errno.EISDIR
            raise OSError(code, os.strerror(code))
        self.disk = Disk
        self.newest = base
        self.previous = base + ".previous"
        self.newest_is_whole = False  # it was verified or written by us
        self.next_generation = 1
        self._unfinished = base + ".unfinished"
        self._damaged = base + ".damaged"
        self._lock_name = base + ".lock" if shared_folder else None
        self.folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._lock = self._take_lock()
        except BaseException:
            os.close(self.folder)
            raise

    def _take_lock(self):
        """The locked descriptor; None on a file system without locks or that is read only."""
        if self._lock_name is None:
            return self.folder if self._locked(self.folder) else None
        while True:
            try:
                fd = os.open(self._lock_name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC |
                             os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=self.folder)
            except OSError:
                return None
            try:
                locked = self._locked(fd)
                if locked and self._is_lock_file(fd):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if not locked:
                return None

    @staticmethod
    def _locked(fd):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return False
        return True

    def _is_lock_file(self, fd):
        """Not if its owner has removed it since we opened it."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self._lock_name, dir_fd=self.folder))
        except FileNotFoundError:
            return False

    def close(self):
        if self._lock_name is not None and self._lock is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._lock_name, dir_fd=self.folder)
        self.abandon()

    def abandon(self):
        """Closes the descriptors: all that a forked child may do."""
        if self._lock not in (None, self.folder):
            os.close(self._lock)
        os.close(self.folder)

    def open(self, name, program, layouts):
        """The verified generation `name`; None if there is none. Raises Damaged, Refused."""
        try:
            # Non-blocking, since it might be a pipe.
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY,
                         dir_fd=self.folder)
            return Source(fd, program, layouts)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _format.Damaged(error.strerror) from error

    def set_damaged_aside(self):
        with contextlib.suppress(OSError):
            self.disk.rename(self.folder, self.newest, self._damaged)

    def save(self, program, layout, progress_ppm, sections):
        """Writes the next generation from [(name, type, view of its bytes)]. Returns its number
        and size. Raises OSError. At any time `newest` or `previous` is a complete generation."""
        try:
            size = self._write_unfinished(program, layout, progress_ppm, sections)
            if self.newest_is_whole:
                self._keep_newest()
            self.disk.rename(self.folder, self._unfinished, self.newest)
        except BaseException:
            # Frees its space; the next save recreates it.
            with contextlib.suppress(OSError):
                self.disk.remove(self.folder, self._unfinished)
            raise
        # The file is in place; its number is used up even if the folder cannot be synced.
        self.newest_is_whole = True
        generation = self.next_generation
        self.next_generation += 1
        try:
            self.disk.sync(self.folder)
        except OSError as error:
            if error.errno != errno.EINVAL:  # this file system cannot sync folders
                raise
        return generation, size

    def _write_unfinished(self, program, layout, progress_ppm, sections):
        fd = self.disk.create(self.folder, self._unfinished)
        try:
            entries, offset, crc = [], _format.head_bytes(len(sections)), 0
            for name, kind, view in sections:
                width = _format.WIDTHS[kind]
                entries.append(_format.Entry(name, kind, len(view) // width))
                for at in range(0, len(view), CHUNK):
                    data = swapped(bytes(view[at:at + CHUNK]), width)
                    crc = crc64(data, crc)
                    self._write(fd, data, offset)
                    offset += len(data)
            head = _format.encode_head(_format.Header(
                version=_format.VERSION, sections=len(sections), generation=self.next_generation,
                payload_bytes=offset - _format.head_bytes(len(sections)),
                saved_utc_us=time.time_ns() // 1000, progress_ppm=progress_ppm, layout=layout,
                program=program, payload_crc=crc, head_crc=0), entries)
            self._write(fd, head, 0)
            self.disk.sync(fd)
        except BaseException:
            with contextlib.suppress(OSError):
                self.disk.close(fd)
            raise
        self.disk.close(fd)
        return offset

    def _write(self, fd, data, offset):
        view = memoryview(data)
        while view:
            written = self.disk.write(fd, view, offset)
            if written <= 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            view = view[written:]
            offset += written

    def _keep_newest(self):
        """Gives the newest a second name, replacing the generation before it. Between the two
        steps only the newest exists, and it is complete."""
        with contextlib.suppress(FileNotFoundError):
            self.disk.remove(self.folder, self.previous)
        try:
            self.disk.link(self.folder, self.newest, self.previous)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A file system without links: only `previous` exists, for a moment or, if the next
            # step fails, until the next save, which must keep it.
            self.disk.rename(self.folder, self.newest, self.previous)
            self.newest_is_whole = False

    def remove(self):
        for name in (self.previous, self.newest):
            with contextlib.suppress(OSError):
                self.disk.remove(self.folder, name)

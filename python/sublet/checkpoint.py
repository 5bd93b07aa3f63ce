"""Small checkpoints for programs that run on borrowed machines.

A program names what holds its state and has safe points, where that state is consistent. It can
then resume at its start, save on demand (SIGUSR1) and periodically, save and leave when the
machine's owner returns (SIGTERM, exit status 75), and report progress. The file is that of the C
API, byte for byte. Without a pool the same program runs unchanged.

    from sublet import checkpoint

    with checkpoint.open("letters", layout=1) as c:
        weights = c.array("weights", numpy.zeros(1000))
        loss = c.value("loss", 0.0)
        c.generator("random", random)
        for epoch in c.range("epoch", 100):
            c.progress(epoch, 100)
            loss.value = train(weights)
        write_results(weights)

The file is read and verified by open(); each part is restored when it is registered, which must
happen before the first safe point. A process can have one open checkpoint. All calls are made by
the main thread, except that other threads may do the work between safe points.
docs/checkpoint-api.md describes the contract with the pool, docs/checkpoint-format.md the file.
Needs only the standard library (Python 3.9 or later, Linux)."""

import errno
import os
import sys
import threading

from . import _format
from ._files import Files, Refused
from ._interval import MEAN_IDLE_S
from ._requests import Signals, Timer, boot_ns
from ._sections import Array, Generator, Object, ObjectSection, Range, Value, ValueSection
from ._status import Page

__all__ = ["Checkpoint", "CheckpointRefused", "EXIT_LEFT", "Object", "Range", "Value", "open"]

EXIT_LEFT = 75  # exit status of a program that left because it was asked to

_opened = None  # the one that handles the signals


class CheckpointRefused(RuntimeError):
    """There is a checkpoint that this program must neither use nor overwrite, or it is registered
    wrongly; the text says which, and what to do. Nothing on disk was changed."""


def open(program, layout, path=None, period=None, pickle=False, oldest=None):
    """Opens the program's checkpoint and handles both signals from now on. Returns a Checkpoint, to
    be used in a `with` statement.

    program  1 to 63 bytes. Only a program of the same name can resume.
    layout   0 to 2**32 - 1. Raise it whenever the meaning of the saved parts changes.
    path     the file to use without a pool (SUBLET_CHECKPOINT_DIR is not set); None: nothing is
             saved then, and the signals keep their meaning.
    period   seconds between periodic saves, 0: none. None: by what a save takes and how long
             machines are idle, from 30 s to 10 min, and at most 1 % of the run.
             SUBLET_CHECKPOINT_PERIOD overrides it.
    pickle   whether object() is allowed. Unpickling a file runs what its writer chose: allow it
             only if nobody else can write to the file.
    oldest   the oldest layout that is read too; None: only the program's own. What was different in
             older layouts is told when each part is registered, by since and until.

    Raises CheckpointRefused: the file is from another program or layout or a newer format, or
    another process uses it. A damaged file is set aside and the generation before it is used, with
    a message on stderr. Raises ValueError for a bad name or number, and in another thread than the
    main one RuntimeError."""
    return Checkpoint(program, layout, path, period, pickle, oldest)


def _say(text):
    if sys.stderr is not None:
        print("sublet checkpoint: " + text, file=sys.stderr, flush=True)


def _name(text, most, what):
    name = text.encode()
    if not 1 <= len(name) <= most or b"\0" in name:
        raise ValueError("%s has 1 to %d bytes, none of them zero: %r" % (what, most, text))
    return name


def _seconds_of(variable):
    """The variable's value; None: there is none, or it makes no sense."""
    text = os.environ.get(variable)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    _say("%s is not a number of seconds; ignored" % variable)
    return None


def _timer(period, wake):
    users, idle = _seconds_of("SUBLET_CHECKPOINT_PERIOD"), _seconds_of("SUBLET_MEAN_IDLE")
    period = period if users is None else users
    return Timer(None if period is None else int(period * 1000000000),
                 MEAN_IDLE_S if idle is None else idle, wake)


def _stop_at():
    """The number of the point at which a rehearsal asks to leave, 0: at none; None: no rehearsal,
    points are not counted."""
    text = os.environ.get("SUBLET_CHECKPOINT_STOP_AT")
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    _say("SUBLET_CHECKPOINT_STOP_AT is not a number of points; ignored")
    return None


def _open_files(pool, path):
    """Raises CheckpointRefused if another process has them; without the folder returns its errno
    instead, and the program goes on."""
    folder, base = (pool, "checkpoint") if pool else os.path.split(path)
    folder = folder or "."
    try:
        return Files(folder, base, shared_folder=not pool), 0
    except BlockingIOError:
        raise CheckpointRefused("another process uses the checkpoint %s: wait for its end, or use "
                                "another path" % os.path.join(folder, base)) from None
    except OSError as error:
        _say("cannot open the checkpoint folder %s: %s; nothing will be saved" % (
            folder, error.strerror))
        return None, error.errno


def _open_page():
    path = os.environ.get("SUBLET_STATUS")
    if path is not None:
        try:
            return Page(path)
        except OSError as error:
            _say("cannot use the status page %s: %s; continuing without it" % (
                path, error.strerror))
    return Page()


class Checkpoint:
    """An open checkpoint; made by open()."""

    def __init__(self, program, layout, path, period, pickle, oldest):
        self._program = _name(program, _format.MAX_PROGRAM, "a program's name")
        if period is not None and period < 0:
            raise ValueError("the period is at least 0 seconds, not %r" % (period,))
        if not 0 <= layout < 2**32:
            raise ValueError("a layout is a number from 0 to 2**32 - 1, not %r" % (layout,))
        if oldest is not None and not 0 <= oldest <= layout:
            raise ValueError("the oldest layout is from 0 to the program's own, not %r" % (oldest,))
        self._layout = self._resumed_layout = layout
        self._layouts = range(layout if oldest is None else oldest, layout + 1)
        self._pickle = pickle
        self._sections = {}  # name -> section
        self._restored = set()  # names of the file's sections
        self._loops = []
        self._files = self._source = self._signals = None
        self._newest_damaged = False
        self._progress_ppm = -1
        self._generation = 0
        self._resumed = False
        self._page = Page()
        self._stop_at = None
        self._complete = self._leaving = self._closed = False
        self._pid = os.getpid()
        self._pool = os.environ.get("SUBLET_CHECKPOINT_DIR") or None
        self._path = None if path is None else os.fsdecode(path)
        if self._pool or self._path is not None:
            self._start(period)
        # Whether the next safe point has something to do; the only thing that an idle one reads.
        self._wanted = True

    def _start(self, period):
        global _opened
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a checkpoint is opened by the main thread, which gets the signals")
        if _opened is not None and _opened._mine():
            raise CheckpointRefused("a checkpoint is already open in this process: close it first")
        self._files, self._folder_errno = _open_files(self._pool, self._path)
        try:
            if self._files is not None:
                self._resume()
        except BaseException:
            self._files.close()
            raise
        self._page = _open_page()
        self._signals = Signals(self._page, self._wake)
        self._timer = _timer(period, self._wake)
        self._stop_at = _stop_at()
        self._page.fill(self._source.bytes if self._source else 0, self._generation,
                        self._progress_ppm)
        _opened = self

    def _resume(self):
        """Opens the newest generation, else the one before it."""
        files = self._files
        name = files.newest
        try:
            try:
                self._source = files.open(name, self._program, self._layouts)
                files.newest_is_whole = self._source is not None
            except _format.Damaged as damaged:
                self._newest_damaged = True
                _say("%s is damaged (%s); set aside, trying %s" % (name, damaged, files.previous))
            if self._source is None:
                name = files.previous
                self._source = files.open(name, self._program, self._layouts)
                if self._newest_damaged and self._source is None:
                    _say("there is no %s; starting from the beginning" % name)
        except _format.Damaged as damaged:
            _say("%s is damaged (%s); starting from the beginning" % (name, damaged))
        except Refused as refused:
            raise CheckpointRefused("%s is refused: %s" % (name, refused)) from None
        if self._source is None:
            return
        self._resumed = True
        self._resumed_layout = self._source.header.layout
        self._progress_ppm = self._source.header.progress_ppm
        self._generation = self._source.header.generation
        # The number of a lost generation is not reused.
        files.next_generation = self._generation + (1 if files.newest_is_whole else 2)
        self._source_name = name
        if not files.newest_is_whole:
            _say("resuming from %s, generation %d" % (name, self._generation))

    def _mine(self):
        """Whether this process opened it. A forked child never saves."""
        return os.getpid() == self._pid

    def _wake(self):
        self._wanted = True

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _traceback):
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    # Registration. since: the first layout that has the part; from an older file nothing is
    # restored to it. until: the last one that had it, older than the program's own; it is restored
    # from such a file, and not saved any more.

    def array(self, name, elements, since=0, until=None):
        """Registers memory that holds numbers: a NumPy array, array.array, bytearray or memoryview;
        restores it in place and returns it. It must be contiguous and keep its size. A save reads
        it without a copy of the whole. The file has the number of elements, not the shape.
        Raises TypeError or ValueError if it cannot be saved, and CheckpointRefused."""
        self._register(name, Array(name, elements), since, until)
        return elements

    def value(self, name, value, since=0, until=None):
        """Registers an int (64 bits), float, bool, str or bytes. Returns a Value, whose `value` is
        the restored or the given one. Raises TypeError, OverflowError, CheckpointRefused."""
        section = ValueSection(name, value)
        self._register(name, section, since, until)
        return section.holder

    def generator(self, name, generator, since=0, until=None):
        """Registers a random generator and restores its state in place: the module random or a
        random.Random, the module numpy.random or a Generator or RandomState of it, the module torch
        (its CPU generator) or a torch.Generator. Returns it. Raises TypeError,
        CheckpointRefused."""
        self._register(name, Generator(generator), since, until)
        return generator

    def object(self, name, value, since=0, until=None):
        """Registers any object that can be pickled, if open() was called with pickle=True. Returns
        an Object, whose `value` is the restored or the given one. Raises CheckpointRefused."""
        if not self._pickle:
            raise CheckpointRefused("object \"%s\" would be unpickled from the checkpoint, which "
                                    "runs what its writer chose: open(..., pickle=True) allows it"
                                    % name)
        section = ObjectSection(value)
        self._register(name, section, since, until)
        return section.holder

    def range(self, name, stop, since=0, until=None):
        """Registers the passes 0 to `stop` - 1 of a loop. Returns a Range to iterate over, with a
        safe point at the head of each pass. For a loop within a loop register both before the
        outer one begins; a run that resumes in the inner loop first repeats what the pass of the
        outer one does before it. Raises CheckpointRefused."""
        section = Range(self.point, self._loops, stop)
        self._register(name, section, since, until)
        return section

    def _register(self, name, section, since, until):
        key = _name(name, _format.MAX_NAME, "a section's name")
        if self._complete or self._closed:
            raise RuntimeError("\"%s\" is registered after the first safe point: register all "
                               "before it" % name)
        if not 0 <= since <= self._layout or \
                until is not None and not since <= until < self._layout:
            raise ValueError("\"%s\": since is at most the program's layout, until from since to "
                             "below it" % name)
        if until is not None:
            self._restore_former(name, key, section, since, until)
            return
        if key in self._sections:
            raise CheckpointRefused("the name \"%s\" is used twice: choose another" % name)
        if len(self._sections) == _format.MAX_SECTIONS:
            raise CheckpointRefused("a checkpoint has at most %d sections: use arrays" %
                                    _format.MAX_SECTIONS)
        if self._source is not None and self._resumed_layout >= since:
            self._restore(name, key, section)
        self._sections[key] = section

    def _restore_former(self, name, key, section, since, until):
        if self._source is None or not since <= self._resumed_layout <= until:
            return
        if key in self._restored:
            raise CheckpointRefused("the name \"%s\" is used twice: choose another" % name)
        self._restore(name, key, section)

    def _restore(self, name, key, section):
        if key not in self._source.sections:
            raise self._refusal("it has no section \"%s\"" % name)
        self._restored.add(key)
        entry, _ = self._source.sections[key]
        if entry.type != section.type or not section.accepts(entry.count):
            raise self._refusal("its section \"%s\" has %d elements of type %d, this program's is "
                                "%s" % (name, entry.count, entry.type, section.describe()))
        try:
            section.restore(self._source.read(key))
        except (OSError, ValueError, _format.Damaged) as error:
            raise self._refusal("this program cannot read its section \"%s\": %s" % (
                name, error)) from error

    def _refusal(self, why):
        return CheckpointRefused("%s is refused: %s. Run the program that saved it, or remove it "
                                 "and raise the layout number" % (self._source_name, why))

    def _check_complete(self):
        """At the first safe point: all that was saved has been restored."""
        if self._source is not None:
            rest = [name.decode(errors="replace") for name in self._source.sections
                    if name not in self._restored]
            if rest:
                raise self._refusal("nobody registered its section%s %s" % (
                    "s" if len(rest) > 1 else "", ", ".join(map(ascii, rest))))
            if not self._source.unchanged():
                raise self._refusal("it is being changed")
            self._source.close()
            self._source = None
        # Renamed only now: a refused start must not change the folder.
        if self._newest_damaged:
            self._files.set_damaged_aside()
        self._complete = True

    # Safe points.

    def point(self):
        """A safe point: the state is consistent. Costs little more than an empty call, unless a
        save was requested or is due. When asked to leave, it saves and raises SystemExit with
        EXIT_LEFT, even if the save failed. Raises CheckpointRefused the first time, if the
        checkpoint has sections that nobody registered."""
        if self._wanted:
            self._slow_point()

    def _slow_point(self):
        self._wanted = False  # first: a request from here on is seen now or at the next point
        if not self._complete:
            self._check_complete()
        if self._signals is None or not self._mine():
            return
        if self._leaving:
            self._leave()
        if self._stop_at is not None:
            self._count_point()
        asked, leave = self._signals.take_save(), self._signals.leave
        for _ in range(asked + leave):
            self._page.add_one("wants_seen")
        saved = leave or asked or self._timer.due(self._size)
        if saved:
            self._try_to_save(periodic=not leave and not asked)
        # Asked to leave during that save: the state has not changed since.
        if not leave and self._signals.leave:
            leave = True
            self._page.add_one("wants_seen")
            if not saved:
                self._try_to_save()
        if leave:
            self._leave()

    def _size(self):
        try:
            return sum(section.view().nbytes for section in self._sections.values())
        except Exception:  # the save will tell
            return 0

    def _count_point(self):
        self._wanted = True  # so that the next one is counted, too
        self._page["points"] += 1
        if self._page["points"] == self._stop_at:
            self._signals.ask_to_leave()

    def _leave(self):
        self._leaving = self._wanted = True
        self._signals.ignore()
        self._page["left"] = 1
        sys.exit(EXIT_LEFT)

    def save(self):
        """Saves now; this is a safe point. Returns True, or False if there is no place to save (no
        pool and no path, or a forked child, or finished). Raises OSError if the save failed: the
        older generations are kept. Raises what pickling raises, and CheckpointRefused as point()
        does."""
        if not self._complete:
            self._check_complete()
        if self._signals is None or not self._mine():
            return False
        self._save()
        return True

    def _try_to_save(self, periodic=False):
        try:
            self._save(periodic)
        except Exception as error:  # whatever an object's own class raises when it is pickled
            _say("cannot save: %s; generation %d is kept" % (
                getattr(error, "strerror", None) or error, self._generation))

    def _save(self, periodic=False):
        page, begin = self._page, boot_ns()
        try:
            if self._files is None:
                raise OSError(self._folder_errno, os.strerror(self._folder_errno))
            sections = [(name, section.type, section.view())
                        for name, section in self._sections.items()]
            generation, size = self._files.save(self._program, self._layout, self._progress_ppm,
                                                sections)
        except OSError as error:
            page["save_failed_errno"] = error.errno or errno.EIO
            raise
        except Exception:
            page["save_failed_errno"] = errno.ECANCELED
            raise
        finally:
            end = boot_ns()
            self._timer.tried(end - begin, periodic)
        self._generation = generation
        page["save_failed_errno"] = 0
        page["checkpoint_bytes"] = size
        page["saved_boot_ns"] = end
        page["save_ns"] = end - begin
        page["generation"] = generation

    def progress(self, done, total):
        """Reports `done` of `total` units of work, for `sublet ls`. total 0: unknown."""
        if total <= 0:
            ppm = -1
        elif done >= total:
            ppm = _format.PPM_MAX
        else:
            ppm = max(int(done * _format.PPM_MAX // total), 0)
        self._progress_ppm = ppm
        self._page["progress_ppm"] = ppm

    def say(self, text):
        """A message of one line for `sublet show`, such as "epoch 12: error 0.031"; cut after 160
        bytes. The last one counts; it is shown within 20 s, as long as the program runs. The main
        thread."""
        self._page.say(text)

    @property
    def generation(self):
        """The number of the newest generation; 0: none."""
        return self._generation

    @property
    def resumed(self):
        """Whether this run resumes from a checkpoint: what was registered has been restored."""
        return self._resumed

    @property
    def resumed_layout(self):
        """The layout of the checkpoint that this run resumes from; the program's own without
        one."""
        return self._resumed_layout

    def finish(self):
        """The work is complete: the signals are no longer handled, and the files at the program's
        own path are removed, so that the next run starts from the beginning. A pool removes its
        files itself. The end of a `with` block calls this unless an exception ends it. Raises
        CheckpointRefused as point() does."""
        if not self._complete:
            self._check_complete()
        if self._signals is None or not self._mine():
            return
        self.progress(1, 1)
        self._stop_answering()
        if self._files is not None and not self._pool:
            self._files.remove()

    def close(self):
        """No longer handles the signals; the files are kept. Calling it again does nothing."""
        if self._closed or not self._mine():
            return
        self._closed = True
        self._stop_answering()
        if self._source is not None:
            self._source.close()
            self._source = None
        if self._files is not None:
            self._files.close()

    def _stop_answering(self):
        """Restores the signals and tells the shepherd by clearing `aware`."""
        global _opened
        if self._signals is None:
            return
        if not self._leaving:
            self._page["aware"] = 0
            self._signals.give_back()
        self._timer.stop()
        self._signals = None
        _opened = None

    def _forked(self):
        """In a child: its signals are not the job's, and it may outlive its parent's lock."""
        self._signals.give_back()
        self._signals = None
        self._page = Page()
        if self._source is not None:
            self._source.close()
            self._source = None
        if self._files is not None:
            self._files.abandon()


def _after_fork_in_child():
    global _opened
    if _opened is not None:
        _opened._forked()
        _opened = None


os.register_at_fork(after_in_child=_after_fork_in_child)

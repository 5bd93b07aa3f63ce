"""SIGTERM: save and leave. SIGUSR1: save and continue. And the thread that says when a periodic
save is due. The handlers only set flags and count the SIGTERM in the status page."""

import signal
import threading
import time

from ._interval import Costs, next_save_ms, put_off_first_ms

_LONGEST_WAIT_S = 60  # a suspended machine's clock goes on, the wait does not


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Signals:
    """Handles both signals from now on. Main thread. A request sets `leave` or `save`, then calls
    `wake`; `page` counts the SIGTERMs."""

    def __init__(self, page, wake):
        self.leave = False
        self.save = False
        self._page = page
        self._wake = wake
        page["leave_seen"] = 0
        signal.signal(signal.SIGUSR1, self._on_save)
        # None: a handler that was not installed from Python and cannot be restored.
        self._before = signal.signal(signal.SIGTERM, self._on_leave) or signal.SIG_DFL

    def _on_leave(self, _number, _frame):
        self.ask_to_leave()

    def ask_to_leave(self):
        self._page.add_one("leave_seen")
        self.leave = True
        self._wake()

    def _on_save(self, _number, _frame):
        self.save = True
        self._wake()

    def take_save(self):
        """Whether a save was requested since the last call."""
        if not self.save:
            return False
        # A request that arrives here is answered by the save that follows.
        self.save = False
        return True

    @staticmethod
    def ignore():
        """The process leaves. Until its very end, when Python has taken its handlers away, another
        request must not kill it."""
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)

    def give_back(self):
        """Restores SIGTERM; ignores SIGUSR1, whose default action would kill the program."""
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._before)


class Timer:
    """Calls `wake` in a thread of its own when a save is due: `period_ns` after the last one, or if
    that is None by what saves take and `mean_idle_s`. Main thread, except `wake`. period_ns 0:
    never."""

    def __init__(self, period_ns, mean_idle_s, wake):
        self._chosen_ns = period_ns
        self._mean_idle_s = mean_idle_s
        self._wake = wake
        self._costs = Costs()
        self._started_ns = boot_ns()
        self._stopped = threading.Event()
        self._plan()
        if self._period_ns:
            self._thread = threading.Thread(target=self._run, name="sublet-checkpoint",
                                            daemon=True)
            self._thread.start()

    def _plan(self):
        now = boot_ns()
        if self._chosen_ns is None:
            self._period_ns = 1000000 * next_save_ms(
                self._costs, (now - self._started_ns) // 1000000, self._mean_idle_s)
        else:
            self._period_ns = self._chosen_ns
        self._due_ns = now + self._period_ns

    def tried(self, took_ns, periodic):
        """Plans the next save, after one, also one that failed, that took so long."""
        self._costs.add(took_ns // 1000, periodic)
        self._plan()

    def due(self, size):
        """Whether a save is due. `size` is called for the bytes of the first one: if that would
        cost too much so early, it is planned for later."""
        now = boot_ns()
        if not self._period_ns or now < self._due_ns:
            return False
        if self._chosen_ns is not None or self._costs.one != 0:
            return True
        wait_ms = put_off_first_ms(size(), (now - self._started_ns) // 1000000)
        self._due_ns = now + 1000000 * wait_ms
        return wait_ms == 0

    def stop(self):
        self._stopped.set()
        if self._period_ns:
            self._thread.join()

    def _run(self):
        wait_s = 0
        while not self._stopped.wait(wait_s):
            left_s = (self._due_ns - boot_ns()) / 1e9
            if left_s <= 0:
                self._wake()
                left_s = self._period_ns / 1e9
            wait_s = min(left_s, _LONGEST_WAIT_S)

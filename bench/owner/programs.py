"""Busy programs of the owner's, beside which jobs are evicted."""

import contextlib
import os
import signal
import subprocess
import time


class OwnersPrograms:
    """Two busy programs of the owner's on each core, each in a session of its own; none if not
    `busy`. They run only within running(), because no job would start beside them in time."""

    PER_CORE = 2
    WARM_SECONDS = 0.05

    def __init__(self, busy=True):
        self.count = self.PER_CORE * len(os.sched_getaffinity(0)) if busy else 0

    def __enter__(self):
        self.programs = [subprocess.Popen(["sh", "-c", "while :; do :; done"],
                                          start_new_session=True) for _ in range(self.count)]
        self.tell(signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()

    def tell(self, number):
        for program in self.programs:
            program.send_signal(number)

    @contextlib.contextmanager
    def running(self, busy=True):
        """They run within the block, if `busy`."""
        if not busy:
            yield
            return
        self.tell(signal.SIGCONT)
        time.sleep(self.WARM_SECONDS if self.programs else 0)
        try:
            yield
        finally:
            self.tell(signal.SIGSTOP)

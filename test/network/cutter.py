"""A proxy between Unix sockets that cuts connections after given numbers of bytes, counted
in both directions together."""

import os
import socket
import threading

PART = 256 * 1024


class Cutter:
    def __init__(self, listen, target, cuts=()):
        self.target = target
        self.lock = threading.Lock()
        self.passed = 0
        self.waiting_cuts = sorted(cuts)
        self.made = 0
        os.makedirs(os.path.dirname(listen), exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(listen)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def plan(self, cuts):
        """Sets the cuts: each after this many further bytes."""
        with self.lock:
            self.waiting_cuts = sorted(self.passed + cut for cut in cuts)
            self.made = 0

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.target)
            except OSError:
                near.close()
                continue
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one, other):
        part = bytearray(PART)
        view = memoryview(part)
        try:
            while True:
                count = one.recv_into(part)
                if count == 0 or self.cut_now(count):
                    break
                other.sendall(view[:count])
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        one.close()

    def cut_now(self, count):
        with self.lock:
            self.passed += count
            if not self.waiting_cuts or self.passed < self.waiting_cuts[0]:
                return False
            self.waiting_cuts.pop(0)
            self.made += 1
            return True

    def close(self):
        self.listener.close()

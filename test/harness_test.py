"""What the tests themselves rely on."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness

# Ends its first thread alone, as a killed process may for a moment, and goes when its input does.
FIRST_THREAD_ENDS = """
import ctypes, os, sys, threading
def rest():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall(%d, 0)
""" % {"x86_64": 60}.get(os.uname().machine, 93)  # exit, of one thread


class Alive(unittest.TestCase):
    def test_until_the_last_thread_is_gone(self):
        process = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdin=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        harness.wait_for(lambda: harness.thread_state(process.pid, process.pid) == "Z",
                         "the first thread to end")
        self.assertTrue(harness.alive(process.pid))
        process.stdin.close()
        harness.wait_for(lambda: not harness.alive(process.pid), "the others to end")
        self.assertIsNone(process.returncode)  # a zombie
        process.wait()
        self.assertFalse(harness.alive(process.pid))


if __name__ == "__main__":
    unittest.main()

"""Programs started with standard input, output or error closed: /dev/null replaces
them, not a pipe of a library, so that log output is not written elsewhere."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

CLOSED = ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"]


def without(streams, args):
    return ["sh", "-c", 'exec "$@" ' + streams, "sh"] + args


def places(pid):
    return [os.readlink("/proc/%d/fd/%d" % (pid, n)) for n in (0, 1, 2)]


class ClosedStreams(unittest.TestCase):
    def check(self, pid, streams):
        now = places(pid)
        for word in streams.split():
            number = {"<&-": 0, ">&-": 1, "2>&-": 2}[word]
            self.assertEqual(now[number], "/dev/null", (streams, now))

    def test_daemons(self):
        for streams in CLOSED:
            with self.subTest(streams), harness.Pool() as pool:
                with open(os.path.join(pool.folder, "server.log"), "a") as log:
                    pool.supervisor = subprocess.Popen(
                        without(streams, [os.path.join(harness.BIN, "sublet-server"), "--state",
                                          pool.state, "--socket", pool.socket]),
                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                pool.wait_serving()
                self.check(pool.supervisor.pid, streams)
                self.check(pool.server_pid(), streams)
                curly = pool.client("curly", prefix=without(streams, [])).start()
                pool.wait_machines(1)
                self.check(curly.process.pid, streams)
                self.check(curly.monitor_pids()[0], streams)
                job = pool.submit("--", "echo", "hello")[0]
                self.assertEqual(pool.wait_state(job, ["done", "failed"])["state"], "done")

    def test_monitor_by_itself(self):
        with harness.Pool() as pool:
            control = os.path.join(pool.folder, "owner")
            with open(control, "w") as f:
                f.write("away\n")
            path = os.path.join(pool.folder, "monitor.sock")
            monitor = subprocess.Popen(
                without("<&- >&- 2>&-", [os.path.join(harness.BIN, "sublet-loadmon"), "--socket",
                                         path, "--control", control]), env=pool.environment())
            try:
                harness.wait_for(lambda: os.path.exists(path), "the monitor to listen")
                self.check(monitor.pid, "<&- >&- 2>&-")
            finally:
                monitor.terminate()
                monitor.wait()

    def test_command(self):
        """Its error message is discarded, not written to a pipe of the ORB; it ends as usual."""
        with harness.Pool() as pool:
            for streams in CLOSED:
                done = subprocess.run(
                    without(streams, [os.path.join(harness.BIN, "sublet"), "ls"]),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env=pool.environment(), timeout=harness.PATIENCE)
                self.assertEqual(done.returncode, 8, streams)
                self.assertEqual(done.stderr.count(b"\n"), 0 if "2>&-" in streams else 1, streams)


if __name__ == "__main__":
    unittest.main()

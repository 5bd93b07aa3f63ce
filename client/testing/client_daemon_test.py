"""Tests sublet-client with real shepherds and a real load monitor (with a scripted
owner), against fake-server, which acts only on commands.

usage: client_daemon_test.py BUILD_FOLDER [TEST...]"""
import json
import os
import queue
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds to wait for a condition. Generous: on a busy machine a tenant gets next to no CPU
# time, by design.
LIMIT = 150
END = dict(DONE=1, EXIT=2, SIGNAL=3, START=4, STAGING=5, OUTPUT=6, OWNER=16, BLIND=17,
           PREEMPTED=19, DRAINED=20, LOST=22, REMOVED=23)
FILE_CHECKPOINT, FILE_OUTPUT, FILE_STDOUT = 2, 3, 4


def until(condition, what):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("never came: " + what)


def read(path, mode="r"):
    with open(path, mode) as file:
        return file.read()


def write(path, what):
    with open(path, "w") as file:
        file.write(what)


def alive(pid):
    try:
        return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Server:
    """fake-server: commands in, answers and events out."""

    def __init__(self, socket, lease_ms):
        self.process = subprocess.Popen([f"{BUILD}/unit/fake-server", socket, str(lease_ms)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events, self.answers, self.changed = [], queue.Queue(), threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.wait("serving")

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "event" not in said:
                self.answers.put(said)
                continue
            with self.changed:
                self.events.append(said)
                self.changed.notify_all()

    def ask(self, do, **what):
        self.process.stdin.write(json.dumps(dict(do=do, **what)) + "\n")
        self.process.stdin.flush()
        return self.answers.get(timeout=LIMIT)

    def wait(self, event, count=1, **match):
        """The count-th event of this kind with these values."""
        def found():
            hits = [e for e in self.events if e["event"] == event and
                    all(e.get(k) == v for k, v in match.items())]
            return hits[count - 1] if len(hits) >= count else None
        with self.changed:
            if not self.changed.wait_for(found, LIMIT):
                raise AssertionError(f"no {event} {match}; there were {self.events[-8:]}")
            return found()

    def all(self, event):
        with self.changed:
            return [e for e in self.events if e["event"] == event]

    def came_before(self, one, other):
        """Of the first events of these kinds."""
        with self.changed:
            kinds = [e["event"] for e in self.events]
        return kinds.index(one) < kinds.index(other)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.reader.join()
        self.process.stdout.close()


class ClientDaemon(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sublet-client-")
        os.chmod(self.folder, 0o755)
        self.socket = self.folder + "/server.sock"
        self.state = self.folder + "/state"
        self.control = self.folder + "/owner"
        self.owner("away")
        self.out = open(self.folder + "/log", "a")
        self.clients, self.servers = [], []

    def tearDown(self):
        for client in self.clients:
            if client.poll() is None:
                client.kill()
            client.wait()
        for server in self.servers:
            server.stop()
        self.end_leftovers()
        self.out.close()
        outcome = self._outcome.result if hasattr(self._outcome, "result") else None
        failed = outcome and any(t is self for t, _ in outcome.failures + outcome.errors)
        if failed or sys.exc_info()[0]:
            print(self.log(), file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_leftovers(self):
        """Kills shepherds and monitors of this test, recognized by its folder."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = read(f"/proc/{pid}/cmdline", "rb")
            except OSError:
                continue
            if self.folder.encode() in line and int(pid) != os.getpid():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def owner(self, what):
        write(self.control + ".new", what + "\n")
        os.rename(self.control + ".new", self.control)

    def server(self, lease_ms=600_000):
        server = Server(self.socket, lease_ms)
        self.servers.append(server)
        return server

    def grants(self):
        """Jobs see this test's folder and programs although they lie in /tmp or a home folder."""
        return ",".join({os.path.realpath(p) for p in (self.folder, HERE, BUILD, sys.base_prefix)})

    def client(self, *more, state=None, name="curly", slots=2):
        client = subprocess.Popen(
            [f"{BUILD}/bin/sublet-client", "--server", "unix:" + self.socket, "--name", name,
             "--slots", str(slots), "--state", state or self.state,
             "--monitor-control", self.control, "--set", "grants=" + self.grants(), *more],
            stderr=self.out, stdout=self.out, start_new_session=True)
        self.clients.append(client)
        return client

    def ready(self, *more, **options):
        """A server and a client that accepts jobs."""
        server = self.server(**options)
        client = self.client(*more)
        self.wait_idle(server)
        return server, client

    def wait_idle(self, server):
        until(lambda: server.process.poll() is None and server.all("attached") and any(
            e.get("away") for e in server.all("state") + server.all("renewed")), "an idle machine")

    def run_job(self, server, job=1, attempt=1, program="/bin/true", **more):
        said = server.ask("run", job=job, attempt=attempt, program=program, **more)
        self.assertEqual(said, {"answer": 0, "reason": ""})

    def run_saver(self, server, job=1, attempt=1, steps=0, save_ms=60_000, **more):
        """A job that saves when asked to, with enough time even on a busy machine."""
        ready = f"{self.folder}/ready-{job}.{attempt}"
        # Writable for all, because the job runs under its slot's account.
        write(ready, "")
        os.chmod(ready, 0o666)
        shutil.copy(HERE + "/saver_job.py", self.folder)
        self.run_job(server, job, attempt, sys.executable_real, save_ms=save_ms,
                     arguments=[self.folder + "/saver_job.py", str(steps), ready], **more)
        until(lambda: read(ready) == "ready", "the job to be ready")

    def stop(self, client):
        """Sends SIGSTOP and waits until every thread has stopped."""
        client.send_signal(signal.SIGSTOP)
        tasks = f"/proc/{client.pid}/task"
        until(lambda: all(read(f"{tasks}/{task}/stat").rsplit(")", 1)[1].split()[0] == "T"
                          for task in os.listdir(tasks)), "the client to stop")

    def attempts(self):
        return os.listdir(self.state + "/attempts")

    def log(self):
        return read(self.folder + "/log")

    def records(self, job=1, attempt=1):
        """The shepherd's record, as a dictionary."""
        path = f"{self.state}/attempts/{job}.{attempt}/record"
        until(lambda: os.path.exists(path), "the record")
        return dict(line.split(" ", 1) for line in read(path).splitlines() if " " in line)

    def test_join(self):
        server, client = self.ready()
        joined = server.wait("joined")
        self.assertEqual((joined["name"], joined["slots"], joined["os"]), ("curly", 2, "linux"))
        self.assertEqual(joined["architecture"], os.uname().machine)
        mode = os.stat(self.state + "/machine").st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        client.send_signal(signal.SIGTERM)
        server.wait("withdrawn")
        self.assertEqual(client.wait(LIMIT), 0)

    def test_true_and_false(self):
        server, _ = self.ready()
        self.run_job(server, 1)
        self.run_job(server, 2, program="false")
        self.assertEqual(server.wait("ended", job=1)["ended"], END["DONE"])
        end = server.wait("ended", job=2)
        self.assertEqual((end["ended"], end["exit_status"]), (END["EXIT"], 1))
        until(lambda: not self.attempts(), "empty outbox")
        self.assertEqual(len(server.all("ended")), 2)

    def test_missing_program(self):
        server, _ = self.ready()
        self.run_job(server, 1, program="no-such-program")
        self.run_job(server, 2, program="./not-sent")
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["START"])
        self.assertIn("no-such-program", end["reason"])
        end = server.wait("ended", job=2)
        self.assertEqual(end["ended"], END["START"])
        self.assertIn("No such file", end["reason"])

    def test_environment(self):
        server, _ = self.ready()
        self.run_job(server, 1, program="env", environment=["MINE=1", "LANG=de_DE.UTF-8"])
        out = {o["name"]: o["bytes"] for o in server.wait("ended", job=1)["outputs"]}["stdout"]
        found = dict(line.split("=", 1) for line in out.splitlines())
        folder = os.path.realpath(self.state) + "/attempts/1.1"
        self.assertGreaterEqual(int(found.pop("SUBLET_MEAN_IDLE")), 7200)
        self.assertEqual(found, {
            "MINE": "1", "LANG": "de_DE.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": folder + "/work", "TMPDIR": folder + "/work", "SUBLET_JOB": "1",
            "SUBLET_ATTEMPT": "1", "SUBLET_STATUS": folder + "/status",
            "SUBLET_CHECKPOINT_DIR": folder + "/checkpoint"})

    def test_inputs_and_outputs(self):
        server, _ = self.ready()
        script, data = self.folder + "/script", self.folder + "/data"
        write(script, "#!/bin/sh\nmkdir out\ncp in/data out/copy\nid -u\n")
        write(data, os.urandom(3_000_000).hex())
        a = server.ask("put", path=script)["file"]
        b = server.ask("put", path=data)["file"]
        self.run_job(server, 1, program="./script",
                     inputs=[dict(file=a, name="script", executable=True),
                             dict(file=b, name="in/data")],
                     outputs=[dict(name="out/copy"), dict(name="not-made", required=False)])
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["DONE"], end["reason"])
        out = {o["name"]: o["bytes"] for o in end["outputs"]}
        self.assertEqual(out["out/copy"], read(data))
        if os.geteuid() == 0:
            self.assertIn(int(out["stdout"]), range(61184, 61184 + 4096))
        else:
            self.assertEqual(int(out["stdout"]), os.geteuid())

    def test_missing_output(self):
        server, _ = self.ready()
        self.run_job(server, 1, outputs=[dict(name="result")])
        self.run_job(server, 2, program="ln", arguments=["-s", "/etc/passwd", "result"],
                     outputs=[dict(name="result")])
        for job in 1, 2:
            end = server.wait("ended", job=job)
            self.assertEqual(end["ended"], END["OUTPUT"])
            self.assertEqual(end["outputs"], [])

    def test_evicted_with_checkpoint(self):
        server, _ = self.ready()
        self.run_saver(server)
        self.owner("active")
        end = server.wait("ended", job=1)
        self.assertEqual((end["ended"], end["generation"]), (END["OWNER"], 1), end)
        self.assertGreater(end["quiesce_us"], 0)
        self.assertGreaterEqual(end["cpu_saved_us"], 0)
        self.assertEqual(server.wait("file", kind=FILE_CHECKPOINT)["generation"], 1)
        server.wait("state", away=False)
        until(lambda: not self.attempts(), "empty outbox")

    def test_resumes_from_checkpoint(self):
        server, _ = self.ready()
        old = self.folder + "/checkpoint"
        write(old, "4 95")
        server.ask("put", path=old, job=1, generation=4)
        self.run_saver(server, job=1, attempt=2, steps=100, generation=4)
        end = server.wait("ended", job=1)
        self.assertEqual((end["ended"], end["resumed_generation"]), (END["DONE"], 4))
        self.assertIn("resumed at 95", end["outputs"][0]["bytes"])

    def test_monitor_killed(self):
        server, _ = self.ready()
        self.run_saver(server)
        monitor = self.monitor_pid()
        os.kill(monitor, signal.SIGKILL)
        end = server.wait("ended", job=1)
        self.assertEqual((end["ended"], end["generation"]), (END["BLIND"], 1), end)
        # Another one is started, and jobs may run again.
        until(lambda: self.monitor_pid() not in (None, monitor), "a new monitor")
        until(lambda: server.ask("run", job=2, attempt=1, program="true")["answer"] == 0,
              "an accepted order")
        server.wait("ended", job=2, ended=END["DONE"])

    def test_monitor_stopped(self):
        server, _ = self.ready()
        self.run_saver(server)
        monitor = self.monitor_pid()
        os.kill(monitor, signal.SIGSTOP)
        end = server.wait("ended", job=1)
        self.assertEqual((end["ended"], end["generation"]), (END["BLIND"], 1), end)
        # The shepherd may notice first, and the client still accept an order, which does not start.
        until(lambda: self.monitor_pid() not in (None, monitor), "another monitor")
        self.assertFalse(alive(monitor))
        until(lambda: server.ask("run", job=2, attempt=1, program="true")["answer"] == 0,
              "an accepted order, once the hung monitor has been replaced")
        server.wait("ended", job=2, ended=END["DONE"])

    def test_monitor_stopped_at_rest(self):
        # Without jobs the client does not wait for its frames; the first job that needs it tells.
        server, _ = self.ready()
        monitor = self.monitor_pid()
        os.kill(monitor, signal.SIGSTOP)
        self.run_job(server, 1, program="true")
        self.assertEqual(server.wait("ended", job=1)["ended"], END["BLIND"])
        until(lambda: self.monitor_pid() not in (None, monitor), "another monitor")
        self.assertFalse(alive(monitor))
        until(lambda: server.ask("run", job=2, attempt=1, program="true")["answer"] == 0,
              "an accepted order, once the hung monitor has been replaced")
        server.wait("ended", job=2, ended=END["DONE"])

    def test_shepherd_killed(self):
        server, _ = self.ready()
        self.run_job(server, 1, program="sleep", arguments=["1000"])
        record = self.records()
        os.kill(int(record["shepherd_pid"]), signal.SIGKILL)
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["LOST"], end)
        until(lambda: not alive(int(record["job_pid"])), "its processes to go")
        self.run_job(server, 1, attempt=2)
        server.wait("ended", job=1, attempt=2, ended=END["DONE"])

    def monitor_pid(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = read(f"/proc/{pid}/cmdline", "rb")
            except OSError:
                continue
            if b"sublet-loadmon" in line and self.folder.encode() in line and alive(int(pid)):
                return int(pid)
        return None

    def test_client_killed_is_adopted(self):
        server, client = self.ready()
        self.run_saver(server, job=1, steps=0)
        self.run_job(server, 2, program="sleep", arguments=["0.5"])
        server.wait("started", job=2)
        program = int(self.records()["job_pid"])
        client.kill()
        client.wait()
        until(lambda: os.path.exists(self.state + "/attempts/2.1/exit"), "job 2 to end alone")
        self.assertTrue(alive(program))
        self.client()
        server.wait("attached", count=2)
        self.assertEqual(server.wait("ended", job=2)["ended"], END["DONE"])
        self.assertTrue(alive(program), "the adopted job still runs")
        self.owner("active")
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["OWNER"])
        # It may have saved once before, because the lease was running out.
        self.assertGreaterEqual(end["generation"], 1)
        self.assertEqual(len(server.all("ended")), 2)

    def test_server_restart_is_noticed_at_once(self):
        server, _ = self.ready(lease_ms=600_000)
        server.stop()
        again = self.server(lease_ms=600_000)
        again.wait("attached")  # long before the next renewal is due
        self.wait_idle(again)

    def test_server_gone_during_eviction(self):
        server, _ = self.ready()
        self.run_saver(server)
        program = int(self.records()["job_pid"])
        server.stop()
        self.owner("active")
        until(lambda: not alive(program), "the job to leave without a server")
        again = self.server()
        end = again.wait("ended", job=1)
        self.assertEqual((end["ended"], end["generation"]), (END["OWNER"], 1), end)
        renewed = again.wait("renewed")
        held = [(a["job"], a["state"]) for a in renewed["attempts"]]
        # One thread renews, others hand in and report: once that is done it is no longer held.
        if held or again.came_before("renewed", "ended"):
            self.assertEqual(held, [(1, 4)])
        until(lambda: not self.attempts(), "empty outbox")

    def test_one_client_per_folder(self):
        _, first = self.ready()
        second = self.client()
        self.assertEqual(second.wait(LIMIT), 1)
        self.assertIn(f"process {first.pid} is using it", self.log())

    def test_second_client_with_live_id(self):
        server, _ = self.ready()
        other = self.folder + "/other"
        os.makedirs(other)
        shutil.copy(self.state + "/machine", other + "/machine")
        second = self.client(state=other, name="moe")
        until(lambda: "held by 'curly'" in self.log(), "a refusal that names the first")
        self.assertIsNone(second.poll())
        self.assertEqual(len(server.all("joined")), 1)

    def test_no_listening_socket(self):
        _, client = self.ready()
        inodes = set()
        for fd in os.listdir(f"/proc/{client.pid}/fd"):
            try:
                target = os.readlink(f"/proc/{client.pid}/fd/{fd}")
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        self.assertTrue(inodes)
        for table in "tcp", "tcp6", "udp", "udp6":
            for line in read(f"/proc/{client.pid}/net/{table}").splitlines()[1:]:
                self.assertNotIn(line.split()[9], inodes, table)
        for line in read(f"/proc/{client.pid}/net/unix").splitlines()[1:]:
            words = line.split()
            listening = int(words[3], 16) & 0x10000
            self.assertFalse(listening and words[6] in inodes, line)

    def test_forged_key(self):
        server, _ = self.ready()
        self.run_saver(server)
        program = int(self.records()["job_pid"])
        said = server.ask("run", job=9, attempt=1, program="true", key="forged")
        self.assertEqual(said["answer"], 7)
        said = server.ask("vacate", job=1, attempt=1, reason=5, key="forged")
        self.assertEqual(said["error"], "NotPermitted")
        said = server.ask("state", key="forged")
        self.assertEqual(said["error"], "NotPermitted")
        self.assertEqual(server.ask("state")["state"]["attempts"], "1.1")
        self.assertTrue(alive(program))

    def test_superseded_is_killed(self):
        server, _ = self.ready(lease_ms=1500)
        self.run_saver(server)
        program = int(self.records()["job_pid"])
        server.ask("verdict", job=1, attempt=1, value=2)
        until(lambda: not self.attempts() and not alive(program), "the attempt to go")
        self.assertEqual(server.all("ended"), [])

    def test_hung_shepherd(self):
        server, _ = self.ready()
        self.run_job(server, 1, program="sleep", arguments=["1000"], save_ms=500)
        record = self.records()
        program = int(record["job_pid"])
        os.kill(int(record["shepherd_pid"]), signal.SIGSTOP)
        self.owner("active")
        until(lambda: not alive(program), "the job to be killed without its shepherd")
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["OWNER"], end)

    def test_damaged_record(self):
        server, client = self.ready()
        self.run_job(server, 1, program="sleep", arguments=["1000"])
        self.run_saver(server, 2)
        program = int(self.records()["job_pid"])
        client.kill()
        client.wait()
        with open(self.state + "/attempts/1.1/assignment", "r+b") as file:
            file.write(b"garbage")
        self.client()
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["LOST"])
        until(lambda: not alive(program), "its processes to go")
        self.assertEqual(len(os.listdir(self.state + "/damaged")), 1)
        self.assertIn("set aside", self.log())
        self.owner("active")
        self.assertEqual(server.wait("ended", job=2)["ended"], END["OWNER"])

    def test_orderly_stop(self):
        server, client = self.ready()
        self.run_saver(server)
        client.send_signal(signal.SIGTERM)
        end = server.wait("ended", job=1)
        self.assertEqual((end["ended"], end["generation"]), (END["DRAINED"], 1), end)
        server.wait("withdrawn")
        self.assertEqual(client.wait(LIMIT), 0)
        self.assertEqual(self.attempts(), [])

    def test_second_signal(self):
        server, client = self.ready()
        # It ignores the request to leave, and has much time to save.
        self.run_job(server, 1, program="sh", save_ms=50_000,
                     arguments=["-c", "trap '' TERM; echo > deaf; while :; do sleep 1; done"])
        server.wait("started", job=1)
        until(lambda: os.path.exists(self.state + "/attempts/1.1/work/deaf"), "a deaf job")
        client.send_signal(signal.SIGTERM)
        until(lambda: "jobs are asked to leave" in self.log(), "the stop")
        client.send_signal(signal.SIGTERM)
        self.assertEqual(client.wait(LIMIT), 0)
        self.assertTrue(alive(int(self.records()["shepherd_pid"])))

    def test_removed_is_killed(self):
        server, _ = self.ready()
        self.run_saver(server)
        self.assertEqual(server.ask("vacate", job=1, attempt=1, reason=5)["answer"], 0)
        end = server.wait("ended", job=1)
        self.assertEqual((end["ended"], end["generation"]), (END["REMOVED"], 0), end)

    def test_orders_of_a_replaced_server(self):
        server, client = self.ready()
        self.assertEqual(server.ask("state").get("answer"), 0)
        # The server's own term is 3; orders with a smaller one are refused.
        for what in (dict(do="run", job=1, attempt=1, program="true"), dict(do="state"),
                     dict(do="vacate", job=1, attempt=1, reason=4)):
            said = server.ask(term=2, **what)
            self.assertEqual((said.get("error"), said.get("code")), ("Conflict", "server.term"), said)
        self.assertEqual(self.attempts(), [])
        # A newer term is accepted, and then the previous one no longer.
        self.assertEqual(server.ask("state", term=4).get("answer"), 0)
        self.assertEqual(server.ask("state").get("code"), "server.term")

    def test_late_order_is_stale(self):
        server, client = self.ready(lease_ms=1500)
        self.stop(client)
        said = queue.Queue()
        asking = threading.Thread(target=lambda: said.put(
            server.ask("run", job=1, attempt=1, program="sleep", arguments=["1000"])))
        asking.start()
        # Longer than the lease.
        time.sleep(2)
        client.send_signal(signal.SIGCONT)
        asking.join()
        answer = said.get()
        self.assertEqual(answer.get("answer"), 7, answer)
        self.assertIn("arrived too late", answer["reason"])
        self.assertEqual(self.attempts(), [])
        # The next order is a new one.
        until(lambda: server.ask("run", job=1, attempt=2, program="true").get("answer") == 0,
              "an accepted order")
        server.wait("ended", job=1, attempt=2, ended=END["DONE"])

    def test_stopped_client_forgives_the_monitor(self):
        server, client = self.ready(lease_ms=18000)
        self.run_saver(server)
        program, monitor = int(self.records()["job_pid"]), self.monitor_pid()
        self.stop(client)
        # Longer than a monitor may be silent (cmake/options.cmake); it is not.
        time.sleep(5.6 if "/asan" in BUILD else 1.6)
        renewals = len(server.all("renewed"))
        client.send_signal(signal.SIGCONT)
        server.wait("renewed", count=renewals + 1)
        self.assertTrue(alive(program), "the job still runs")
        self.assertEqual(self.monitor_pid(), monitor)
        self.assertNotIn("is silent", self.log())

    def test_missing_shepherd(self):
        # Missing at the start: the client does not start.
        missing = self.folder + "/no-shepherd"
        self.assertEqual(self.client("--set", "shepherd_program=" + missing).wait(LIMIT), 2)
        self.assertIn(missing, self.log())
        # Removed later.
        shutil.copy(f"{BUILD}/bin/sublet-shepherd", missing)
        server, _ = self.ready("--set", "shepherd_program=" + missing)
        os.unlink(missing)
        self.run_job(server, 1)
        end = server.wait("ended", job=1)
        self.assertEqual(end["ended"], END["LOST"], end)
        self.assertIn(missing, end["reason"])
        # After each consecutive failure orders are refused for longer.
        accepted, job = [], 2
        while len(accepted) < 3:
            asked = time.monotonic()
            said = server.ask("run", job=job, attempt=1, program="true")
            if said["answer"] == 0:
                accepted.append((asked, time.monotonic()))
                server.wait("ended", job=job)
                job += 1
            else:
                self.assertEqual(said["answer"], 6, said)
                self.assertIn("failures", said["reason"])
        # The pause after the second failure takes at least two seconds.
        self.assertGreater(accepted[2][1] - accepted[1][0], 1.9)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: without it jobs have the client's account")
    def test_closed_folder_above_its_state(self):
        closed = self.folder + "/closed"
        os.mkdir(closed, 0o700)
        self.assertEqual(self.client(state=closed + "/a/state").wait(LIMIT), 1)
        said = self.log()
        self.assertIn("chmod o+x " + os.path.realpath(closed) + "'", said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual(os.listdir(closed), [])
        os.chmod(closed, 0o711)
        server = self.server()
        self.client(state=closed + "/a/state")
        self.wait_idle(server)
        self.run_job(server, 1, program="sh",
                     arguments=["-c", "test -r $SUBLET_STATUS && cd $SUBLET_CHECKPOINT_DIR && >a"])
        self.assertEqual(server.wait("ended", job=1)["ended"], END["DONE"])

    def test_refuses_while_owner_is_here(self):
        server, _ = self.ready()
        self.owner("active")
        server.wait("state", away=False)
        self.assertEqual(server.ask("run", job=1, attempt=1, program="true")["answer"], 1)
        self.owner("away")
        until(lambda: server.ask("run", job=1, attempt=2, program="true")["answer"] == 0,
              "an accepted order")
        server.wait("ended", job=1)
        # A newer attempt of the job has been here: the old one is refused.
        self.assertEqual(server.ask("run", job=1, attempt=1, program="true")["answer"], 5)
        self.assertEqual(server.ask("run", job=2, attempt=1, program="true",
                                    memory=1 << 60)["answer"], 3)
        self.assertEqual(server.ask("run", job=2, attempt=1, program="true",
                                    disk=1 << 60)["answer"], 3)


if __name__ == "__main__":
    # Must be executable by a slot's account, too: not an interpreter in a home folder.
    sys.executable_real = next(p for p in ("/usr/bin/python3", sys.executable)
                               if os.path.exists(p))
    unittest.main()

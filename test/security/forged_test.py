"""A forged `run` or `vacate` from another local process is refused.

A genuine client runs a genuine job. A relay in front of the server's socket has recorded
all traffic, so the forgers have everything there is to steal: the keys of both objects, the
session's key, the machine's secret, every message. They are other local processes, under
another uid, under that of the job's user, and under that of the job itself. Their calls are
real ones, through a real ORB (forger.cc), and hand-made bytes. The job must not be affected,
each call must be refused explicitly or its connection closed, and the client must receive
only orders that the server meant to send."""

import contextlib
import json
import os
import pwd
import re
import socket
import struct
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import giop
import harness

ROOT_ONLY = unittest.skipUnless(os.geteuid() == 0, "needs root: other users")
NOBODY = 65534
USER = next((p for p in pwd.getpwall() if 0 < p.pw_uid < NOBODY), None)

NOT_TRUSTED = "not trusted: it runs as uid %d" % NOBODY

# protocol/frame.h
FRAME = struct.Struct("<IHHQIIIIq4q")
MAGIC = 0x314C4253
HELLO, PRESENCE, ACK, LEASE, VACATE, KILL, QUERY, STATUS = 1, 2, 3, 16, 17, 18, 20, 32
ACTIVE, RUNNING, REMOVED = 1, 2, 5


def frame(kind, job=0, attempt=0, state=0, reason=0, instant=0):
    return FRAME.pack(MAGIC, kind, 0, job, attempt, 1, state, reason, instant, 0, 0, 0, 0)


def as_user(uid, function):
    """Calls function() in a process of that user; the result must be valid in JSON."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            with os.fdopen(write, "w") as told:
                json.dump(function(), told)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        result = json.load(told)
    os.waitpid(child, 0)
    return result


def whole_log(pool, name):
    with open(os.path.join(pool.folder, name + ".log")) as log:
        return log.read()


class Forger:
    """forger.cc, run as a given user with the given stolen keys."""

    def __init__(self, pool, server, loot, uid=None):
        words = ["%s=%s" % (name, value.hex() if isinstance(value, bytes) else value)
                 for name, value in loot.items()]
        other = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.process = subprocess.Popen([pool.public(os.path.join(harness.UNIT, "forger")), server] + words,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd="/", **other)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")


class FakeServer:
    """fake-server (client/testing), run as a given user at the pool's socket."""

    def __init__(self, pool, uid):
        folder = os.path.dirname(pool.socket)
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o777)
        self.out = os.path.join(pool.folder, "fake.out")
        with open(self.out, "w") as out:
            self.process = subprocess.Popen(
                [pool.public(os.path.join(harness.UNIT, "fake-server")), pool.socket, "6000"], cwd="/",
                stdin=subprocess.PIPE, stdout=out, user=uid, group=uid, extra_groups=[])
        harness.wait_for(self.said, "the false server")
        os.chmod(folder, 0o755)
        self.pool = pool

    def said(self):
        """The events that it printed."""
        with open(self.out) as out:
            return [json.loads(line)["event"] for line in out if line.endswith("\n")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Scene:
    """A pool in which USER's job runs on curly, and the keys stolen there."""

    def __init__(self, pool):
        self.pool = pool
        pool.start_server()
        self.saver = harness.Saver(pool)
        self.job = self.submit()
        self.relay = giop.Relay(pool.socket)
        self.curly = pool.client("curly").start()
        self.saver.wait_said("start")
        pool.wait_state(self.job, "running")
        self.attempt, = self.curly.attempts()
        self.folder = os.path.join(self.curly.state, "attempts", self.attempt)
        self.record = self.curly.record(self.attempt)
        self.pid = int(self.record["job_pid"])
        self.slot = os.stat("/proc/%d" % self.pid).st_uid
        self.born = self.start_time()
        self.orders = harness.wait_for(lambda: self.told("run"), "the order to run")
        # New callers reach the server itself, which then sees their user ids.
        self.relay.step_aside()
        self.loot = self.steal()

    def submit(self):
        if USER is None or os.geteuid() != 0:
            return self.saver.submit(0, "nap")
        done = subprocess.run(
            [self.pool.public(os.path.join(harness.BIN, "sublet")), "submit", "--json", "--name",
             "victim", "--", self.pool.public(os.path.join(harness.UNIT, "saver")), self.saver.folder, "0", "nap"],
            cwd="/", env=self.pool.environment(), user=USER.pw_uid, group=USER.pw_gid,
            extra_groups=[], text=True, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["jobs"]["first"]

    def told(self, operation):
        """The server's calls of this operation at the client."""
        return [c for c in self.relay.calls(1) if c.operation == operation]

    def steal(self):
        run = self.orders[0]
        identity = self.read(os.path.join(self.curly.state, "machine"))
        return {"session": run.body[4:20], "client": run.key, "holder": self.attach().key,
                "secret": urllib.parse.unquote_to_bytes(identity["secret"]),
                "machine": identity["machine"], "job": self.job,
                "attempt": int(self.attempt.split(".")[1]), "generation": 1}

    @staticmethod
    def read(path):
        with open(path) as f:
            return dict(line.rstrip("\n").split(" ", 1) for line in f if " " in line)

    def reference(self):
        """The Executing Client's reference, as it passed it to the server."""
        return "IOR:01000000" + self.attach().body.hex()

    def attach(self):
        return [c for c in self.relay.calls(0) if c.operation == "attach"][-1]

    def start_time(self):
        with open("/proc/%d/stat" % self.pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[19]

    def steps(self):
        with open(os.path.join(self.folder, "status"), "rb") as status:
            return int.from_bytes(status.read(52)[48:], "little", signed=True)

    def strangers(self):
        """The forgers: (name, uid)."""
        return {"another user": NOBODY, "the job's user": USER.pw_uid, "the job itself": self.slot}


@contextlib.contextmanager
def scene():
    with harness.Pool() as pool:
        yield Scene(pool)


class Forged(unittest.TestCase):
    def check_unharmed(self, s, machines=("curly",), joined=1):
        """The same process still runs, the server's records agree, and no forged order was
        executed."""
        logs = s.pool.all_logs()
        self.assertTrue(harness.alive(s.pid), "the job's process lives\n" + logs)
        self.assertEqual(s.start_time(), s.born, "and is the same")
        self.assertEqual(s.curly.attempts(), [s.attempt], logs)
        self.assertEqual(s.curly.record(s.attempt), s.record)
        before = s.steps()
        harness.wait_for(lambda: s.steps() > before + 5, "the job to go on\n" + logs)
        self.assertEqual([len(s.saver.said(w)) for w in ("start", "save", "done")], [1, 0, 0])
        details = s.pool.job(s.job)
        self.assertEqual((details["state"], details["attempts"], details["evictions"]),
                         ("running", 1, 0), details)
        self.assertEqual([a["number"] for a in details["attempt_list"]], [1], details)
        # The orders that the client really received.
        self.assertEqual(len(s.told("run")), 1)
        self.assertEqual(s.told("vacate"), [])
        text = whole_log(s.pool, "client-curly")
        self.assertEqual(len(re.findall(r"accepted: ", text)), 1, text)
        for word in ("must leave", "no longer counts", "is over", "is here", "did not obey",
                     "refused:"):
            self.assertNotIn(word, text)
        text = whole_log(s.pool, "server")
        names = re.findall(r"machine \d+ (\S+) joined", text)
        self.assertEqual((sorted(set(names)), names.count("curly")), (list(machines), joined), text)

    def check_obeys_its_server(self, s):
        """The same client executes orders of its own server."""
        s.pool.sublet("rm", s.job)
        harness.wait_for(lambda: not harness.alive(s.pid), "the job to go\n" + s.pool.all_logs())
        harness.wait_for(lambda: s.told("vacate"), "the order to leave")
        self.assertEqual(s.pool.job_state(s.job), "removed")

    def ask_all(self, forger, expected):
        for order, answer in expected.items():
            with self.subTest(order):
                self.assertRegex(forger.ask(order), "^%s$" % answer)

    NO_OBJECT = "refused OBJECT_NOT_EXIST"
    NO_OPERATION = "refused BAD_OPERATION"
    NO_SESSION = "refused NotFound session.unknown"
    ELSEWHERE = "refused NotPermitted client.elsewhere"
    NO_ADMINISTRATOR = "refused NotPermitted admin.only"
    # With everything stolen, but not as the session's user.
    ORDERS = {
        "client:run": NO_OBJECT, "client:vacate": NO_OBJECT, "client:state": NO_OBJECT,
        "client:may_run": NO_OBJECT, "holder:run": NO_OPERATION, "holder:vacate": NO_OPERATION,
        "holder:state": NO_OPERATION, "fixed:run": NO_OPERATION, "fixed:vacate": NO_OPERATION,
        "ping": NO_SESSION, "attach-own": NO_SESSION,
        "report_state": NO_SESSION, "withdraw": NO_SESSION, "started": NO_SESSION,
        "renew-nothing": NO_SESSION, "ended": NO_SESSION, "put-checkpoint": NO_SESSION,
        "stat-checkpoint": NO_SESSION, "get-checkpoint": NO_SESSION,
        "join-guessing": "refused NotPermitted machine.unknown",
    }

    ADMINISTRATION = ("drain", "resume", "evict", "set-shares", "set-quota",
                      "set-policies", "give-policies-back")
    # Reserved operations, also refused to administrators.
    RESERVED = ("reclaim", "lend", "evictions")

    @ROOT_ONLY
    def test_real_calls(self):
        with scene() as s:
            for who, uid in s.strangers().items():
                with self.subTest(who), Forger(s.pool, s.pool.socket, s.loot, uid) as forger:
                    self.ask_all(forger, self.ORDERS)
                    self.ask_all(forger, {k: self.NO_ADMINISTRATOR for k in self.ADMINISTRATION})
                    self.ask_all(forger, {"join-as mallory": self.NO_ADMINISTRATOR,
                                          "tick": self.NO_ADMINISTRATOR,
                                          "attach " + s.reference(): self.NO_SESSION})
                    # The secret alone is useless while its owner is connected; the server
                    # pings it each time.
                    for _ in range(5):
                        self.assertEqual(forger.ask("join-stealing"),
                                         "refused Conflict machine.live")
                    if uid != USER.pw_uid:
                        mine = "refused NotPermitted (job.not_yours|caller.nameless)"
                        self.ask_all(forger, {"remove": mine, "hold": mine, "show": mine})
                self.check_unharmed(s)
            self.check_obeys_its_server(s)

    def test_guessed_key(self):
        """The user under whom everything runs, with everything except the key."""
        with scene() as s:
            loot = dict(s.loot, session=os.urandom(16), holder=s.loot["holder"][:-16] + bytes(16))
            with Forger(s.pool, s.pool.socket, loot) as forger:
                self.ask_all(forger, {k: v for k, v in self.ORDERS.items()
                                      if not k.startswith("holder") and k not in
                                      ("ping", "attach-own")})
                self.ask_all(forger, {k: self.NO_OBJECT
                                      for k in ("holder:vacate", "ping", "attach-own")})
                self.ask_all(forger, {k: "refused Invalid not.served"
                                      for k in self.RESERVED})
            self.check_unharmed(s)
            self.check_obeys_its_server(s)

    @ROOT_ONLY
    def test_raw_messages(self):
        """Replays the genuine messages, and sends hand-made orders, as bytes."""
        with scene() as s:
            key, session = s.loot["client"], struct.pack("<I16s", 16, s.loot["session"])
            leave = session + struct.pack("<IQII", 1, s.job, s.loot["attempt"], REMOVED)
            forged = {"run": s.orders[0].data, "vacate": giop.request(key, b"vacate", leave),
                      "state": giop.request(key, b"state", session),
                      "vacate the session": giop.request(s.loot["holder"], b"vacate", leave)}
            # Calls that every user may make are not orders.
            forged.update({"again: " + call.operation: call.data for call in s.relay.calls(0)
                           if call.operation not in ("about", "list", "show")})
            self.assertLessEqual({"again: " + o for o in ("join", "attach", "renew", "started")},
                                 set(forged))
            for who, uid in s.strangers().items():
                for name, data in forged.items():
                    with self.subTest(who + ", " + name):
                        said, = as_user(uid, lambda: giop.answers(s.pool.socket, data))
                        self.assertIn(said, ("user exception", "system exception", "closed"))
                with self.subTest(who + ", all at once"):
                    said = as_user(uid, lambda: giop.answers(s.pool.socket,
                                                             b"".join(forged.values())))
                    self.assertNotIn("silence", said)
                self.check_unharmed(s)
            self.check_obeys_its_server(s)

    @ROOT_ONLY
    def test_references_that_lead_elsewhere(self):
        """Whatever reference an administrator's machine passes, the server calls this machine
        or none: no other workstation, no other address."""
        with scene() as s, contextlib.ExitStack() as stack:
            traps = [stack.enter_context(socket.socket(f))
                     for f in (socket.AF_INET, socket.AF_UNIX)]
            traps[0].bind(("127.0.0.1", 0))
            trap = os.path.join(s.pool.folder, "trap.sock")
            traps[1].bind(trap)
            for each in traps:
                each.listen()
                each.setblocking(False)
            key = urllib.parse.quote(s.loot["client"])
            own = []
            for name in ("mallory", "morgan"):
                with Forger(s.pool, s.pool.socket, s.loot) as forger:
                    self.assertEqual(forger.ask("join-as " + name), "obeyed")
                    self.ask_all(forger, {
                        "attach-noted giop:unix:" + trap: self.ELSEWHERE,
                        "attach-noted giop:tcp:127.0.0.1:9": self.ELSEWHERE,
                        "attach-nil": "refused Invalid field.invalid"})
                    # A reference that claims another connection, for every possible one,
                    # curly's among them; only its own is valid.
                    place = "giop:unix:%s %%08x" % s.pool.socket
                    own.append([n for n in range(1, 1000)
                                if forger.ask("attach-noted " + place % n) == "obeyed"])
                    # The ORB binds these to the caller's connection: the server then reaches
                    # this machine or none.
                    for reference, found in {
                            s.reference(): "obeyed",
                            "corbaloc::192.0.2.1:2809/" + key: "nobody",
                            "corbaloc::127.0.0.1:%d/%s" % (traps[0].getsockname()[1], key):
                                "nobody",
                            "corbaloc:omniunix:%s:/%s" % (trap, key): "nobody",
                            "corbaloc:omniunix:%s:/%s" % (s.pool.socket, key): "nobody"}.items():
                        with self.subTest(reference):
                            asked = len(s.told("state"))
                            self.assertEqual(forger.ask("attach " + reference), "obeyed")
                            self.assertEqual(forger.ask("knock " + name), found)
                            self.assertEqual(len(s.told("state")), asked, "curly was not asked")
                    self.assertEqual(forger.ask("attach-own"), "obeyed")
                    self.assertEqual(forger.ask("knock " + name), "obeyed")
                    self.assertEqual(forger.ask("withdraw"), "obeyed")
            self.assertEqual([len(n) for n in own], [1, 1])
            self.assertLess(own[0], own[1], "the forger's own, later than curly's")
            for each in traps:
                with self.assertRaises(BlockingIOError, msg="the server dialled a trap"):
                    each.accept()
            self.check_unharmed(s, machines=("curly", "mallory", "morgan"))
            self.check_obeys_its_server(s)

    # -- the workstation's own sockets --------------------------------------

    @staticmethod
    def listening(pool):
        """Program -> names of the sockets on which it listens."""
        def table(name):
            with open("/proc/net/" + name) as lines:
                return [line.split() for line in lines][1:]
        names = {"socket:[%s]" % line[6]: os.path.basename(line[7]) for line in table("unix")
                 if len(line) > 7 and int(line[3], 16) & 0x10000}
        for net in ("tcp", "tcp6", "udp", "udp6"):
            names.update({"socket:[%s]" % line[9]: net for line in table(net)})
        found = {}
        for pid in pool.processes():
            fds = "/proc/%d/fd" % pid
            open_files = [os.readlink(os.path.join(fds, fd)) for fd in os.listdir(fds)]
            program = os.path.basename(os.readlink("/proc/%d/exe" % pid))
            found.setdefault(program, set()).update(names[f] for f in open_files if f in names)
        return found

    @staticmethod
    def say(path, packets):
        """The outcome: not let in, closed, heard (it answered), silence."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(10)
            try:
                s.connect(path)
                for packet in packets:
                    s.send(packet)
                return "heard" if s.recv(4096) else "closed"
            except PermissionError:
                return "not let in"
            except (BrokenPipeError, ConnectionResetError):
                return "closed"
            except socket.timeout:
                return "silence"

    def forged_packets(self, s):
        job = s.job, s.loot["attempt"]
        leave = struct.pack("<I16sIQII", 16, s.loot["session"], 1, *job, REMOVED)
        return {"vacate": [frame(VACATE, *job, reason=REMOVED)],
                "kill": [frame(KILL, *job, reason=REMOVED)],
                "lease over": [frame(LEASE, *job, instant=1)],
                "owner here": [frame(PRESENCE, state=ACTIVE)],
                "as the client": [frame(HELLO), frame(KILL, *job, reason=REMOVED)],
                "as the shepherd": [frame(HELLO, *job), frame(ACK, *job)],
                "query": [frame(QUERY, *job)],
                "nothing": [],
                "giop run": [s.orders[0].data],
                "giop vacate": [giop.request(s.loot["client"], b"vacate", leave)]}

    @ROOT_ONLY
    def test_local_sockets(self):
        with scene() as s:
            monitor = os.path.join(s.curly.state, "monitor.sock")
            control = os.path.join(s.folder, "control")
            # These are all sockets; the client itself listens on none.
            self.assertEqual(self.listening(s.pool),
                             {"sublet-server": {"server.sock"}, "sublet-client": set(),
                              "sublet-loadmon": {"monitor.sock", "owner.sock", "agent.sock"},
                              "sublet-shepherd": {"control"}, "saver": set()})
            packets = self.forged_packets(s)

            def say_all(uid):
                return as_user(uid, lambda: {name: [self.say(path, p) for path in
                                                    (monitor, control)]
                                             for name, p in packets.items()})
            for who, uid in s.strangers().items():
                with self.subTest(who):
                    for name, said in say_all(uid).items():
                        self.assertEqual(said, ["not let in"] * 2, name)
            self.check_unharmed(s)
            # Everybody may say here whether jobs may run, or that he is here, and nothing else.
            for name in ("owner.sock", "agent.sock"):
                path = os.path.join(s.curly.state, name)
                for who, uid in s.strangers().items():
                    with self.subTest("%s, to %s" % (who, name)):
                        said = as_user(uid, lambda: {name: self.say(path, p)
                                                     for name, p in packets.items()})
                        self.assertEqual(set(said.values()), {"closed"}, said)
            self.check_unharmed(s)
            # Even if the folders are accessible to all users.
            for path in (s.curly.state, os.path.dirname(s.folder), s.folder):
                os.chmod(path, 0o755)
            for path in (monitor, control):
                os.chmod(path, 0o777)
            for who, uid in s.strangers().items():
                with self.subTest(who + ", open folders"):
                    for name, said in say_all(uid).items():
                        self.assertEqual(said, ["closed"] * 2, name)
                    self.check_unharmed(s)
            self.check_obeys_its_server(s)

    def test_giop_on_local_sockets(self):
        """GIOP from the trusted user is not a frame and has no effect."""
        with scene() as s:
            packets = [p for n, ps in self.forged_packets(s).items() if n.startswith("giop")
                       for p in ps]
            packets.append(frame(KILL, s.job + 1, 1, reason=REMOVED))  # another job
            control = os.path.join(s.folder, "control")
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as c:
                c.settimeout(60)
                c.connect(control)
                for packet in packets + [frame(QUERY, s.job, s.loot["attempt"])]:
                    c.send(packet)
                answer = FRAME.unpack(c.recv(FRAME.size))
                self.assertEqual((answer[1], answer[6]), (STATUS, RUNNING))
            self.assertEqual(self.say(os.path.join(s.curly.state, "monitor.sock"), packets[:1]),
                             "closed")
            self.check_unharmed(s)
            self.check_obeys_its_server(s)

    # -- a false server -------------------------------------------------------

    @ROOT_ONLY
    def test_server_of_another_user(self):
        """Another user's socket in a folder that only root can write to: even if it was created
        before the folder was closed, the client sends nothing."""
        with harness.Pool() as pool, FakeServer(pool, NOBODY) as fake:
            curly = pool.client("curly").start()
            for sentence in (NOT_TRUSTED, "not connected to the server: "):
                harness.wait_for(lambda: sentence in whole_log(pool, "client-curly"), sentence)
            self.assertIsNone(curly.process.poll())
            curly.stop()
            self.assertEqual(fake.said(), ["serving"])
            # The same socket is accepted if the administrator configures its user.
            curly.extra += ["--set", "server_uid=%d" % NOBODY]
            curly.start()
            harness.wait_for(lambda: "attached" in fake.said(), "a trusted server")
            curly.stop()

    @ROOT_ONLY
    def test_false_server_while_a_job_runs(self):
        with harness.Pool(server_sets=["scheduling.lease=10 min"]) as pool:
            s = Scene(pool)
            pool.kill_supervisor()
            with FakeServer(pool, NOBODY) as fake:
                harness.wait_for(lambda: NOT_TRUSTED in whole_log(pool, "client-curly"),
                                 "the client to turn away\n" + pool.all_logs())
                before = s.steps()
                harness.wait_for(lambda: s.steps() > before + 5, "the job to go on")
                self.assertEqual(fake.said(), ["serving"])
            pool.start_server()
            harness.wait_for(lambda: "the server is back" in whole_log(pool, "client-curly"),
                             "the adoption\n" + pool.all_logs())
            self.check_unharmed(s, joined=2)
            pool.sublet("rm", s.job)
            harness.wait_for(lambda: not harness.alive(s.pid), "the job to go")

    def test_folder_that_others_may_write_to(self):
        with harness.Pool() as pool:
            os.makedirs(os.path.dirname(pool.socket))
            os.chmod(os.path.dirname(pool.socket), 0o777)
            curly = pool.client("curly").start()
            self.assertEqual(curly.process.wait(60), 1)
            self.assertIn("could impersonate the server", pool.log("client-curly"))


if __name__ == "__main__":
    unittest.main()

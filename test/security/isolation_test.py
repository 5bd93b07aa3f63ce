"""Actions forbidden to jobs and to other users: signals to the daemons, access to the spool,
to other jobs' files and to other users' jobs. And the exact environment of a job. With root:
each slot has its own user id. (Forged orders: forged_test.py.)"""

import json
import os
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

WALLS_ONLY = unittest.skipUnless(harness.has_walls(), "needs namespaces")
ROOT_ONLY = unittest.skipUnless(os.geteuid() == 0, "needs root: slots with user ids of their own")


class Isolation(unittest.TestCase):
    def shell(self, pool, script, *options):
        return pool.output(pool.submit(*options, "--name", "probe", "--", "sh", "-c", script)[0])

    @unittest.skipUnless(os.geteuid() == 0 or harness.has_walls() or harness.landlock() >= 6,
                         "needs root, namespaces or Linux 6.12")
    def test_job_cannot_signal_the_daemons(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            pids = [pool.supervisor.pid, pool.server_pid(), curly.process.pid,
                    curly.monitor_pids()[0]]
            script = ("for p in %s; do for s in STOP 9; do kill -$s $p && echo killed $p; "
                      "done; done; exit 0" % " ".join(map(str, pids)))
            details, text = self.shell(pool, script)
            self.assertEqual(details["state"], "done", details)
            self.assertNotIn("killed", text)
            refused = text.count("not permitted") + text.count("No such process")
            self.assertEqual(refused, 2 * len(pids), text)
            for pid in pids:
                self.assertTrue(harness.alive(pid))

    @ROOT_ONLY
    def test_without_root(self):
        """Some of these tests, once more as an ordinary user."""
        tests = ["test_wrong_grants_are_refused"]
        if harness.has_walls(nobody=True):
            tests += ["test_jobs_leave_each_other_nothing", "test_what_is_not_granted_is_not_seen",
                      "test_no_network", "test_what_a_job_leaves_is_removed",
                      "test_users_find_nothing_of_each_other"]
        if len(tests) > 1 or harness.landlock() >= 6:
            tests.append("test_job_cannot_signal_the_daemons")
        for test in tests:
            harness.run_as_nobody(self, __file__, "Isolation." + test)

    @ROOT_ONLY
    def test_job_cannot_read_the_spool_or_others_files(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            other = pool.submit("--name", "secret", "--", "sh", "-c",
                                "echo secret > mine; chmod 644 mine; sleep 300")[0]
            attempt = harness.wait_for(
                lambda: next((a for a in curly.attempts() if a.startswith("%d." % other)), None),
                "the other job")
            theirs = os.path.join(curly.state, "attempts", attempt)
            harness.wait_for(lambda: os.path.exists(os.path.join(theirs, "work", "mine")),
                             "its file")
            paths = [pool.state, os.path.join(pool.state, "pool.db"),
                     os.path.join(pool.state, "spool"), os.path.join(theirs, "work"),
                     os.path.join(theirs, "work", "mine"), os.path.join(theirs, "checkpoint"),
                     os.path.join(theirs, "order"), os.path.join(curly.state, "machine")]
            script = "; ".join(
                "if [ -d %s ]; then ls %s; else cat %s; fi > /dev/null 2>&1 && echo READ %s" %
                (p, p, p, p) for p in paths)
            details, text = self.shell(pool, script + "; exit 0")
            self.assertEqual(details["state"], "done", details)
            self.assertEqual(text, "", "nothing of these may be read")
            details, text = self.shell(pool, "id -u; stat -c %%u %s/work; exit 0" % theirs)
            mine, other_uid = text.split()[:2]
            self.assertNotEqual(mine, "0")
            self.assertNotEqual(mine, other_uid)
            pool.sublet("rm", other)

    @ROOT_ONLY
    def test_others_jobs_are_theirs(self):
        """Another user may list states, but not remove, inspect or fetch."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--name", "mine", "--", "echo", "mine")[0]
            pool.wait_state(job, "done")

            def as_nobody(*args):
                done = subprocess.run(
                    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                     pool.public(os.path.join(harness.BIN, "sublet"))] + list(map(str, args)), text=True,
                    cwd="/", env=pool.environment(), stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
                return done.returncode, done.stdout + done.stderr
            for args in (["rm", job], ["hold", job], ["priority", 5, job], ["show", job],
                         ["fetch", job, "--into", "/tmp"]):
                status, text = as_nobody(*args)
                self.assertEqual(status, 5, args[0] + ": " + text)
                self.assertIn("belongs to root", text)
            status, text = as_nobody("ls", "--all", "--user", "*")
            self.assertEqual(status, 0, text)
            self.assertNotIn("mine", text, "others' names are not shown")
            self.assertEqual(pool.job_state(job), "done")

    # What a job leaves for others, and what another sees of it.
    LEAVE = ("for f in /tmp /var/tmp /dev/shm /run/lock; do "
             "[ ! -d $f ] || echo secret > $f/left || echo CANNOT; done; "
             "python3 -c 'import ctypes; print(ctypes.CDLL(None).shmget(4711, 9, 0o1666))'; ")
    LOOK = ("for f in /tmp /var/tmp /dev/shm /run/lock; do ls -A $f 2>&- | grep -v ^sl-; done; "
            "python3 -c 'import ctypes; print(ctypes.CDLL(None).shmget(4711, 9, 0))'; ")

    @WALLS_ONLY
    def test_jobs_leave_each_other_nothing(self):
        """At once in two slots, and one after the other in one; and nothing to the owner."""
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", slots=2, grants=[]).start()
            pool.wait_machines(1)
            first = pool.submit("--", "sh", "-c", self.LEAVE + "touch ready; sleep 600")[0]
            ready = os.path.join(curly.state, "attempts", "%d.1" % first, "work", "ready")
            harness.wait_for(lambda: os.path.exists(ready), "the first job")
            self.assertEqual(self.shell(pool, self.LOOK)[1], "-1\n")
            pool.sublet("rm", first)
            harness.wait_for(lambda: not curly.attempts(), "the first job to go")
            for _ in range(4):
                text = self.shell(pool, self.LOOK + self.LEAVE)[1]
                self.assertRegex(text, r"\A-1\n\d+\n\Z")
            for folder in "/tmp", "/var/tmp", "/dev/shm", "/run/lock":
                self.assertFalse(os.path.exists(os.path.join(folder, "left")))

    # What one user's job has, and where another's looks for it: names, bytes, a process, a key, a
    # semaphore, addresses. The mark is in all of them.
    HAVE = """
import ctypes, os, socket, sys, time
mark = sys.argv[1]
with open("/tmp/" + mark, "w") as f: f.write(mark)
with open("/dev/shm/sem." + mark, "w") as f: f.write(mark)
os.symlink(mark, "/run/lock/" + mark)
libc = ctypes.CDLL(None)
print("key", libc.syscall(248, b"user", mark.encode(), b"x", 1, -4))  # add_key, user keyring
print("semaphore", libc.semget(4711, 1, 0o1666) >= 0)
print("queue", libc.mq_open(b"/" + mark.encode(), os.O_CREAT | os.O_RDWR, 0o666, None) >= 0)
abstract, named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
abstract.bind("\\0" + mark)
named.bind("/tmp/s-" + mark)
tcp = socket.socket()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tcp.bind(("127.0.0.1", int(sys.argv[2])))
udp.bind(("127.0.0.1", int(sys.argv[2])))
for one in abstract, named, tcp: one.listen()
open("ready", "w").close()
if len(sys.argv) > 3: time.sleep(600)
"""
    FIND = """
import ctypes, os, socket, sys
mark, port = sys.argv[1], int(sys.argv[2])
found = []
def look(name, text):
    if mark in text: found.append(name)
def read(path):
    try:
        with open(path, errors="replace") as f: return f.read()
    except OSError: return ""
for place in "/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/dev/mqueue", os.path.dirname(
        os.path.dirname(os.getcwd())):
    try: look("a name in " + place, " ".join(os.listdir(place)))
    except OSError: pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid():
        look("a process", read("/proc/%s/cmdline" % pid) + read("/proc/%s/environ" % pid))
look("a key", read("/proc/keys"))
libc = ctypes.CDLL(None)
if libc.semget(4711, 1, 0) >= 0: found.append("a semaphore")
if libc.mq_open(b"/" + mark.encode(), os.O_RDWR) >= 0: found.append("a queue")
look("an address in /proc/net/unix", read("/proc/net/unix"))
for name in "tcp", "udp":
    if ":%04X " % port in read("/proc/net/" + name): found.append("a port in /proc/net/" + name)
def connects(family, address):
    with socket.socket(family) as one:
        return one.connect_ex(address) == 0
if connects(socket.AF_UNIX, "\\0" + mark): found.append("the abstract socket")
if connects(socket.AF_INET, ("127.0.0.1", port)): found.append("the TCP port")
print(found)
"""
    # What of it the machine's own network shows (docs/guide-owner.md).
    SHOWN = ["an address in /proc/net/unix", "a port in /proc/net/tcp",
             "a port in /proc/net/udp", "the TCP port"]

    @WALLS_ONLY
    def test_users_find_nothing_of_each_other(self):
        """At once in two slots, and one after the other; without network, and with the machine's.
        With root they are different users."""
        mark = "sublet-test-%d" % os.getpid()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", slots=2, grants=[]).start()
            pool.wait_machines(1)

            def have(*more):
                return pool.submit("--", "python3", "-c", self.HAVE, mark, str(port), *more)[0]

            def find(*options):
                # The mark must not be in its own name, folder or environment.
                return pool.output(self.submit_as_another(
                    pool, *options, "--", "python3", "-c", self.FIND, mark, str(port)))[1]
            for options, shown in ((("--network", "none"), []), ((), self.SHOWN)):
                if options:
                    first = pool.submit(*options, "--", "python3", "-c", self.HAVE, mark,
                                        str(port), "stay")[0]
                else:
                    first = have("stay")
                ready = os.path.join(curly.state, "attempts", "%d.1" % first, "work", "ready")
                harness.wait_for(lambda: os.path.exists(ready), "the first job")
                if harness.landlock() < 6 and not options:
                    shown = shown + ["the abstract socket"]
                self.assertEqual(find(*options), "%s\n" % shown)
                pool.sublet("rm", first)
                harness.wait_for(lambda: not curly.attempts(), "the first job to go")
                self.assertEqual(find(*options), "[]\n")
            details, text = pool.output(have())
            self.assertEqual((details["state"], text),
                             ("done", "key -1\nsemaphore True\nqueue True\n"), details)
            self.assertEqual(find(), "[]\n")

    def submit_as_another(self, pool, *words):
        """A job of another user, if there can be one."""
        if os.geteuid() != 0:
            return pool.submit(*words)[0]
        done = subprocess.run(
            [*harness.AS_NOBODY, pool.public(os.path.join(harness.BIN, "sublet")), "submit",
             "--json", *words], text=True, cwd="/", env=pool.environment(), check=True,
            stdout=subprocess.PIPE)
        return json.loads(done.stdout)["jobs"]["first"]

    @WALLS_ONLY
    def test_what_a_job_leaves_is_removed(self):
        """Many files, deep folders, odd names, and a sparse file, in /tmp and in its folder."""
        # With sanitizers the daemons take minutes for so many.
        files, folders = (3334, 5000) if harness.SANITIZED else (33334, 20000)
        script = ("import os\n"
                  "for top in '/tmp', '/var/tmp', os.getcwd():\n"
                  "  os.chdir(top)\n"
                  "  with open('sparse', 'w') as f: f.truncate(1 << 40)\n"
                  "  for name in b'a\\nb', b'\\xff', b'-rf', b' ', b'x' * 255: os.mkdir(name)\n"
                  "  os.mkdir('closed', 0)\n"
                  "  os.mkdir('many')\n"
                  "  for i in range(%d): os.close(os.open('many/%%d' %% i, os.O_CREAT))\n"
                  "  for i in range(%d): os.mkdir('d'); os.chdir('d')\n"
                  "print('left')\n") % (files, folders)
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", grants=[]).start()
            pool.wait_machines(1)
            text = pool.output(pool.submit("--", "python3", "-c", script)[0])[1]
            self.assertEqual(text, "left\n")
            for folder in "attempts", "trash":
                harness.wait_for(lambda: not os.listdir(os.path.join(curly.state, folder)),
                                 folder + " to be empty")

    @WALLS_ONLY
    def test_what_is_not_granted_is_not_seen(self):
        with harness.Pool() as pool:
            pool.start_server()
            data = os.path.join(os.path.realpath(pool.folder), "data")
            os.mkdir(data)
            os.chmod(data, 0o755)
            with open(os.path.join(data, "file"), "w") as f:
                f.write("given\n")
            curly = pool.client("curly", grants=[data]).start()
            pool.wait_machines(1)
            unseen = [pool.state, pool.socket, os.path.join(curly.state, "machine"),
                      os.path.join(curly.state, "monitor.sock"), "/root/.profile"]
            script = "for p in %s; do [ -e $p ] && echo SEEN $p; done; cat %s/file" % (
                " ".join(unseen), data)
            self.assertEqual(self.shell(pool, script)[1], "given\n")

    @WALLS_ONLY
    def test_no_network(self):
        """Where the job or the machine wants none: no address of the machine, nor its own jobs'."""
        script = ("import socket, sys; one = socket.socket()\n"
                  "one.bind(('127.0.0.1', 0)); one.listen()\n"
                  "socket.create_connection(one.getsockname()).close()\n"
                  "print(sorted(name for _, name in socket.if_nameindex()))\n"
                  "with open('/proc/net/unix') as f: print(len(f.readlines()) - 1)\n")
        alone = "['lo']\n0\n"
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)

            def told(*options):
                return pool.output(pool.submit(*options, "--", "python3", "-c", script)[0])[1]
            self.assertNotEqual(told(), alone)
            self.assertEqual(told("--network", "none"), alone)
            curly.stop()
            pool.client("moe", extra=["--set", "network=none"]).start()
            harness.wait_for(lambda: any(m["name"] == "moe" and m["state"] == "idle"
                                         for m in pool.machines()), "moe")
            self.assertEqual(told(), alone)

    @ROOT_ONLY
    def test_without_namespaces_it_says_so(self):
        """The client lacks the right to make them; jobs run, and /tmp is swept."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", prefix=["setpriv", "--bounding-set=-sys_admin",
                                         "--inh-caps=-sys_admin"]).start()
            pool.wait_machines(1)
            log = pool.log("client-curly")
            self.assertEqual(log.count("namespaces cannot be created (Operation not permitted)"), 1)
            name = "/tmp/sublet-test-%d" % os.getpid()
            self.assertEqual(self.shell(pool, "echo shared > %s; cat %s" % (name, name))[1],
                             "shared\n")
            self.assertFalse(os.path.exists(name))

    @ROOT_ONLY
    def test_without_user_namespaces_it_wants_to_be_told(self):
        """In a changed root the kernel permits an ordinary user none."""
        with harness.Pool(["pool.administrators=nobody"]) as pool:
            pool.start_server()
            elsewhere = os.path.join(pool.folder, "root")
            os.mkdir(elsewhere)
            prefix = ["unshare", "--mount", "sh", "-c",
                      'mount --rbind / "$0" && exec chroot --userspec=%d:%d --groups=adm "$0" "$@"' %
                      (harness.NOBODY, harness.NOBODY), elsewhere]
            if subprocess.run(prefix + ["true"]).returncode != 0:
                self.skipTest("this root may not mount")

            def client(name, *extra):
                return pool.client(name, prefix=prefix, extra=extra, grants=[],
                                   nobodys=True).start()
            self.assertEqual(client("curly").process.wait(harness.PATIENCE), 2)
            refused = pool.log("client-curly")
            self.assertIn("namespaces cannot be created (Operation not permitted)", refused)
            self.assertIn("set 'weak = true'", refused)
            moe = client("moe", "--set", "weak=true")
            pool.wait_machines(1)
            log = pool.log("client-moe")
            self.assertEqual(log.count("namespaces cannot be created"), 1)
            self.assertIn("this account's supplementary groups (adm)", log)
            script = "id -u; [ -w %s ] && echo its files" % os.path.join(moe.state, "machine")
            self.assertEqual(self.shell(pool, script)[1],
                             "%d\nits files\n" % harness.NOBODY)

    def test_wrong_grants_are_refused(self):
        with harness.Pool() as pool:
            link = os.path.join(os.path.realpath(pool.folder), "link")
            os.symlink("/etc", link)
            for grant, why in (("data", "not an absolute path"), ("/no/such", "No such file"),
                               (link, "use /etc instead")):
                curly = pool.client("curly", grants=[grant]).start()
                self.assertEqual(curly.process.wait(harness.PATIENCE), 2)
                log = pool.log("client-curly")
                self.assertIn("grants", log)
                self.assertIn(why, log)

    def test_environment(self):
        """Compares the environment that a job prints."""
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            script = ("env | grep -v '^_=' | sort; pwd; umask; ulimit -c; cat /proc/self/stat | "
                      "cut -d' ' -f5-6; ls -l /proc/self/fd | grep -c ' -> '; readlink "
                      "/proc/self/fd/0; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; id -u; id -G")
            details, text = self.shell(pool, script, "--env", "COLOUR=blue")
            self.assertEqual(details["state"], "done", details)
            lines = text.split("\n")
            idle = [line for line in lines if line.startswith("SUBLET_MEAN_IDLE=")]
            self.assertGreaterEqual(int(idle[0].split("=")[1]), 7200)
            lines.remove(idle[0])
            work = os.path.join(curly.state, "attempts", "%d.1" % details["id"], "work")
            folder = os.path.dirname(work)
            expected = sorted(["COLOUR=blue", "HOME=" + work, "TMPDIR=" + work, "PWD=" + work,
                               "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
                               "SUBLET_JOB=%d" % details["id"], "SUBLET_ATTEMPT=1",
                               "SUBLET_CHECKPOINT_DIR=" + folder + "/checkpoint",
                               "SUBLET_STATUS=" + folder + "/status"])
            self.assertEqual(sorted(lines[:len(expected)]), expected)
            rest = lines[len(expected):]
            self.assertEqual(rest[0], work)
            self.assertEqual(rest[1], "0077")
            self.assertEqual(rest[2], "0", "no core files")
            # The job leads its own session and process group.
            group, session = rest[3].split()
            self.assertEqual(group, session)
            self.assertNotEqual(int(session), os.getsid(curly.process.pid))
            self.assertEqual(int(rest[4]), 4, "0, 1, 2 and ls's own: " + text)
            self.assertEqual(rest[5], "/dev/null")
            self.assertEqual(rest[6].split()[1], "0" * 16, "no signal blocked")
            self.assertEqual(rest[7].split()[1], "0" * 16, "none ignored")
            if os.geteuid() == 0:
                self.assertNotEqual(rest[9], "0")
                self.assertEqual(rest[9], rest[10], "no groups but its own")


if __name__ == "__main__":
    unittest.main()

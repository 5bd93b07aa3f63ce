"""A kernel, or a container, without one of the parts from which the walls of jobs are made: each
switched off in turn, with a client run by root and one run by an ordinary user. The client names it
once at its start and says what jobs can do for lack of it, or does not start, and jobs run.

Calls are refused by a filter of system calls (without_calls.py), control groups are covered in a
mount namespace. An older Landlock cannot be played: client/shepherd/domain_test.cc asks for one."""

import os
import platform
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import without_calls

CGROUPS = "/sys/fs/cgroup"
# One hierarchy for all parts: there a part cannot be covered alone.
V2_ALONE = os.path.exists(CGROUPS + "/cgroup.controllers")
AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled"

# What the client says.
NO_PLACES = ("Jobs see home folders and all processes and devices, and share /tmp, /var/tmp and "
             "/dev/shm with everybody on this machine%s: %s cannot be created (%s).")
MOMENT = ", and processes that they leave may outlive them for a moment"
MEMORY = "Jobs can read and change the memory of this account's other processes"
ABSTRACT = "Jobs can connect to abstract sockets of the sessions on this machine"
SIGNALS = ("Jobs can signal this account's other processes, the client's too, and connect to its "
           "abstract sockets")
NO_CUT = ("Jobs that are to have no network (--network none) are refused here: network namespaces "
          "cannot be created (Invalid argument).")
CALLS = "Jobs may use every system call, also for keys and namespaces"
KILLS = "A job's processes are killed one by one, not all at once"
BY_SESSION = "Jobs are demoted by autogroup nice 19 instead of cpu.idle"
BY_CLASS = "Jobs are demoted by the idle class instead of cpu.idle"
LIMITS = "A job's memory limit is enforced per process and checked once a second"
COUNTS = "A job's processes are limited per account, or counted once a second"
TRAFFIC = "Jobs' network traffic is not counted"
# All of them, to see that nothing else is said.
KNOWN = ("Jobs see home folders", "Jobs that are to have no network", MEMORY, ABSTRACT, SIGNALS,
         CALLS, KILLS, BY_SESSION, BY_CLASS, LIMITS, COUNTS, TRAFFIC)

# Refused calls; what the trial of walls says of it; whether root needs the part.
NAMESPACES = (("mounts namespace=EINVAL", "namespaces", "Invalid argument", True),
              ("ipc namespace=EINVAL", "namespaces", "Invalid argument", True),
              ("processes namespace=EINVAL", "namespaces", "Invalid argument", True),
              ("users namespace=EPERM", "namespaces", "Operation not permitted", False),
              ("mount=EPERM", "namespaces", "Operation not permitted", True),
              ("cgroups namespace=EINVAL", "mounts", "Invalid argument", True))
# For these nothing weaker remains: without keyrings there are no keys, without disk priorities all
# are alike, and without clone3 a job joins its control group as its first step.
NEEDLESS = ("keyctl=ENOSYS", "keyctl=EPERM", "ioprio=ENOSYS", "clone3=ENOSYS")
# The folder of the v1 hierarchy, and what is said without it.
HIERARCHIES = (("unified", KILLS), ("cpu", BY_SESSION), ("memory", LIMITS), ("pids", COUNTS))


def elsewhere(script):
    """In a mount namespace of its own, after this script."""
    return ["unshare", "--mount", "sh", "-c", script + ' && exec "$0" "$@"']


@unittest.skipUnless(platform.machine() == "x86_64", "knows the numbers of x86-64's calls only")
@unittest.skipUnless(os.geteuid() == 0, "needs root: covers mounts, and runs clients of nobody's")
@unittest.skipUnless(harness.has_walls(nobody=True), "needs namespaces, also for nobody")
class MissingParts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = harness.Pool(["pool.administrators=nobody"])
        cls.addClassCleanup(cls.pool.close)
        cls.pool.start_server()
        cls.number = 0

    def client(self, prefix, root, *sets):
        """Started where a part is missing; alone."""
        for other in self.pool.clients.values():
            if other.process.poll() is None:
                other.stop()
        MissingParts.number += 1
        account = [] if root else harness.AS_NOBODY
        return self.pool.client("m%d" % self.number, prefix=prefix + account, grants=[],
                                extra=[word for one in sets for word in ("--set", one)],
                                nobodys=not root).start()

    def serving(self, prefix, root, *sets):
        client = self.client(prefix, root, *sets)

        def serves():
            self.assertIsNone(client.process.poll(), self.pool.log("client-" + client.name))
            return any(m["name"] == client.name and m["state"] == "idle"
                       for m in self.pool.machines())
        harness.wait_for(serves, client.name)
        return client

    def refused(self, prefix, root, *sets):
        """What a client says that does not start."""
        client = self.client(prefix, root, *sets)
        self.assertEqual(client.process.wait(harness.PATIENCE), 2)
        return self.pool.log("client-" + client.name)

    def check(self, prefix, root, sentences, *sets):
        """The client says these, once, and nothing else; and its jobs run and leave nothing."""
        client = self.serving(prefix, root, *sets)
        log = self.pool.log("client-" + client.name)
        # Without root no control group of this machine is used.
        known = KNOWN if root else [one for one in KNOWN
                                    if one not in (KILLS, LIMITS, COUNTS, TRAFFIC)]
        for sentence in {*known, *sentences}:
            told = [one for one in sentences if one.startswith(sentence)]
            self.assertEqual(log.count(sentence), len(told), sentence + "\n" + log)
        mark = "sublet-test-%d-%s" % (os.getpid(), client.name)
        details, text = self.pool.output(self.pool.submit("--", "sh", "-c", textwrap.dedent("""\
            setsid -f python3 -c 'import time; time.sleep(600)' %s >&- 2>&-
            echo ran""") % mark)[0])
        self.assertEqual((details["state"], text), ("done", "ran\n"), (details, log))
        harness.wait_for(lambda: not harness.processes_naming(mark), "what it left to end")
        self.assertEqual(client.stop(), 0)

    def base(self, root):
        """What is said on this machine with every part."""
        said = [] if root else [BY_SESSION if self.autogroups() else BY_CLASS]
        return said + ([ABSTRACT] if harness.landlock() < 6 else [])

    @staticmethod
    def autogroups():
        with open(AUTOGROUPS) as f:
            return f.read() != "0\n" and not V2_ALONE

    def check_both(self, prefix, sentences):
        for root in True, False:
            with self.subTest(prefix=prefix, root=root):
                self.check(prefix, root, self.base(root) + sentences)

    def test_with_every_part(self):
        self.check_both([], [])

    def test_namespaces(self):
        for call, what, why, for_root in NAMESPACES:
            with self.subTest(call, root=True):
                self.check(without_calls(call), True, self.base(True) +
                           ([NO_PLACES % ("", what, why)] if for_root else []))
            with self.subTest(call, root=False):
                log = self.refused(without_calls(call), False)
                self.assertIn("%s cannot be created (%s). Run the client as root" % (what, why), log)
                self.assertIn("jobs can then read and change all that this account can", log)
                said = [NO_PLACES % (MOMENT, what, why)]
                if harness.landlock() < 6:
                    said.append(SIGNALS)
                self.check(without_calls(call), False, said + [
                    one for one in self.base(False) if one != ABSTRACT], "weak=true")
                log = self.refused(without_calls(call), False, "weak=true", "network=none")
                self.assertIn("network = none: %s cannot be created (%s), so this machine cannot "
                              "keep jobs off the network" % (what, why), log)

    def test_network_namespaces(self):
        """They are needed only for jobs without network."""
        prefix = without_calls("network namespace=EINVAL")
        for root in True, False:
            with self.subTest(root=root):
                log = self.refused(prefix, root, "network=none")
                self.assertIn("network = none: network namespaces cannot be created (Invalid "
                              "argument), so this machine cannot keep jobs off the network", log)
                self.check(prefix, root, self.base(root) + [NO_CUT])
                client = self.serving(prefix, root)
                job = self.pool.submit("--network", "none", "--", "true")[0]
                harness.wait_for(lambda: "cannot keep jobs off the network" in
                                 self.pool.job(job)["reason"], "the reason\n" + str(
                                     self.pool.job(job)) + self.pool.all_logs())
                self.assertEqual(self.pool.attempts(job), [])
                self.pool.sublet("rm", job)
                client.stop()

    def test_landlock(self):
        without_it = [one for one in (ABSTRACT,) if harness.landlock() >= 6]
        self.check_both(without_calls("landlock=ENOSYS"), without_it)
        with self.subTest("nor namespaces"):
            self.check(without_calls("landlock=ENOSYS", "users namespace=EPERM"), False, [
                NO_PLACES % (MOMENT, "namespaces", "Operation not permitted"), MEMORY, SIGNALS,
                BY_SESSION if self.autogroups() else BY_CLASS], "weak=true")

    def test_traffic(self):
        self.check(without_calls("bpf=EPERM"), True, self.base(True) + [TRAFFIC])
        log = self.refused(without_calls("bpf=EPERM"), True, "bandwidth=1 MB")
        self.assertIn("bandwidth", log)

    def test_call_filter(self):
        """A client that may not install one stands for a kernel that knows none."""
        self.check_both(without_calls("seccomp=EINVAL"), [CALLS])

    @staticmethod
    def removed(folder):
        try:
            os.rmdir(folder)
        except OSError:
            return False
        return True

    def test_what_leaves_nothing_weaker(self):
        for call in NEEDLESS:
            self.check_both(without_calls(call), [])

    def test_control_groups(self):
        if V2_ALONE:
            self.check(elsewhere("mount -t tmpfs none %s" % CGROUPS), True,
                       self.base(True) + [KILLS, BY_CLASS, LIMITS, COUNTS, TRAFFIC])
            return
        for name, sentence in HIERARCHIES:
            if sentence == BY_SESSION and not self.autogroups():
                sentence = BY_CLASS
            with self.subTest(name):
                self.check(elsewhere("umount -l %s/%s" % (CGROUPS, name)), True, self.base(True) +
                           [sentence] + ([TRAFFIC] if name == "unified" else []))

    @unittest.skipIf(V2_ALONE or not os.path.isdir(CGROUPS + "/cpu"), "needs a cpu cgroup of v1")
    def test_neither_cpu_cgroups_nor_autogroups(self):
        """In a cpu cgroup other than the root's autogroups have no effect: the kernel's idle class
        remains."""
        folder = "%s/cpu/sublet-test-%d" % (CGROUPS, os.getpid())
        os.mkdir(folder)
        self.addCleanup(harness.wait_for, lambda: self.removed(folder), "the monitor to end")
        script = "echo 0 > %s/tasks" % folder
        self.check(["sh", "-c", script + ' && exec "$0" "$@"'], False, [
            one for one in self.base(False) if one != BY_SESSION] + [BY_CLASS])
        self.check(elsewhere("%s && umount -l %s/cpu" % (script, CGROUPS)), True,
                   self.base(True) + [BY_CLASS])


if __name__ == "__main__":
    unittest.main()

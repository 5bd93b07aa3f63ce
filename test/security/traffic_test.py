"""The network traffic of jobs: what they sent and received is told, is bounded, and may be limited
to the pool's server. The client is in a network namespace whose only link leads to another one,
where a server for it is, too. And what a client cannot keep it refuses."""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import tool
import tls_pool

NEAR, FAR = "10.78.0.1", "10.78.0.2"

# Answers each connection with a part of what it takes.
FAR_END = """
import socket, sys, threading

def serve(one):
    with one:
        got = 0
        while True:
            data = one.recv(1 << 16)
            if not data: break
            got += len(data)
        one.sendall(b'x' * (got // 2))

listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

# Sends so many bytes there, and prints how many come back.
EXCHANGE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as far:
    far.sendall(b'x' * int(sys.argv[3]))
    far.shutdown(socket.SHUT_WR)
    back = 0
    while True:
        data = far.recv(1 << 16)
        if not data: break
        back += len(data)
print(back)
"""


def missing():
    """Why this cannot be tested here; "" if it can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not shutil.which("ip"):
        return "ip is missing"
    probe = "slp%d" % os.getpid()
    try:
        tool("ip", "netns", "add", probe)
        tool("ip", "netns", "del", probe)
    except subprocess.CalledProcessError as error:
        return "network namespaces cannot be made: " + error.stdout.strip()
    return ""


class Link:
    """Two network namespaces, near and far, and what runs at the far end."""

    def __init__(self):
        self.names = {end: "sl%d%s" % (os.getpid(), end) for end in ("near", "far")}
        self.processes = []

    def __enter__(self):
        for name in self.names.values():
            tool("ip", "netns", "add", name)
            tool("ip", "-n", name, "link", "set", "lo", "up")
        near, far = self.names["near"], self.names["far"]
        tool("ip", "-n", near, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0",
             "netns", far)
        for name, address in ((near, NEAR), (far, FAR)):
            tool("ip", "-n", name, "addr", "add", address + "/24", "dev", "eth0")
            tool("ip", "-n", name, "link", "set", "eth0", "up")
        return self

    def __exit__(self, kind, value, trace):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        for name in self.names.values():
            tool("ip", "netns", "del", name, check=False)
        return False

    def inside(self, end):
        """The command prefix that executes another command there. Unlike `ip netns exec` it leaves
        /sys, and so the control groups, as they are."""
        return ["nsenter", "--net=/run/netns/" + self.names[end]]

    def serve(self):
        """Starts FAR_END; returns its port."""
        process = subprocess.Popen(self.inside("far") + [sys.executable, "-c", FAR_END, FAR],
                                   stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return int(process.stdout.readline())


def wait_refused(pool, why, *options):
    """Submits a job, and waits for the machines to refuse it for that reason."""
    job = pool.submit(*options, "--", "true")[0]
    harness.wait_for(lambda: "last: " + why in pool.job(job)["reason"],
                     "job %d to be refused: %s" % (job, why))
    pool.sublet("rm", job)


@unittest.skipIf(missing(), missing())
class Traffic(unittest.TestCase):
    def client(self, pool, link, *sets):
        extra = [word for one in sets for word in ("--set", one)]
        client = pool.client("curly", prefix=link.inside("near"), extra=extra).start()
        pool.wait_machines(1)
        if "network traffic is not counted" in pool.log("client-curly"):
            self.skipTest("this kernel does not let the client watch traffic")
        return client

    def last_attempt(self, pool, job):
        return pool.wait_state(job, ["done", "failed"])["attempt_list"][-1]

    def test_bytes_are_told(self):
        with harness.Pool() as pool, Link() as link:
            pool.start_server()
            client = self.client(pool, link)
            port = link.serve()
            sent = 4_000_000
            job = pool.submit("--", sys.executable, "-c", EXCHANGE, FAR, port, sent)[0]
            last = self.last_attempt(pool, job)
            self.assertEqual(pool.output(job)[1], "%d\n" % (sent // 2))
            whole = sent + sent // 2
            self.assertGreaterEqual(last["network_bytes"], whole)
            self.assertLess(last["network_bytes"], 1.2 * whole)
            self.assertIn("NETWORK", pool.run("show", job)[1])
            keep = EXCHANGE + "open('ready', 'w').close(); import time; time.sleep(600)"
            job = pool.submit("--", sys.executable, "-c", keep, FAR, port, sent)[0]
            harness.wait_for(lambda: os.path.exists(
                os.path.join(client.state, "attempts", "%d.1" % job, "work", "ready")), "the job")
            words = ["owner", "status", "--state", client.state]
            harness.wait_for(lambda: pool.ask(*words)["attempts"][0]["network"] >= whole,
                             "the monitor to say what the job uses")
            self.assertIn("NETWORK", pool.run(*words)[1])
            pool.sublet("rm", job)
            # What goes to the machine itself is no traffic.
            for options in ((), ("--network", "none")):
                job = pool.submit(*options, "--", "true")[0]
                self.assertEqual(self.last_attempt(pool, job)["network_bytes"], 0)

    def test_bandwidth_is_bounded(self):
        """TCP slows down and loses nothing."""
        with harness.Pool() as pool, Link() as link:
            pool.start_server()
            self.client(pool, link, "bandwidth=2 MB")
            port = link.serve()
            timed = "import time; begun = time.monotonic()\n%s\nprint(time.monotonic() - begun)"
            sent, bound = 6_000_000, 2_000_000
            job = pool.submit("--", sys.executable, "-c", timed % EXCHANGE, FAR, port, sent)[0]
            last = self.last_attempt(pool, job)
            back, took = pool.output(job)[1].split()
            self.assertEqual(int(back), sent // 2)
            self.assertGreaterEqual(last["network_bytes"], sent + sent // 2)
            # Half comes back when all is sent; after a pause a quarter of a second's may pass.
            at_once = bound / 4 + (64 << 10)
            self.assertGreater(float(took), (sent - at_once) / bound + (sent / 2 - at_once) / bound)

    # Prints for each port there whether it can be reached, and the network devices.
    REACH = ("import socket, sys\n"
             "for port in sys.argv[2:]:\n"
             "    try: socket.create_connection((sys.argv[1], int(port)), 60).close()\n"
             "    except PermissionError: print('refused')\n"
             "    else: print('reached')\n"
             "print([name for _, name in socket.if_nameindex()])\n")

    def reached(self, pool, ports, *options):
        return pool.output(pool.submit(*options, "--", sys.executable, "-c", self.REACH, FAR,
                                       *ports)[0])[1].split("\n")[:-2]

    def test_only_the_server(self):
        port = tls_pool.free_port()
        without = ["setpriv", "--bounding-set=-sys_admin,-net_admin,-bpf"]
        with tls_pool.TlsPool("%s:%d" % (FAR, port)) as pool, Link() as link:
            pool.init()
            pool.server_prefix = link.inside("far")
            pool.start_server()
            ports = [port, link.serve()]
            curly = pool.joined("curly", prefix=link.inside("near")).start()
            pool.wait_machines(1)
            if "network traffic is not counted" in curly.log():
                self.skipTest("this kernel does not let the client watch traffic")
            for wish in (), ("--network", "any"):
                self.assertEqual(self.reached(pool, ports, *wish), ["reached", "reached"])
            self.assertEqual(self.reached(pool, ports, "--network", "server"),
                             ["reached", "refused"])
            curly.stop()

            def again(prefix, *sets):
                extra, before = list(curly.extra), curly.prefix
                curly.extra += [word for one in sets for word in ("--set", one)]
                curly.prefix = before + prefix
                curly.start()
                curly.extra, curly.prefix = extra, before
            again([], "network=server")
            pool.wait_machines(1)
            self.assertEqual(self.reached(pool, ports), ["reached", "refused"])
            wait_refused(pool, "it needs the network, and this machine's owner permits only the "
                         "pool's server", "--network", "any")
            curly.stop()
            again(without)
            pool.wait_machines(1)
            wait_refused(pool, "this machine cannot keep jobs from reaching others than the server",
                         "--network", "server")
            curly.stop()
            again(without, "network=server")
            self.assertEqual(curly.process.wait(harness.PATIENCE), 2)
            self.assertIn("network = server: this machine cannot keep jobs from reaching others (",
                          curly.log())

    @unittest.skipUnless(harness.has_walls(), "needs namespaces")
    def test_a_server_on_the_same_machine(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--network", "server", "--", sys.executable, "-c", self.REACH, FAR)[0]
            self.assertEqual(pool.output(job)[1], "['lo']\n")


class Refusals(unittest.TestCase):
    def test_a_bound_that_cannot_be_kept(self):
        prefix = []
        if os.geteuid() == 0:
            prefix = ["setpriv", "--bounding-set=-sys_admin,-net_admin,-bpf"]
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", prefix=prefix, extra=["--set", "bandwidth=1 MB"]).start()
            self.assertEqual(curly.process.wait(harness.PATIENCE), 2)
            self.assertIn("bandwidth: this machine cannot bound the traffic of jobs (",
                          pool.log("client-curly"))
        if os.geteuid() == 0:
            harness.run_as_nobody(self, __file__, self.id().split(".", 1)[1])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to do without some rights")
    def test_no_loopback(self):
        """Where a network of its own could not be used, no job gets one."""
        prefix = ["setpriv", "--bounding-set=-net_admin"]
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", prefix=prefix).start()
            pool.wait_machines(1)
            wait_refused(pool, "this machine cannot keep jobs off the network", "--network", "none")
            moe = pool.client("moe", prefix=prefix, extra=["--set", "network=none"]).start()
            self.assertEqual(moe.process.wait(harness.PATIENCE), 2)
            self.assertIn("network = none: loopback cannot be created", pool.log("client-moe"))


if __name__ == "__main__":
    unittest.main()

"""A pool whose parts share only a network: server, two workstations and a submitting user
in separate network, host-name and mount namespaces, with only TLS between them, one
workstation behind NAT. The letters' training with evictions, a link that is cut and
restored, and a membership that is revoked; the results are those of an undisturbed run."""

import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import tool
import tls_pool
import training

PORT = 9740
# Executes a program with its own host name, from which the others' folders are hidden.
INSIDE = """hostname "$1"; hidden=$2; shift 2
for folder in $hidden; do mount -t tmpfs -o size=64k none "$folder"; done
exec "$@"
"""


def missing():
    """Why namespaces cannot be created here; "" if they can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    for name in ("ip", "nft", "unshare", "ss"):
        if not shutil.which(name):
            return name + " is missing"
    probe = "slp%d" % os.getpid()
    try:
        tool("ip", "netns", "add", probe)
        try:
            tool("ip", "netns", "exec", probe, "unshare", "--mount", "--uts", "nft",
                 "add table ip probe; add chain ip probe nat "
                 "{ type nat hook postrouting priority 100 ; }")
        finally:
            tool("ip", "netns", "del", probe)
    except subprocess.CalledProcessError as error:
        return "namespaces with NAT cannot be made: " + error.stdout.strip()
    return ""


class Network:
    """A router with one link to each host; moe is behind NAT."""

    HOSTS = {"server": "10.77.0", "curly": "10.77.1", "moe": "192.168.77", "desk": "10.77.3"}

    def __init__(self):
        self.names = {h: "sl%d%s" % (os.getpid(), h) for h in list(self.HOSTS) + ["router"]}

    def __enter__(self):
        for name in self.names.values():
            tool("ip", "netns", "add", name)
            tool("ip", "-n", name, "link", "set", "lo", "up")
        router = self.names["router"]
        tool("ip", "netns", "exec", router, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        for host, net in self.HOSTS.items():
            tool("ip", "-n", router, "link", "add", host, "type", "veth", "peer", "name", "eth0",
                 "netns", self.names[host])
            tool("ip", "-n", router, "addr", "add", net + ".1/24", "dev", host)
            tool("ip", "-n", router, "link", "set", host, "up")
            tool("ip", "-n", self.names[host], "addr", "add", net + ".2/24", "dev", "eth0")
            tool("ip", "-n", self.names[host], "link", "set", "eth0", "up")
            tool("ip", "-n", self.names[host], "route", "add", "default", "via", net + ".1")
        # moe accepts only replies, and its address is hidden.
        tool("ip", "netns", "exec", router, "nft",
             "add table ip home; "
             "add chain ip home out { type nat hook postrouting priority 100 ; }; "
             "add rule ip home out ip saddr 192.168.77.0/24 masquerade; "
             "add chain ip home in { type filter hook forward priority 0 ; }; "
             "add rule ip home in ip daddr 192.168.77.0/24 ct state established,related accept; "
             "add rule ip home in ip daddr 192.168.77.0/24 drop")
        return self

    def __exit__(self, kind, value, trace):
        for name in self.names.values():
            tool("ip", "netns", "del", name, check=False)
        return False

    def link(self, host, state):
        tool("ip", "-n", self.names["router"], "link", "set", host, state)

    def inside(self, host, hidden):
        """The command prefix that executes another command on that host."""
        return ["ip", "netns", "exec", self.names[host], "unshare", "--mount", "--uts",
                "--propagation", "private", "sh", "-c", INSIDE, "sh", host, " ".join(hidden)]

    def sockets(self, host, *options):
        return tool("ip", "netns", "exec", self.names[host], "ss", "-Htan", *options)


@unittest.skipIf(missing(), missing())
class Namespaces(unittest.TestCase):
    EPOCHS = 100
    JOBS = 3

    def folders(self, pool):
        return {"server": [pool.state, os.path.dirname(pool.socket)],
                "curly": [os.path.join(pool.folder, "c-curly")],
                "moe": [os.path.join(pool.folder, "c-moe")],
                "desk": [os.path.join(pool.folder, "home-ann")]}

    def prefix(self, network, pool, host):
        folders = self.folders(pool)
        hidden = [f for other, those in folders.items() if other != host for f in those]
        for folder in sum(folders.values(), []):
            os.makedirs(folder, exist_ok=True)
        return network.inside(host, hidden)

    def start(self, network, pool):
        status, words = pool.init()
        self.assertEqual(status, 0, words)
        pool.server_prefix = self.prefix(network, pool, "server")
        pool.start_server()
        for name in ("curly", "moe"):
            pool.joined(name, prefix=self.prefix(network, pool, name)).start()
        ann = tls_pool.Person(pool, "ann", self.prefix(network, pool, "desk"))
        status, out, err = ann.run("join", pool.invite("ann", "--user"))
        self.assertEqual(status, 0, err)
        pool.wait_machines(2)
        return ann

    def submit(self, ann):
        shutil.copy(training.DATA, ann.home)
        jobs = []
        for number in range(self.JOBS):
            status, out, err = ann.run(
                "submit", "--json", "--input", "letter-recognition.data", "--output",
                "weights.bin", "--", training.PROGRAM,
                *training.arguments(self.EPOCHS, "weights.bin"))
            self.assertEqual(status, 0, err)
            jobs.append(json.loads(out)["jobs"]["first"])
        return jobs

    def evict(self, pool, name):
        """The owner comes back while the machine works, and leaves when the job has left."""
        client = pool.clients[name]
        working = training.TrainingCase.wait_progress(self, client)
        client.owner("active")
        harness.wait_for(lambda: working not in client.attempts(), "the job to leave " + name +
                         "\n" + pool.all_logs())
        client.owner("away")

    def cut_and_heal(self, network, pool, name):
        """Cuts the link until the pool has detected it."""
        training.TrainingCase.wait_progress(self, pool.clients[name])
        network.link(name, "down")
        harness.wait_for(lambda: self.state_of(pool, name) == "silent", name + " to be silent\n" +
                         pool.all_logs())
        network.link(name, "up")
        harness.wait_for(lambda: self.state_of(pool, name) in ("idle", "busy"),
                         name + " to be back\n" + pool.all_logs())

    def state_of(self, pool, name):
        return {m["name"]: m["state"] for m in pool.machines()}[name]

    def check_result(self, pool, ann, job, expected):
        status, out, err = ann.run("fetch", job, "--into", "results-%d" % job)
        self.assertEqual(status, 0, err)
        target = os.path.join(ann.home, "results-%d" % job)
        with open(os.path.join(target, "weights.bin"), "rb") as f:
            self.assertEqual(f.read(), expected[1])
        text = [n for n in os.listdir(target) if n.endswith(".out")]
        with open(os.path.join(target, text[0])) as f:
            self.assertEqual(f.read(), expected[0])

    def test_letters(self):
        with Network() as network, tls_pool.TlsPool("10.77.0.2:%d" % PORT,
                                                    ["scheduling.lease=6 s"]) as pool:
            expected = training.alone(pool.folder, self.EPOCHS)
            ann = self.start(network, pool)
            jobs = self.submit(ann)
            self.check_connections(network)
            self.evict(pool, "curly")
            self.evict(pool, "moe")
            jobs += self.submit(ann)
            self.cut_and_heal(network, pool, "curly")
            self.cut_and_heal(network, pool, "moe")
            for job in jobs:
                details = pool.wait_state(job, ["done", "failed"])
                self.assertEqual(details["state"], "done", details)
                self.assertEqual(details["user"], "ann")
                self.check_result(pool, ann, job, expected)
            evictions = sum(pool.job(job)["evictions"] for job in jobs)
            self.assertGreaterEqual(evictions, 2)
            self.check_revoked(pool, ann)

    def check_connections(self, network):
        """Only the server listens; moe appears with the router's address."""
        for host in ("curly", "moe", "desk"):
            self.assertEqual(network.sockets(host, "state", "listening"), "", host)
        there = network.sockets("server", "state", "established")
        self.assertIn("10.77.1.2", there)
        self.assertIn("10.77.0.1", there)
        self.assertNotIn("192.168.77", there)

    def check_revoked(self, pool, ann):
        status, out, err = pool.run("admin", "revoke", "moe")
        self.assertEqual(status, 0, err)
        self.assertEqual(self.state_of(pool, "moe"), "gone")
        harness.wait_for(lambda: "the membership was revoked" in pool.log("client-moe"),
                         "moe to receive the revocation\n" + pool.all_logs())
        pool.sublet("admin", "revoke", "ann")
        status, out, err = ann.run("ls")
        self.assertEqual(status, 5, out + err)
        self.assertIn("the membership was revoked", err)


if __name__ == "__main__":
    unittest.main()

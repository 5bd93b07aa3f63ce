"""A pool with members over TLS: init, invitations, joining."""

import os
import socket
import subprocess

import harness


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class TlsClient(harness.Client):
    """A client that finds the server only through its membership."""

    def server_arguments(self):
        return []

    def join(self, token):
        """Runs `sublet-client join`; returns (status, words)."""
        args = self.prefix + [os.path.join(harness.BIN, "sublet-client"), "--state", self.state,
                              "join", token]
        done = subprocess.run(args, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=harness.PATIENCE,
                              env=self.pool.environment())
        return done.returncode, done.stdout

    def log(self):
        return self.pool.log("client-" + self.name)


class TlsPool(harness.Pool):
    def __init__(self, listen, server_sets=()):
        super().__init__(list(server_sets) + ["server.listen=" + listen])
        self.listen = listen

    def init(self, *sets):
        """Runs `sublet-server init`; returns (status, words)."""
        args = [os.path.join(harness.BIN, "sublet-server"), "--state", self.state]
        for setting in sets:
            args += ["--set", setting]
        done = subprocess.run(args + ["init"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
        return done.returncode, done.stdout

    def invite(self, name, *options):
        return self.sublet("admin", "invite", name, *options)["token"]

    def member(self, name, **options):
        client = TlsClient(self, name, **options)
        self.clients[name] = client
        return client

    def joined(self, name, **options):
        client = self.member(name, **options)
        status, words = client.join(self.invite(name))
        assert status == 0, words
        return client

    def standing(self, name):
        for member in self.sublet("admin", "members")["members"]:
            if member["name"] == name:
                return member
        return None


class Person:
    """A user with a separate home, from which `sublet` is run."""

    def __init__(self, pool, name, prefix=()):
        self.pool = pool
        self.name = name
        self.prefix = list(prefix)
        self.home = os.path.join(pool.folder, "home-" + name)
        os.makedirs(self.home, exist_ok=True)

    def environment(self):
        env = dict(os.environ, HOME=self.home)
        for name in ("SUBLET_SERVER", "XDG_STATE_HOME"):
            env.pop(name, None)
        return env

    def run(self, *args, cwd=None):
        """Returns (status, stdout, stderr)."""
        done = subprocess.run(self.prefix + [os.path.join(harness.BIN, "sublet")] +
                              [str(a) for a in args], cwd=cwd or self.home, text=True,
                              env=self.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=4 * harness.PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def membership(self):
        folder = os.path.join(self.home, ".config", "sublet", "pools")
        return os.path.join(folder, os.listdir(folder)[0])

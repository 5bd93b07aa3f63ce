"""Remote members, with TLS over loopback: set-up, invitations, roles, every refusal with
its message, renewal, revocation, hostile members."""

import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import giop
import harness
import tls_pool


def tcp_listeners(pid):
    """The number of listening TCP sockets of this process."""
    own = set()
    for entry in os.listdir("/proc/%d/fd" % pid):
        try:
            own.add(os.readlink("/proc/%d/fd/%s" % (pid, entry)))
        except FileNotFoundError:
            pass
    count = 0
    for table in ("tcp", "tcp6"):
        with open("/proc/net/" + table) as f:
            for line in list(f)[1:]:
                words = line.split()
                if words[3] == "0A" and "socket:[%s]" % words[9] in own:
                    count += 1
    return count


class MembershipCase(unittest.TestCase):
    def pool(self, *sets):
        pool = tls_pool.TlsPool("127.0.0.1:%d" % tls_pool.free_port(), sets)
        self.addCleanup(pool.close)
        return pool

    def ready(self, *sets):
        pool = self.pool(*sets)
        status, words = pool.init()
        self.assertEqual(status, 0, words)
        return pool.start_server()

    def server(self, pool):
        return harness.children(pool.supervisor.pid)[0]

    def refused(self, outcome, status, words):
        got, out, err = outcome
        self.assertEqual(got, status, out + err)
        self.assertIn(words, err)

    def done(self, outcome):
        """Checks for success; returns what it printed."""
        self.assertEqual(outcome[0], 0, outcome)
        return outcome[1]

    def jobs_of(self, person):
        """The ids of the jobs that `sublet ls` lists as the user's own."""
        return [job["id"] for job in json.loads(self.done(person.run("--json", "ls")))["jobs"]]

    def server_says(self, pool, words):
        harness.wait_for(lambda: words in pool.log("server"),
                         "the server to say '%s'\n%s" % (words, pool.log("server")))

    def client_says(self, client, words):
        harness.wait_for(lambda: words in client.log(),
                         "the client to say '%s'\n%s" % (words, client.pool.all_logs()))


class SetUp(MembershipCase):
    def contents(self, folder):
        result = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as f:
                result[name] = f.read()
        return result

    def test_init_makes_an_authority_once(self):
        pool = self.pool()
        status, first = pool.init()
        self.assertEqual(status, 0, first)
        folder = os.path.join(pool.state, "authority")
        files = sorted(os.listdir(folder))
        self.assertEqual(files, ["authority.key", "authority.pem", "server.key", "server.pem"])
        for name in files:
            self.assertEqual(os.stat(os.path.join(folder, name)).st_mode & 0o777, 0o600)
        before = self.contents(folder)
        status, again = pool.init()
        self.assertEqual(status, 0, again)
        self.assertEqual(first.splitlines()[-1], again.splitlines()[-1])  # the fingerprint
        self.assertEqual(before, self.contents(folder))
        status, words = pool.init("pool.name=other")
        self.assertEqual(status, 1, words)
        self.assertIn("not of 'other'", words)
        status, words = pool.init("pool.name=my pool")
        self.assertEqual(status, 1, words)
        os.remove(os.path.join(folder, "server.key"))
        status, words = pool.init()
        self.assertEqual(status, 1, words)
        self.assertIn("server.key", words)

    def test_no_network_unless_asked_for(self):
        pool = self.pool()
        pool.server_sets = []
        pool.init()
        pool.start_server()
        self.assertEqual(tcp_listeners(self.server(pool)), 0)
        self.refused(pool.run("admin", "invite", "curly"), 6, "does not listen to a network")
        pool.stop_server()
        pool.server_sets = ["server.listen=" + pool.listen]
        pool.start_server()
        self.assertEqual(tcp_listeners(self.server(pool)), 1)

    def test_listening_needs_an_authority(self):
        pool = self.pool()
        pool.start_server(wait=False)
        self.server_says(pool, "run 'sublet-server init' first")

    def test_a_bad_address_is_named(self):
        pool = self.pool()
        pool.server_sets = ["server.listen=9740"]
        pool.start_server(wait=False)
        self.server_says(pool, "server.listen: '9740' is not a HOST:PORT")


class Joining(MembershipCase):
    def test_a_machine_and_a_user_from_elsewhere(self):
        pool = self.ready()
        curly = pool.joined("curly")
        self.assertEqual(os.stat(os.path.join(curly.state, "membership")).st_mode & 0o777, 0o600)
        curly.start()
        pool.wait_machines(1)
        ann = tls_pool.Person(pool, "ann")
        status, out, err = ann.run("join", pool.invite("ann", "--user"))
        self.assertEqual(status, 0, err)
        self.assertIn("you are ann", out)
        status, out, err = ann.run("submit", "--wait", "--", "echo", "hello")
        self.assertEqual(status, 0, err)
        job = pool.job(1)
        self.assertEqual((job["state"], job["user"]), ("done", "ann"))
        # Only with the option; and a server that was never joined.
        os.remove(os.path.join(ann.home, ".config", "sublet", "config.toml"))
        self.assertEqual(ann.run("--server", "tls://" + pool.listen, "show", "1")[0], 0)
        self.refused(ann.run("--server", "tls://127.0.0.1:1", "ls"), 5, "you are not a member")
        self.refused(ann.run("--server", "tls://nowhere", "ls"), 2, "tls://HOST:PORT")
        # A user has no administrator's rights, but a remote administrator does.
        self.refused(ann.run("--server", "tls://" + pool.listen, "admin", "members"), 5,
                     "for administrators")
        root = tls_pool.Person(pool, "root")
        self.assertEqual(root.run("join", pool.invite("joe", "--administrator"))[0], 0)
        status, out, err = root.run("admin", "members")
        self.assertEqual(status, 0, err)
        for name in ("curly", "ann", "joe"):
            self.assertIn(name, out)
        # Who cannot reach a server is told where its address is from.
        pool.stop_server()
        self.refused(ann.run("--server", "tls://" + pool.listen, "ls"), 8,
                     "(address from --server)")

    def test_large_files_are_moved_by_another_process_of_the_machine(self):
        pool = self.ready()
        curly = pool.joined("curly", extra=["--set", "log.level=debug"]).start()
        pool.wait_machines(1)
        data = os.urandom(6 << 20)
        with open(os.path.join(pool.folder, "data"), "wb") as f:
            f.write(data)
        job = pool.submit("--input", "data", "--output", "copy", "--", "cp", "data", "copy")[0]
        details = pool.wait_state(job, ["done", "failed"])
        self.assertEqual(details["state"], "done", details)
        self.assertEqual(details["outputs"][0]["digest"],
                         hashlib.blake2b(data, digest_size=32).hexdigest())
        moves = curly.log().count("its files are moved by another process")
        # The input and the output, and again if the server was late with an answer.
        if "waiting for the server" in curly.log():
            self.assertGreaterEqual(moves, 2, curly.log())
        else:
            self.assertEqual(moves, 2, curly.log())
        self.assertNotIn("at normal weight", curly.log())

    def test_ones_own_jobs_are_those_of_the_certificates_name(self):
        """The local login name does not matter."""
        pool = self.ready()
        login = pool.submit("--", "true")[0]
        ann = tls_pool.Person(pool, "ann")
        self.assertEqual(ann.run("join", pool.invite("ann", "--user"))[0], 0)
        self.assertEqual(self.jobs_of(ann), [])
        one, two = [json.loads(self.done(ann.run("--json", "submit", "--", "true")))["jobs"]["first"]
                    for _ in range(2)]
        self.assertEqual(self.jobs_of(ann), [two, one])
        self.assertEqual([job["id"] for job in pool.sublet("ls")["jobs"]], [login])
        self.done(ann.run("hold", "--mine"))
        self.assertEqual([pool.job_state(job) for job in (login, one, two)],
                         ["waiting", "held", "held"])
        self.done(ann.run("rm", one))
        # Only their own outputs are fetched.
        log = open(os.path.join(pool.folder, "fetch.log"), "w")
        following = subprocess.Popen(
            [os.path.join(harness.BIN, "sublet"), "fetch", "--follow", "--into", "home"],
            cwd=ann.home,
            env=ann.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.addCleanup(following.wait)
        self.addCleanup(following.kill)
        harness.wait_for(lambda: "Ctrl-C" in pool.log("fetch"), "sublet fetch\n" +
                         pool.log("fetch"))
        self.done(ann.run("release", "--mine"))
        pool.client("curly").start()
        harness.wait_for(lambda: "job %d " % two in pool.log("fetch"), "ann's job to come home\n" +
                         pool.log("fetch") + pool.all_logs())
        self.assertNotIn("job %d " % login, pool.log("fetch"))

    def test_a_token_is_good_once(self):
        pool = self.ready()
        token = pool.invite("curly")
        curly = pool.member("curly")
        self.assertEqual(curly.join(token)[0], 0)
        # Also after the server was killed: it is recorded.
        pool.kill_server()
        pool.wait_serving()
        moe = pool.member("moe")
        status, words = moe.join(token)
        self.assertEqual(status, 1)
        self.assertIn("the token has already been used", words)
        self.assertFalse(os.path.exists(os.path.join(moe.state, "membership")))

    def test_a_lost_answer_costs_nothing(self):
        pool = self.ready()
        token = pool.invite("curly")
        curly = pool.member("curly")
        self.assertEqual(curly.join(token)[0], 0)
        path = os.path.join(curly.state, "membership")
        with open(path) as f:
            text = f.read()
        key = text[text.index("-----BEGIN"):text.index("-----BEGIN CERT")]
        # The state before the answer arrived.
        os.remove(path)
        with open(path + ".joining", "w") as f:
            f.write(token + "\n" + key)
        status, words = curly.join(token)
        self.assertEqual(status, 0, words)
        with open(path) as f:
            self.assertEqual(f.read(), text)

    def test_tokens_that_are_not_good(self):
        pool = self.ready()
        curly = pool.member("curly")
        status, words = curly.join("nonsense")
        self.assertEqual(status, 2)
        self.assertIn("not a join token", words)
        token = pool.invite("curly")
        # A wrong secret; the message does not reveal that the token exists.
        status, words = curly.join(token[:-4] + "0000")
        self.assertEqual(status, 1)
        self.assertIn("does not know this token", words)
        short = pool.sublet("admin", "invite", "curly", "--valid", "1 s")
        harness.wait_for(lambda: time.time() * 1e6 > short["expires_us"], "the token's time to end")
        status, words = curly.join(short["token"])
        self.assertIn("the token has expired", words)
        pool.sublet("admin", "revoke", "curly")
        status, words = curly.join(token)
        self.assertIn("the token was revoked", words)
        status, words = curly.join(pool.invite("ann", "--user"))
        self.assertEqual(status, 2)
        self.assertIn("for a user", words)
        other = self.ready()
        # The other server's address with this pool's authority.
        parts = pool.invite("curly").split("/")
        parts[2] = other.listen
        status, words = curly.join("/".join(parts))
        self.assertEqual(status, 1)
        self.assertIn("another pool's authority", words)
        # The right authority, but a token of the other pool.
        theirs = other.invite("curly").split("/")
        theirs[2:4] = [pool.listen, parts[3]]
        status, words = curly.join("/".join(theirs))
        self.assertIn("may be another pool's", words)

    def test_invitations_that_make_no_sense(self):
        pool = self.ready()
        self.refused(pool.run("admin", "invite", "no/name"), 3, "not a valid member name")
        self.refused(pool.run("admin", "invite", "x", "--valid", "60 d"), 3, "1 s to 30 d")
        self.refused(pool.run("admin", "invite", "x", "--valid", "soon"), 2, "not a duration")
        self.refused(pool.run("admin", "invite", "x", "--user", "--administrator"), 2, "not both")
        self.refused(pool.run("admin", "revoke", "nobody"), 4, "named nobody")
        pool.joined("curly")
        self.refused(pool.run("admin", "invite", "curly", "--user"), 6, "as machine")


class Refusals(MembershipCase):
    """Certificates with another role, or no longer valid."""

    def as_user(self, pool, client):
        """A person who uses a machine's membership with `sublet`."""
        thief = tls_pool.Person(pool, "thief")
        folder = os.path.join(thief.home, ".config", "sublet", "pools")
        os.makedirs(folder)
        shutil.copy(os.path.join(client.state, "membership"),
                    os.path.join(folder, pool.listen.replace(":", "%3A")))
        return lambda *args: thief.run("--server", "tls://" + pool.listen, *args)

    def test_roles(self):
        pool = self.ready()
        curly = pool.joined("curly")
        machine = self.as_user(pool, curly)
        for command in (["submit", "--", "true"], ["ls"], ["rm", "1"], ["report"]):
            self.refused(machine(*command), 5, "machines cannot submit jobs")
        self.refused(machine("admin", "members"), 5, "for administrators")
        ann = tls_pool.Person(pool, "ann")
        self.assertEqual(ann.run("join", pool.invite("ann", "--user"))[0], 0)
        moe = pool.member("moe")
        shutil.copy(ann.membership(), os.path.join(moe.state, "membership"))
        moe.start()
        self.client_says(moe, "cannot add a machine")
        self.assertEqual(pool.machines(), [])

    def test_a_machine_has_the_name_of_its_certificate(self):
        pool = self.ready()
        pool.joined("curly")
        other = pool.member("other")
        shutil.copy(os.path.join(pool.clients["curly"].state, "membership"), other.state)
        other.start()
        self.client_says(other, "the certificate is for the machine curly, not other")
        self.assertEqual(pool.machines(), [])

    def test_an_expired_certificate(self):
        pool = self.ready("membership.certificate_valid=2 s")
        ann = tls_pool.Person(pool, "ann")
        self.assertEqual(ann.run("join", pool.invite("ann", "--user"))[0], 0)
        harness.wait_for(lambda: ann.run("ls")[0] != 0, "the certificate to expire")
        self.refused(ann.run("ls"), 5, "the certificate has expired, or a clock is wrong")
        self.server_says(pool, "the certificate has expired")
        # It can join again with a new token for the same name.
        pool.stop_server()
        pool.server_sets.remove("membership.certificate_valid=2 s")
        pool.start_server()
        self.assertEqual(ann.run("join", pool.invite("ann", "--user"))[0], 0)
        self.done(ann.run("submit", "--", "true"))
        self.assertEqual(self.jobs_of(ann), [1])

    def test_a_certificate_that_was_replaced(self):
        pool = self.ready()
        ann = tls_pool.Person(pool, "ann")
        self.assertEqual(ann.run("join", pool.invite("ann", "--user"))[0], 0)
        self.done(ann.run("submit", "--", "true"))
        old = ann.membership() + ".old"
        shutil.copy(ann.membership(), old)
        self.assertEqual(ann.run("join", pool.invite("ann", "--user"))[0], 0)
        self.assertEqual(self.jobs_of(ann), [1])
        os.rename(old, ann.membership().removesuffix(".old"))
        self.refused(ann.run("ls"), 5, "not known to the server")

    def test_joining_again_ends_what_is_connected(self):
        pool = self.ready()
        curly = pool.joined("curly").start()
        pool.wait_machines(1)
        # Its successor, in another folder; the old client is still connected.
        heir = tls_pool.TlsClient(pool, "curly")
        heir.state += "-new"
        os.makedirs(heir.state)
        status, words = heir.join(pool.invite("curly"))
        self.assertEqual(status, 0, words)
        self.assertEqual([m["state"] for m in pool.machines()], ["gone"])
        self.client_says(curly, "not known to the server")

    def test_a_key_that_is_not_the_certificates(self):
        pool = self.ready()
        ann, bob = [tls_pool.Person(pool, name) for name in ("ann", "bob")]
        texts = []
        for one in (ann, bob):
            self.done(one.run("join", pool.invite(one.name, "--user")))
            with open(one.membership()) as f:
                texts.append(f.read())
        cut = "-----BEGIN CERT"
        with open(ann.membership(), "w") as f:
            f.write(texts[1].partition(cut)[0] + cut + texts[0].partition(cut)[2])
        status, out, _ = ann.run("--json", "ls")
        self.assertEqual((status, json.loads(out)["error"]["code"]), (3, "membership.file"))
        self.refused(ann.run("ls"), 3, "is damaged: join again with a new token")
        self.done(ann.run("join", pool.invite("ann", "--user")))
        self.done(ann.run("ls"))

    def test_another_pools_certificate(self):
        pool, other = self.ready(), self.ready()
        ann = tls_pool.Person(pool, "ann")
        self.assertEqual(ann.run("join", other.invite("ann", "--user"))[0], 0)
        # A client with another authority does not trust this pool's server.
        with open(ann.membership()) as f:
            text = f.read()
        with open(ann.membership(), "w") as f:
            f.write(text.replace(other.listen, pool.listen))
        os.rename(ann.membership(), os.path.join(os.path.dirname(ann.membership()),
                                                 pool.listen.replace(":", "%3A")))
        self.refused(ann.run("--server", "tls://" + pool.listen, "ls"), 5,
                     "the server at %s is not trusted: the certificate is from another pool's "
                     "authority" % pool.listen)
        # And a client that trusts it is refused.
        with open(os.path.join(pool.state, "authority", "authority.pem")) as f:
            authority = f.read()
        cut = text.replace(other.listen, pool.listen).rindex("-----BEGIN CERT")
        with open(ann.membership(), "w") as f:
            f.write(text.replace(other.listen, pool.listen)[:cut] + authority)
        self.refused(ann.run("--server", "tls://" + pool.listen, "ls"), 5,
                     "refuses: the certificate is from another pool's authority")

    def test_revoked_at_once(self):
        pool = self.ready("scheduling.lease=6 s")
        curly = pool.joined("curly").start()
        pool.wait_machines(1)
        job = pool.submit("--", "sleep", "300")[0]
        pool.wait_state(job, "running")
        pool.sublet("admin", "revoke", "curly")
        self.assertEqual([m["state"] for m in pool.machines()], ["gone"])
        self.assertNotEqual(pool.standing("curly")["revoked_us"], 0)
        self.client_says(curly, "refuses: the membership was revoked")
        # The job resumes elsewhere; the revocation survives a restart.
        pool.kill_server()
        pool.wait_serving()
        moe = pool.joined("moe").start()
        harness.wait_for(lambda: pool.job(job)["machine"] == "moe" and
                         pool.job_state(job) == "running", "the job to run on moe\n" +
                         pool.all_logs())
        self.assertEqual({m["name"]: m["state"] for m in pool.machines()}["curly"], "gone")
        # When invited again, it is the same machine.
        curly.kill()
        self.assertEqual(curly.join(pool.invite("curly"))[0], 0)
        curly.start()
        pool.sublet("rm", job)
        pool.wait_machines(2)
        self.assertEqual(len(pool.machines()), 2)

    def test_a_lost_state_folder(self):
        pool = self.ready()
        curly = pool.joined("curly").start()
        pool.wait_machines(1)
        curly.stop()
        shutil.rmtree(curly.state)
        os.makedirs(curly.state)
        self.assertEqual(curly.join(pool.invite("curly"))[0], 0)
        curly.start()
        pool.wait_machines(1)
        self.assertEqual([m["number"] for m in pool.machines()], [1])

    def test_renewal(self):
        pool = self.ready("membership.certificate_valid=30 s", "scheduling.lease=3 s")
        curly = pool.joined("curly").start()
        pool.wait_machines(1)
        before = pool.standing("curly")["expires_us"]
        harness.wait_for(lambda: pool.standing("curly")["expires_us"] > before,
                         "the certificate to be renewed\n" + pool.all_logs())
        self.client_says(curly, "certificate is renewed")
        # The new certificate is on disk and valid.
        curly.stop()
        curly.start()
        pool.wait_machines(1)


class Hostile(MembershipCase):
    def address(self, pool):
        host, port = pool.listen.split(":")
        return host, int(port)

    def tls(self, membership=None, join=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["sublet-join/1" if join else "sublet/1"])
        if membership:
            context.load_cert_chain(membership)
        return context

    def closed(self, connection):
        connection.settimeout(harness.PATIENCE)
        try:
            while connection.recv(65536):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
        return True

    def certificate_file(self, pool, client):
        with open(os.path.join(client.state, "membership")) as f:
            text = f.read()
        path = os.path.join(pool.folder, "stolen.pem")
        with open(path, "w") as f:
            f.write(text[text.index("-----BEGIN"):])
        return path

    def test_strangers_and_bad_members(self):
        pool = self.ready("server.handshake=1 s", "server.max_strangers=16",
                          "server.max_strangers_per_host=16")
        curly = pool.joined("curly").start()
        pool.wait_machines(1)
        server = self.server(pool)
        at = self.address(pool)
        killer = b"GIOP\x01\x02\x00\x00\xff\xff\xff\xf4"
        for _ in range(20):
            with socket.create_connection(at) as plain:
                plain.sendall(killer)
                self.closed(plain)
            with socket.create_connection(at) as plain:
                try:
                    with self.tls().wrap_socket(plain) as stranger:
                        stranger.sendall(killer)
                        self.closed(stranger)
                except (ssl.SSLError, ConnectionError):
                    pass
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname = False
        old.verify_mode = ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(at) as plain:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                old.wrap_socket(plain)
        stolen = self.certificate_file(pool, curly)
        for bytes_ in (killer, b"x" * 70000, giop.message(7, b""), giop.message(0, b"\0" * 40)):
            with socket.create_connection(at) as plain:
                with self.tls(stolen).wrap_socket(plain) as member:
                    self.assertEqual(member.recv(5), b"SBL1\0")
                    try:
                        member.sendall(bytes_)
                        self.closed(member)
                    except (ssl.SSLError, ConnectionError):  # closed before everything was sent
                        pass
        for asked in (b"", b"SBJ", b"SBJ1" + b"\0" * 24 + b"\xff\xff", b"nonsense" * 100,
                      b"SBJ1" + b"\0" * 24 + b"\x10\x00" + b"A" * 4096):
            with socket.create_connection(at) as plain:
                try:
                    with self.tls(join=True).wrap_socket(plain) as newcomer:
                        newcomer.sendall(asked)
                        self.closed(newcomer)
                except (ssl.SSLError, ConnectionError):
                    pass
        # Many silent connections do not keep members out.
        crowd = [socket.create_connection(at) for _ in range(40)]
        ann = tls_pool.Person(pool, "ann")
        harness.wait_for(lambda: ann.run("join", pool.invite("ann", "--user"))[0] == 0,
                         "ann to join beside the crowd\n" + pool.log("server"))
        for one in crowd:
            self.closed(one)
            one.close()
        job = pool.submit("--", "true")[0]
        pool.wait_state(job, "done")
        self.assertEqual(self.server(pool), server, "the server died\n" + pool.log("server"))
        harness.wait_for(lambda: len(os.listdir("/proc/%d/fd" % server)) < 60,
                         "descriptors to be given back")


def all_stopped(pid):
    states = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task)) as f:
            states.append(f.read().rpartition(")")[2].split()[0])
    return set(states) == {"T"}


class Loopback(MembershipCase):
    def test_plain_iiop_by_uid(self):
        port = tls_pool.free_port()
        pool = self.pool()
        pool.server_sets = ["server.loopback=true", "server.loopback_port=%d" % port]
        pool.start_server()
        server = self.server(pool)
        self.assertEqual(tcp_listeners(server), 1)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
        asked = giop.request(b"JobScheduler", b"about")
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.settimeout(harness.PATIENCE)
            caller.sendall(asked)
            heard = b""
            while not list(giop.messages(heard)):
                heard += caller.recv(65536)
        reply = next(giop.messages(heard))
        self.assertEqual((reply[7], struct.unpack_from("<I", reply, 16)[0]), (giop.REPLY, 0))
        # A peer that closes before it is looked up is nobody, not root.
        harness.kill(pool.supervisor.pid, signal.SIGSTOP)
        harness.kill(server, signal.SIGSTOP)
        harness.wait_for(lambda: all_stopped(server), "each thread of the server to obey")
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(asked)
        harness.kill(server, signal.SIGCONT)
        harness.kill(pool.supervisor.pid, signal.SIGCONT)
        self.server_says(pool, "the kernel does not know its user")


if __name__ == "__main__":
    unittest.main()

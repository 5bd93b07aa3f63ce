"""Environments of the programs: other languages, broken configurations, read-only
homes."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from tls_pool import Person, TlsPool, free_port

LANGUAGES = ["C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "xx_XX.UTF-8"]  # the last one does not exist


def program(name):
    return os.path.join(harness.BIN, name)


class Languages(unittest.TestCase):
    """The same words, numbers and dates in all languages, also in one that is not installed."""

    @classmethod
    def setUpClass(cls):
        cls.pool = harness.Pool()
        cls.addClassCleanup(cls.pool.close)
        cls.german = os.path.join(cls.pool.folder, "locales")
        os.mkdir(cls.german)
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8",
                        os.path.join(cls.german, "de_DE.UTF-8")], check=True)

    def environment(self, language):
        env = dict(self.pool.environment(), LC_ALL=language, LOCPATH=self.german)
        env.pop("LANGUAGE", None)
        return env

    def test_german_is_there(self):
        """Without it the other tests would prove nothing."""
        done = subprocess.run(["printf", "%.1f", "1,5"], env=self.environment("de_DE.UTF-8"),
                              text=True, stdout=subprocess.PIPE)
        self.assertEqual(done.stdout, "1,5")

    def run_in(self, language, *words):
        done = subprocess.run([program("sublet")] + [str(w) for w in words], text=True,
                              timeout=harness.PATIENCE,
                              env=self.environment(language), cwd=self.pool.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8")
        return done.returncode, done.stdout, done.stderr

    def test_whole_pools(self):
        with open(os.path.join(self.pool.folder, "b.toml"), "w") as f:
            f.write('[[job]]\nname = "grün"\nprogram = "sh"\n'
                    'arguments = ["-c", "echo {rate}", "ü"]\nneeds = { disk = "1.5 MiB" }\n'
                    'parameters.rate = [0.5, 1.25]\n')
        said = {}
        for language in LANGUAGES:
            with self.subTest(language):
                said[language] = self.whole_pool(language)
                self.assertEqual(said[language], said[LANGUAGES[0]])

    def whole_pool(self, language):
        """Daemons and command in that language; returns their output without variable parts."""
        with harness.Pool() as pool:
            own = pool.environment()
            pool.environment = lambda: dict(own, LC_ALL=language, LOCPATH=self.german)
            pool.server_prefix = ["env", "LC_ALL=" + language, "LOCPATH=" + self.german]
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            jobs = pool.submit(os.path.join(self.pool.folder, "b.toml"))
            for job in jobs:
                pool.wait_state(job, "done")
            wrote = [pool.run("logs", job)[1] for job in jobs]
            self.assertEqual(wrote, ["0.5\n", "1.25\n"])
            texts = [pool.run(*words)[1] for words in
                     (["ls", "--all"], ["show", jobs[0]], ["machines"], ["report"], ["why", jobs[0]],
                      ["submit", "--dry-run", os.path.join(self.pool.folder, "b.toml")])]
            for text in texts:
                self.assertTrue(text)
            self.assertRegex(texts[1], r"submitted .*\(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\)")
            self.assertRegex(texts[2], r"  [\d.]+ GiB  ")
            self.assertRegex(texts[3], r" \d+\.\d ")
            detail = pool.job(jobs[1])
            line = pool.sublet("report")["standings"][0]
            self.assertIsInstance(line["usage"], (int, float))
            return [detail["description"], sorted(detail), detail["name"], detail["reason"]]

    def test_words_of_the_command(self):
        """Numbers whose format a language could change, from a command that needs no server."""
        with open(os.path.join(self.pool.folder, "big"), "wb") as f:
            f.truncate(1_234_567)
        expected = None
        for language in LANGUAGES:
            got = [self.run_in(language, "submit", "--dry-run", "--memory", "1.5 GiB",
                               "--wall-limit", "1.5 h", "--input", "big", "--", "true"),
                   self.run_in(language, "submit", "--dry-run", "--json", "--memory", "1.5 GiB",
                               "--", "true"),
                   self.run_in(language, "show", "x"), self.run_in(language, "--help")]
            self.assertIn("send 1 file (1.2 MiB)", got[0][1])
            expected = expected or got
            self.assertEqual(got, expected, language)


class Configurations(unittest.TestCase):
    """Messages contain FILE:LINE:COLUMN, the error, and the nearest setting."""

    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.file = os.path.join(self.pool.folder, "x.toml")
        self.monitor = ["--socket", os.path.join(self.pool.folder, "m.sock")]
        self.daemons = {
            "sublet-server": (["--state", self.pool.state], "[server]\nsokcet = 'x'\n",
                              "server.socket", "[server]\nsocket = 5\n", "2:10"),
            "sublet-client": (["--state", os.path.join(self.pool.folder, "c")],
                              "slots = 1\nsevrer = 'x'\n", "server", "slots = 'many'\n", "1:9"),
            "sublet-loadmon": (self.monitor, "[log]\nlevle = 'info'\n", "log.level",
                               "sample_period = 'often'\n", "1:17"),
        }

    def refused(self, name, text, *more):
        with open(self.file, "w") as f:
            f.write(text)
        done = subprocess.run([program(name), "--config", self.file] + list(more), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              timeout=harness.PATIENCE, env=self.pool.environment())
        self.assertNotEqual(done.returncode, 0, name)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        self.assertTrue(done.stdout.startswith(name + ": "), done.stdout)
        return done.stdout

    def test_daemons(self):
        for name, (args, unknown, nearest, wrong, place) in self.daemons.items():
            with self.subTest(name):
                said = self.refused(name, unknown, *args)
                self.assertIn("x.toml:2:1: there is no setting", said)
                self.assertIn('did you mean "%s"?' % nearest, said)
                said = self.refused(name, wrong, *args)
                self.assertIn("x.toml:%s: " % place, said)
                self.assertIn("must be", said)
                self.assertRegex(self.refused(name, "a = 1\nb = [1,\nc = \n", *args),
                                 r"x\.toml:[23]:\d+: ")
                said = self.refused(name, 'x = "\0\xff\x1b[2J"\n', *args)
                self.assertNotIn("\x1b", said)
                self.assertIn("x.toml:1:", said)
                os.remove(self.file)
                os.mkdir(self.file)
                done = subprocess.run([program(name), "--config", self.file] + args, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("cannot read " + self.file, done.stdout)
                os.rmdir(self.file)

    def test_wrong_together(self):
        """Well-formed but invalid values are reported with their place, too."""
        server, monitor = self.daemons["sublet-server"][0], self.monitor
        for name, args, text, place, said in (
                ("sublet-server", server, "[server]\nlisten = '9740'\n", "2:10",
                 "'9740' is not a HOST:PORT"),
                ("sublet-server", server, "[server]\n\naddress = 'x:'\n", "3:11",
                 "'x:' is not a HOST:PORT"),
                ("sublet-server", server, "[scheduling]\njobs = 'fair'\n", "2:8", "fair-share"),
                ("sublet-server", server, "[scheduling]\nmachines = 'x'\n", "2:12", "fifo-idle"),
                ("sublet-loadmon", monitor, "[load]\nstay_idle_5min = 1\n", "2:18",
                 "load.become_idle_5min and load.stay_idle_5min are inconsistent: become and stay "
                 "must both be set"),
                ("sublet-loadmon", monitor, "[cpu]\nbecome_idle = 2.5\n", "2:15",
                 "cpu.become_idle and cpu.stay_idle are inconsistent: become must not be "
                 "above stay")):
            with self.subTest(text):
                heard = self.refused(name, text, *args)
                self.assertIn("x.toml:%s: " % place, heard)
                self.assertIn(said, heard)

    def test_unlike_everything(self):
        for name, (args, *_) in self.daemons.items():
            said = self.refused(name, "zzzzzzzzzzzz = 1\n", *args)
            self.assertIn('x.toml:1:1: there is no setting "zzzzzzzzzzzz"', said)
            self.assertNotIn("did you mean", said)

    def test_the_command(self):
        folder = os.path.join(self.pool.folder, ".config", "sublet")
        os.makedirs(folder)
        env = self.pool.environment()
        del env["SUBLET_SERVER"]
        for text, place in (("sever = 'x'\n", "1:1: unknown key 'sever'; known is server"),
                            ("\nserver = 5\n", "2:10: server must be a string"),
                            ("server = 'x\n", "1:"), ("= \x1b[2J", "1:")):
            with open(os.path.join(folder, "config.toml"), "w") as f:
                f.write(text)
            done = subprocess.run([program("sublet"), "ls"], env=env, text=True,
                                  timeout=harness.PATIENCE,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
            self.assertIn("config.toml:" + place, done.stderr)
            self.assertIn("--server or $SUBLET_SERVER", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertNotIn("\x1b", done.stderr)


class Homes(unittest.TestCase):
    """Only commands that store something need a writable home."""

    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        blocked = os.path.join(self.pool.folder, "file")
        open(blocked, "w").close()
        # Even root can create nothing below a file or in /proc.
        self.homes = [os.path.join(blocked, "home"), "/proc/self", "/nowhere"]

    def run_at(self, home, *words, **variables):
        env = dict(self.pool.environment(), HOME=home, **variables)
        env.pop("XDG_STATE_HOME", None)
        env.update(variables)
        done = subprocess.run([program("sublet")] + [str(w) for w in words], env=env, text=True,
                              cwd=self.pool.folder, stdin=subprocess.DEVNULL,
                              timeout=harness.PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def test_work_goes_on(self):
        self.pool.start_server()
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        for home in self.homes[:2]:
            status, out, err = self.run_at(home, "submit", "--wait", "--", "echo", "hi")
            self.assertEqual((status, out), (0, "hi\n"), err)
            for words in (["ls", "--all"], ["machines"], ["report"], ["top"], ["about"]):
                status, out, err = self.run_at(home, *words)
                self.assertEqual((status, err), (0, ""), (home, words))

    def test_return_says_what_it_cannot_keep(self):
        self.pool.start_server()
        for home in self.homes[:2]:
            status, out, err = self.run_at(home, "fetch", "--follow")
            self.assertEqual((status, out), (8, ""), err)
            self.assertIn("cannot record what has been fetched: cannot", err)
            self.assertIn(home.removesuffix("/home"), err)
            self.assertIn("$XDG_STATE_HOME", err)
            self.assertEqual(err.count("\n"), 1, err)
        # Following the advice works.
        state = os.path.join(self.pool.folder, "state")
        env = dict(self.pool.environment(), HOME=self.homes[0], XDG_STATE_HOME=state)
        following = subprocess.Popen([program("sublet"), "fetch", "--follow"], env=env, text=True,
                                     stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertIn("fetching outputs as jobs end", following.stderr.readline())
        following.terminate()
        following.communicate(timeout=harness.PATIENCE)

    def test_join_keeps_the_token(self):
        """If the membership cannot be stored, joining fails and the token remains valid."""
        pool = TlsPool("127.0.0.1:%d" % free_port())
        self.addCleanup(pool.close)
        self.assertEqual(pool.init()[0], 0)
        pool.start_server()
        token = pool.invite("ann", "--user")
        ann = Person(pool, "ann")
        kept = ann.home
        for home in (os.path.join(pool.folder, "server.log", "home"), "/proc/self"):
            ann.home = home
            status, out, err = ann.run("join", token, cwd=kept)
            self.assertEqual((status, out), (8, ""), err)
            self.assertIn("the membership cannot be stored: cannot", err)
            self.assertIn("use the same token again", err)
            self.assertEqual(err.count("\n"), 1, err)
        ann.home = kept
        status, out, err = ann.run("join", token, "--json")
        self.assertEqual(status, 0, err)
        joined = json.loads(out)
        self.assertEqual((joined["name"], joined["is_default"]), ("ann", True))
        self.assertEqual(ann.run("ls")[0], 0)


class Paths(unittest.TestCase):
    """Folders with spaces and characters that mean something to a shell or a database."""

    NAME = "my \"pool\" 'a'=b; %41?c#d ü"

    def test_a_whole_pool(self):
        pool = harness.Pool()
        self.addCleanup(pool.close)
        pool.state = os.path.join(pool.folder, self.NAME)
        pool.start_server()
        curly = pool.client("curly")
        curly.state = os.path.join(pool.folder, "curly " + self.NAME)
        curly.start()
        with open(os.path.join(pool.folder, "in put"), "w") as f:
            f.write("some bytes")
        job = pool.submit("--input", "in put", "--output", "out put", "--", "cp", "in put",
                          "out put")[0]
        pool.wait_state(job, "done")
        self.assertEqual(pool.stop_server(), 0)
        pool.start_server()
        pool.sublet("fetch", job, "--into", self.NAME + " results")
        with open(os.path.join(pool.folder, self.NAME + " results", "out put")) as f:
            self.assertEqual(f.read(), "some bytes")
        self.assertEqual(sorted(n for n in os.listdir(pool.folder) if n.startswith("my")),
                         sorted([self.NAME, self.NAME + " results"]))


if __name__ == "__main__":
    unittest.main()

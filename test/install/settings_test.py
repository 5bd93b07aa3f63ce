"""Wrong settings and options: every daemon exits with status 2 and one sentence, and neither
the server's supervisor nor systemd restarts it. --print-settings prints what is in effect."""

import configparser
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

WRONG = 2
NOBODY = 65534
UNITS = os.path.join(harness.ROOT, "etc", "systemd")
# Each daemon with a whole number among its settings, and what that must be.
NUMBERS = {"sublet-server": ("server.queue_limit", "a whole number from 100 to 10000000"),
           "sublet-client": ("slots", "a whole number from 0 to 1024"),
           "sublet-loadmon": ("most_connections", "a whole number from 1 to 16384")}


def toml(key, value):
    table, _, name = key.rpartition(".")
    return ("[%s]\n" % table if table else "\n") + "%s = %s\n" % (name, value)


class Settings(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.file = os.path.join(self.pool.folder, "settings.toml")

    def write(self, text):
        with open(self.file, "w") as f:
            f.write(text)

    def run_daemon(self, name, *arguments):
        return subprocess.run([os.path.join(harness.BIN, name), *arguments], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              env=self.pool.environment(), timeout=harness.PATIENCE)

    def refused(self, name, sentence, *arguments):
        where = () if name != "sublet-loadmon" else ("--socket", self.pool.folder + "/m.sock")
        done = self.run_daemon(name, *where, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (WRONG, "", "%s: %s\n" % (name, sentence)), arguments)

    def test_wrong_files(self):
        for name, (key, allowed) in NUMBERS.items():
            must = '%s:2:%d: "%s" must be %s' % (
                self.file, len(key.rpartition(".")[2]) + 4, key, allowed)
            table = key.rpartition(".")[0]
            unknown = (table and table + ".") + "no_such_word"
            cases = [(toml(unknown, 1), '%s:2:1: there is no setting "%s"; --print-settings '
                      "lists them all" % (self.file, unknown)),
                     (toml(key, '"many"'), must),
                     (toml(key, -1), must),
                     ("\nx = = 1\n", self.file + ":2:5: '=' is not a value; a string needs quotes"),
                     ("\nx = 5min\n",
                      self.file + ":2:6: '5min' is not a number; a string needs quotes")]
            for text, sentence in cases:
                with self.subTest(name, text=text):
                    self.write(text)
                    self.refused(name, sentence, "--config", self.file)

    def test_wrong_arguments(self):
        for name, (key, allowed) in NUMBERS.items():
            with self.subTest(name):
                missing = self.pool.folder + "/none.toml"
                self.refused(name, "cannot open %s: No such file or directory; --config must name "
                             "a settings file" % missing, "--config", missing)
                self.refused(name, 'setting "%s=-1": "%s" must be %s' % (key, key, allowed),
                             "--set", key + "=-1")
                self.refused(name, 'unknown option "--no-such-option"\nTry "%s --help".' % name,
                             "--no-such-option")

    def test_values_that_contradict_each_other(self):
        self.write("[cpu]\nstay_idle = 0.01\n")
        self.refused("sublet-loadmon", self.file + ":2:13: cpu.become_idle and cpu.stay_idle are "
                     "inconsistent: become must not be above stay", "--config", self.file)
        self.write('[server]\nlisten = "nowhere"\n')
        self.refused("sublet-server", self.file + ":2:10: server.listen: 'nowhere' is not a "
                     "HOST:PORT such as 0.0.0.0:9740 or [::]:9740", "--config", self.file)

    def test_programs_and_files_that_cannot_be_used(self):
        log = self.pool.folder + "/none/log"
        for name in NUMBERS:
            self.refused(name, "log.file: cannot write %s: No such file or directory" % log,
                         "--set", "log.file=" + log)
        for setting, program in (("shepherd_program", "sublet-shepherd"),
                                 ("monitor.program", "sublet-loadmon")):
            self.refused("sublet-client", "/none cannot be executed: No such file or directory. "
                         "Install %s beside sublet-client, or name its path with --set %s=PATH." %
                         (program, setting), "--state", self.pool.folder + "/client", "--set",
                         setting + "=/none", "--server", self.pool.folder + "/none.sock")
        self.refused("sublet-server", "debug.crash_at: 'foo' is not PLACE:N", "--set",
                     "debug.crash_at=foo")
        self.refused("sublet-client", "save_deadline and save_deadline_most are inconsistent: a "
                     "job's time to save must not be above the most that a job may ask for",
                     "--set", "save_deadline=20s")

    def test_an_option_without_its_value(self):
        for name in ("sublet-server", "sublet-client"):
            for option in ("--config", "--state"):
                done = self.run_daemon(name, option)
                self.assertEqual(done.returncode, WRONG)
                self.assertRegex(done.stderr, "^%s: %s: 1 required [A-Z]+ missing\n" % (
                    name, option))

    def printed(self, name, *arguments):
        done = self.run_daemon(name, "--print-settings", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_print_settings(self):
        for name, (key, _) in NUMBERS.items():
            with self.subTest(name):
                defaults = self.printed(name)
                self.write(defaults)
                self.assertEqual(self.printed(name, "--config", self.file), defaults)
                self.write(toml(key, 200) + '[log]\nfile = "a \\"b\\""\nlevel = "error"\n')
                text = self.printed(name, "--config", self.file, "--set", "log.level=debug")
                known = tomllib.loads(text)
                self.assertEqual(known["log"], {"file": 'a "b"', "level": "debug"})
                for word in key.split("."):
                    known = known[word]
                self.assertEqual(known, 200)
                # Everything else is as before.
                self.assertEqual(len(set(text.split("\n")) ^ set(defaults.split("\n"))), 6)

    def test_what_the_monitors_rule_decides_is_printed(self):
        known = tomllib.loads(self.printed("sublet-loadmon", "--set", "rule=classic", "--set",
                                           "load.stay_idle_1min=3"))
        self.assertEqual((known["input"], known["cpu"]["stay_idle"], known["load"]["stay_idle_1min"],
                          known["load"]["become_idle_1min"]), (False, -1, 3, 1))

    def test_a_running_servers_supervisor_ends(self):
        self.write("")
        server = subprocess.Popen([os.path.join(harness.BIN, "sublet-server"), "--config",
                                   self.file, "--state", self.pool.state, "--socket",
                                   self.pool.socket], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        wait_for(lambda: os.path.exists(self.pool.socket), "the server to serve")
        self.write("no_such_word = 1\n")
        harness.kill(harness.children(server.pid)[0], signal.SIGKILL)
        self.assertEqual(server.wait(harness.PATIENCE), WRONG)
        self.assertIn(self.file + ":1:1: there is no setting", server.stderr.read())

    def test_a_monitor_that_refuses_its_settings(self):
        """The client says once why nothing can run, again only when the reason changes, and
        goes on trying."""
        self.pool.start_server()
        asked = os.path.join(self.pool.folder, "asked")
        program = os.path.join(self.pool.folder, "monitor")
        with open(program, "w") as f:
            f.write("#!/bin/sh\necho >> %s\nexec %s \"$@\"\n" % (
                asked, os.path.join(harness.BIN, "sublet-loadmon")))
        os.chmod(program, 0o755)
        settings = os.path.join(self.pool.folder, "monitor.toml")

        def write(text):
            """At once: the monitor may be reading it."""
            with open(settings + ".new", "w") as f:
                f.write(text)
            os.rename(settings + ".new", settings)

        def lines(word):
            with open(log) as f:
                return [line for line in f if word in line]

        def ask(times):
            def so_often():
                return os.path.exists(asked) and os.path.getsize(asked) >= wanted
            wanted = times + (os.path.getsize(asked) if os.path.exists(asked) else 0)
            wait_for(so_often, "the monitor to be started %d times" % times)
        write("no_such_word = 1\n")
        client = self.pool.client("curly", extra=[
            "--set", "monitor.program=" + program, "--set", "monitor.config=" + settings]).start()
        log = os.path.join(self.pool.folder, "client-curly.log")
        ask(3)
        refusal = "the load monitor refuses its settings, so no job can run here: sublet-loadmon: "
        self.assertIn(refusal + settings + ':1:1: there is no setting "no_such_word"',
                      lines("no_such_word")[0])
        write("idle_time = 5min\n")
        wait_for(lambda: lines("5min"), "the other reason")
        ask(1)
        self.assertEqual([len(lines(word)) for word in (
            "no_such_word", "5min", "refuses its settings", "load monitor started",
            "no load monitor answers")], [1, 1, 2, 0, 0])
        write("")
        self.pool.wait_state(self.pool.submit("--", "true")[0], "done")
        self.assertEqual(len(lines("load monitor started")), 1)
        client.stop()

    def test_a_users_server_without_options(self):
        """Commands do not look for it; its log says what to write, and that is right."""
        home = os.path.join(self.pool.folder, "home")
        os.mkdir(home)
        env = {"PATH": os.environ["PATH"], "HOME": home, "XDG_RUNTIME_DIR": home}
        command = [self.pool.public(os.path.join(harness.BIN, "sublet-server"))]
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
            command = ["setpriv", "--reuid=%d" % NOBODY, "--clear-groups"] + command
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env=env, text=True, cwd="/")
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        first = next(line for line in server.stderr if "serving at" in line)
        self.assertIn("%s/sublet/server.sock, which is not the default" % home, first)
        told = re.findall("`(sublet[^`]*)`", first)
        self.assertEqual(len(told), 2, first)
        for line, words in zip(told, (["about"], ["--print-settings"])):
            program, *arguments = shlex.split(line)
            done = subprocess.run([os.path.join(harness.BIN, program), *arguments, *words],
                                  text=True, stdin=subprocess.DEVNULL, capture_output=True,
                                  env=env, timeout=harness.PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        self.assertIn('server = "%s/sublet/server.sock"' % home, done.stdout)

    def test_a_monitor_that_cannot_listen(self):
        """The client says once that nothing can run, and goes on trying."""
        self.pool.start_server()
        client = self.pool.client("curly")
        os.mkdir(os.path.join(client.state, "monitor.sock.lock"))
        client.start()
        log = os.path.join(self.pool.folder, "client-curly.log")

        def lines(word):
            with open(log) as f:
                return [line for line in f if word in line]
        wait_for(lambda: len(lines("sublet-loadmon: cannot open")) >= 3, "three monitors to fail")
        self.assertEqual([len(lines(word)) for word in
                          ("load monitor started", "no load monitor answers")], [1, 1])
        self.assertIn("no job can run here", lines("no load monitor answers")[0])
        client.stop()

    def test_systemd_does_not_restart_them(self):
        for unit in ("sublet-server.service", "sublet-client.service", "user/sublet-client.service"):
            parser = configparser.ConfigParser(strict=False, interpolation=None)
            parser.read(os.path.join(UNITS, unit))
            self.assertEqual(parser["Service"]["Restart"], "on-failure", unit)
            self.assertEqual(parser["Service"]["RestartPreventExitStatus"], str(WRONG), unit)


if __name__ == "__main__":
    unittest.main()

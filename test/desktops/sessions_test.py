"""The load monitor and logind: logins, unlocked screens, graphical sessions that nobody sees, and
sleep. logind is played by python3-dbusmock on a bus of its own."""

import json
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import desktop
import harness
from desktop import ACTIVE, AWAY, INPUT, MEDIA, SLEEP, UNSEEN
from harness import wait_for

PYTHON = "/usr/bin/python3"  # for which Debian's packages are
MANAGER, MOCK = "org.freedesktop.login1.Manager", "org.freedesktop.DBus.Mock"
ROOT = "/org/freedesktop/login1"


def has_mock():
    return shutil.which("dbus-daemon") and shutil.which("busctl") and subprocess.run(
        [PYTHON, "-c", "import dbusmock, gi"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(has_mock(), "python3-dbusmock or dbus-daemon is not installed")
class Sessions(unittest.TestCase):
    def setUp(self):
        self.session = desktop.Session(self)
        self.session.start_bus()
        self.address = self.session.environment["DBUS_SESSION_BUS_ADDRESS"]
        self.session.environment["DBUS_SYSTEM_BUS_ADDRESS"] = self.address
        # Terminals and devices of this machine do not disturb.
        os.symlink("/proc", os.path.join(self.session.folder, "proc"))
        os.makedirs(os.path.join(self.session.folder, "dev", "input"))

    def start_logind(self):
        logind = self.session.run(PYTHON, "-m", "dbusmock", "--session", "--template", "logind",
                                  stdout=subprocess.DEVNULL)
        wait_for(lambda: self.ask("ListSessions", check=False) is not None, "logind")
        return logind

    def start_monitor(self, **settings):
        settings["root"] = self.session.folder
        self.monitor = desktop.LoadMonitor(
            self.session, *(word for key, value in settings.items()
                            for word in ("--set", "%s=%s" % (key, value))))

    def bus(self, *words, check=True):
        done = subprocess.run(["busctl", "--address=" + self.address, "--json=short", *words],
                              capture_output=True, text=True, timeout=harness.PATIENCE)
        if done.returncode != 0:
            assert not check, done.stderr
            return None
        return json.loads(done.stdout)["data"] if done.stdout.strip() else []

    def ask(self, member, *words, check=True):
        return self.bus("call", "org.freedesktop.login1", ROOT, MANAGER, member, *words,
                        check=check)

    def add_session(self, name, kind, uid=None, signal=True, **properties):
        uid = os.geteuid() if uid is None else uid
        path, = self.bus("call", "org.freedesktop.login1", ROOT, MOCK, "AddSession", "ssusb", name,
                         "seat0", str(uid), "moe", "true")
        self.change(name, Type=kind, **properties)
        if signal:
            self.emit("SessionNew", "so", "s", name, "o", path)

    def change(self, name, **properties):
        words = []
        for key, value in properties.items():
            flag = isinstance(value, bool)
            words += [key, "b" if flag else "s", str(value).lower() if flag else value]
        self.bus("call", "org.freedesktop.login1", ROOT + "/session/" + name, MOCK,
                 "UpdateProperties", "sa{sv}", "org.freedesktop.login1.Session",
                 str(len(properties)), *words)

    def emit(self, signal, types, *arguments):
        self.bus("call", "org.freedesktop.login1", ROOT, MOCK, "EmitSignal", "sssav", MANAGER,
                 signal, types, str(len(arguments) // 2), *arguments)

    def inhibitors(self):
        return self.ask("ListInhibitors")[0]

    def test_a_login_and_an_unlocked_screen(self):
        self.start_logind()
        self.start_monitor()
        self.monitor.until(AWAY)
        self.add_session("c1", "tty", Remote=True)  # ssh
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        self.monitor.until(AWAY)
        self.change("c1", LockedHint=True)
        self.change("c1", LockedHint=False)
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        self.monitor.until(AWAY)
        self.change("c1", Active=False)
        self.change("c1", Active=True)
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        self.monitor.until(AWAY)

    def seen_by_sessions(self, times):
        """What is told comes before what is logged."""
        def count():
            return self.monitor.log().count("the owner is here: input (sessions, session c")
        wait_for(lambda: count() >= times, "the log to say so")
        self.assertEqual(times, count())

    def test_what_is_no_login(self):
        self.start_logind()
        self.add_session("c0", "tty", signal=False)  # was there before
        self.start_monitor()
        self.monitor.until(AWAY)
        self.add_session("c2", "unspecified", Class="background")  # cron
        self.add_session("c3", "x11", Class="greeter")
        self.change("c0", Active=False)
        # The next one is a login: had one of these counted, it would have come before.
        self.add_session("c4", "tty")
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        self.seen_by_sessions(1)

    def test_a_graphical_session_that_nobody_sees(self):
        self.start_logind()
        self.add_session("c1", "x11", signal=False)
        self.start_monitor()
        wait_for(lambda: self.monitor.until(ACTIVE) == UNSEEN, "the session to count")
        # With an agent it is seen, and as nothing happens there, nobody is here.
        self.session.start_x()
        agent = self.session.start_agent()
        self.monitor.until(AWAY)
        agent.kill()
        self.assertEqual(UNSEEN, self.monitor.until(ACTIVE))
        self.change("c1", State="closing")
        self.monitor.until(AWAY)

    def test_an_agent_shows_one_session_of_its_account(self):
        self.start_logind()
        self.add_session("c1", "x11", signal=False)
        self.add_session("c2", "x11", signal=False)
        self.start_monitor()
        self.session.start_x()
        # Two of one desktop show no more than one.
        for _ in range(2):
            self.session.start_agent()
        wait_for(lambda: self.monitor.log().count("is watched (X11") == 2, "the agents to connect")
        self.stays_unseen()
        self.session.start_x()
        self.session.start_agent()
        self.monitor.until(AWAY)

    def test_an_agent_shows_the_session_of_its_display(self):
        self.start_logind()
        self.session.start_x()
        other = ":%d" % (int(self.session.environment["DISPLAY"][1:]) + 1)
        self.add_session("c1", "x11", signal=False, Display=other)
        self.start_monitor()
        self.session.start_agent()
        wait_for(lambda: "is watched (X11" in self.monitor.log(), "the agent to connect")
        self.stays_unseen()
        self.change("c1", Display=self.session.environment["DISPLAY"])
        self.monitor.until(AWAY)
        # It shows no session of Wayland.
        self.change("c1", Type="wayland")
        self.assertEqual(UNSEEN, self.monitor.until(ACTIVE))

    def test_the_kernel_knows_the_session_of_a_display(self):
        # The session's own scope, as systemd names it, for this X server.
        server = self.session.start_x()
        proc = os.path.join(self.session.folder, "proc")
        os.unlink(proc)
        os.makedirs(os.path.join(proc, str(server.pid)))
        for name in ("stat", "self"):
            os.symlink("/proc/" + name, os.path.join(proc, name))
        with open(os.path.join(proc, str(server.pid), "cgroup"), "w") as f:
            f.write("1:name=systemd:/user.slice/user-0.slice/session-c2.scope\n0::/\n")
        self.start_logind()
        self.add_session("c1", "x11", signal=False)
        self.start_monitor()
        self.session.start_agent()
        wait_for(lambda: "is watched (X11" in self.monitor.log(), "the agent to connect")
        self.stays_unseen()
        self.change("c1", State="closing")
        self.add_session("c2", "x11")
        self.monitor.until(AWAY)

    def stays_unseen(self):
        """For longer than the monitor would need to take a sample and to become idle."""
        # The monitor does not wait for what logind says at its start.
        wait_for(lambda: self.monitor.senses()["sessions"][0] == 1, "the session to count")
        end = time.monotonic() + 3
        while time.monotonic() < end:
            against, value = self.monitor.senses()["sessions"]
            self.assertEqual(1, against)
            self.assertRegex(value, "^one whose input nothing shows, session c[12]$")
            time.sleep(0.1)

    def test_an_agent_of_somebody_else_does_not_help(self):
        self.start_logind()
        self.add_session("c1", "x11", uid=os.geteuid() + 1, signal=False)
        self.start_monitor()
        self.session.start_x()
        self.session.start_agent()
        wait_for(lambda: "is watched (X11" in self.monitor.log(), "the agent to connect")
        wait_for(lambda: self.monitor.until(ACTIVE) == UNSEEN, "the session to count")

    def test_input_devices_show_local_sessions_only(self):
        os.mkfifo(os.path.join(self.session.folder, "dev", "input", "event0"))
        self.start_logind()
        self.add_session("c1", "x11", signal=False)
        self.start_monitor()
        self.monitor.until(AWAY)
        self.change("c1", Remote=True)
        self.assertEqual(UNSEEN, self.monitor.until(ACTIVE))

    def test_sleep_waits_until_the_jobs_have_gone(self):
        self.start_logind()
        self.start_monitor()
        self.monitor.until(AWAY)
        self.assertEqual([["sleep", "Sublet", "jobs save their work and leave", "delay"]],
                         [one[:4] for one in self.inhibitors()])
        self.emit("PrepareForSleep", "b", "b", "true")
        self.assertEqual(SLEEP, self.monitor.until(ACTIVE))
        # No job runs here: the machine may sleep.
        wait_for(lambda: self.inhibitors() == [], "the delay to end")
        self.emit("PrepareForSleep", "b", "b", "false")
        self.monitor.until(AWAY)
        wait_for(lambda: len(self.inhibitors()) == 1, "the next delay")

    def test_a_program_that_keeps_the_screen_on(self):
        self.start_logind()
        self.bus("call", "org.freedesktop.login1", ROOT, MOCK, "AddProperty", "ssv", MANAGER,
                 "BlockInhibited", "s", "")
        self.start_monitor()
        self.monitor.until(AWAY)

        def inhibited(what):
            self.bus("call", "org.freedesktop.login1", ROOT, MOCK, "UpdateProperties", "sa{sv}",
                     MANAGER, "1", "BlockInhibited", "s", what)
        inhibited("shutdown:idle")
        self.assertEqual(MEDIA, self.monitor.until(ACTIVE))
        inhibited("shutdown")
        self.monitor.until(AWAY)

    def test_a_film_and_a_call(self):
        proc = os.path.join(self.session.folder, "proc")
        stream = os.path.join(proc, "asound", "card0", "pcm0p", "sub0")
        os.unlink(proc)
        os.makedirs(stream)
        for name in ("stat", "self"):
            os.symlink("/proc/" + name, os.path.join(proc, name))
        camera = os.path.join(self.session.folder, "dev", "video0")
        open(camera, "w").close()

        def sound(words):
            with open(stream + "/new", "w") as f:
                f.write(words)
            os.rename(stream + "/new", stream + "/status")
        sound("closed\n")
        self.start_monitor()
        self.monitor.until(AWAY)
        sound("state: RUNNING\nowner_pid   : 1\n")
        self.assertEqual(MEDIA, self.monitor.until(ACTIVE))
        self.assertEqual((1, "sound, card0/pcm0p/sub0"), self.monitor.senses()["media"])
        sound("closed\n")
        self.monitor.until(AWAY)
        with open(camera):
            self.assertEqual(MEDIA, self.monitor.until(ACTIVE))
            self.assertEqual((1, "an open camera, video0"), self.monitor.senses()["media"])
        self.monitor.until(AWAY)

    def start_film(self):
        """An agent of a session c1, and a film there; nobody touches anything any more."""
        self.session.start_x()
        self.owner = desktop.Owner(self.session, "xtest_input")
        self.session.start_agent()
        wait_for(lambda: "is watched (X11" in self.monitor.log(), "the agent to connect")
        self.monitor.until(AWAY)
        self.owner.do("fill")
        self.assertEqual(MEDIA, self.monitor.until(ACTIVE))
        film = "a full-screen program, X11 " + self.session.environment["DISPLAY"]
        self.assertEqual((1, film), self.monitor.senses()["media"])
        wait_for(lambda: "(%s)" % film in self.monitor.log(), "the log to say so")

    def test_a_full_screen_film(self):
        self.start_logind()
        self.add_session("c1", "x11", signal=False)
        self.start_monitor()
        self.start_film()
        self.owner.do("shrink")
        self.monitor.until(AWAY)
        # No film: a locked session, and one that is not in front.
        self.owner.do("fill")
        self.assertEqual(MEDIA, self.monitor.until(ACTIVE))
        self.change("c1", LockedHint=True)
        self.monitor.until(AWAY)
        self.change("c1", LockedHint=False)
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        wait_for(lambda: self.monitor.senses()["media"][0] == 1, "the film to count")
        self.change("c1", Active=False)
        self.monitor.until(AWAY)

    def test_a_full_screen_program_that_nobody_touches_for_long(self):
        self.start_monitor(full_screen="4 s")
        self.start_film()
        self.monitor.until(AWAY)
        self.owner.do("key")
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        wait_for(lambda: self.monitor.senses()["media"][0] == 1, "the film to count again")
        self.monitor.until(AWAY)

    def test_a_bus_that_comes_after_the_monitor(self):
        self.address = "unix:path=" + os.path.join(self.session.folder, "bus")
        self.session.environment["DBUS_SYSTEM_BUS_ADDRESS"] = self.address
        self.start_monitor()
        self.monitor.until(AWAY)
        self.session.start_bus("--address", self.address)
        self.start_logind()
        wait_for(lambda: len(self.inhibitors()) == 1, "the monitor to ask for a delay")
        self.add_session("c1", "tty")
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))

    def test_without_logind_it_goes_on(self):
        self.start_monitor()
        self.monitor.until(AWAY)
        # It is found when it starts.
        logind = self.start_logind()
        wait_for(lambda: len(self.inhibitors()) == 1, "the monitor to ask for a delay")
        self.add_session("c1", "tty")
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        self.monitor.until(AWAY)
        # A restart is no owner.
        logind.terminate()
        logind.wait()
        self.start_logind()
        wait_for(lambda: len(self.inhibitors()) == 1, "the monitor to ask again")
        self.add_session("c2", "tty")
        self.assertEqual(INPUT, self.monitor.until(ACTIVE))
        self.seen_by_sessions(2)
        self.assertNotIn("failed", self.monitor.log())

    def test_a_logind_that_has_gone_is_the_owner(self):
        logind = self.start_logind()
        self.start_monitor()
        self.monitor.until(AWAY)
        wait_for(lambda: len(self.inhibitors()) == 1, "the monitor to be known")
        logind.terminate()
        self.monitor.until(ACTIVE)
        wait_for(lambda: "the sense 'sessions' failed" in self.monitor.log(), "the log")
        self.assertIn("logind has ended", self.monitor.log())


if __name__ == "__main__":
    unittest.main()

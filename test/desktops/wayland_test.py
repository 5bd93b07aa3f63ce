"""sublet-agent in a Wayland session, without a screen: sway, which in Debian 12 speaks KDE's old
idle protocol, with a virtual keyboard; KWin, which speaks ext-idle-notify-v1, with fake input; and
for films and seats that come and go a small compositor of this test's own (idle_compositor)."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import desktop
import harness


class Watched:
    """What holds for each compositor. setUp() makes session, server, owner and monitor."""

    def test_a_key_is_seen_at_once(self):
        for _ in range(2):
            self.monitor.settle()
            self.owner.do("key")
            self.monitor.here()

    def test_input_that_goes_on_is_reported_now_and_then(self):
        desktop.use_without_pause(self, "key")

    def test_a_quiet_desktop_costs_nothing(self):
        self.monitor.settle()
        desktop.wait_asleep(self.agent)
        before = desktop.wake_ups(self.agent.pid)
        self.assertIsNone(self.monitor.next(1.5 * desktop.REPEAT))
        self.assertEqual(before, desktop.wake_ups(self.agent.pid))
        self.assertTrue(self.monitor.silent())

    def test_a_ping_is_answered_only_if_the_compositor_lives(self):
        self.monitor.settle()
        self.assertEqual(3, self.monitor.ping(3))
        self.server.send_signal(signal.SIGSTOP)
        self.monitor.send_ping(4)
        self.assertIsNone(self.monitor.next(1))
        self.server.send_signal(signal.SIGCONT)
        kind, _, sequence, _ = self.monitor.next()
        self.assertEqual((desktop.ACK, 4), (kind, sequence))

    def test_the_agent_ends_with_the_compositor(self):
        self.server.kill()
        self.assertEqual(0, self.agent.wait(harness.PATIENCE))
        self.assertIn("has gone", self.agent.stderr.read())

    def watch(self, kind):
        self.monitor = desktop.Monitor(self.session.folder)
        self.addCleanup(self.monitor.close)
        self.agent = self.session.start_agent()
        self.assertEqual(kind, self.monitor.accept())


@unittest.skipIf(desktop.missing("sway"), "sway is not installed")
class Sway(Watched, unittest.TestCase):
    def setUp(self):
        self.session = desktop.Session(self)
        self.server = self.session.start_sway()
        self.owner = desktop.Owner(self.session, "virtual_keyboard")
        self.watch(desktop.KDE)

    def test_a_full_screen_program_is_told(self):
        self.monitor.settle()
        films = [desktop.Owner(self.session, "film") for _ in range(2)]
        for film in films:
            film.do("fill")
            self.assertEqual(1, self.monitor.full_screen())
            film.do("shrink")
            self.assertEqual(0, self.monitor.full_screen())
        films[1].do("fill")
        self.assertEqual(1, self.monitor.full_screen())
        films[1].process.kill()
        self.assertEqual(0, self.monitor.full_screen())


@unittest.skipIf(desktop.missing("kwin_wayland"), "kwin-wayland is not installed")
class KWin(Watched, unittest.TestCase):
    def setUp(self):
        self.session = desktop.Session(self)
        self.server = self.session.start_kwin()
        self.owner = desktop.Owner(self.session, "fake_input")
        self.watch(desktop.EXT)

    def test_every_kind_of_input_is_seen(self):
        for word in ("button", "motion", "touch"):
            self.monitor.settle()
            self.owner.do(word)
            self.monitor.here()


class IdleNotify(Watched, unittest.TestCase):
    def setUp(self):
        self.session = desktop.Session(self)
        self.session.environment["WAYLAND_DISPLAY"] = "wayland-7"
        self.owner = desktop.Owner(self.session, "idle_compositor", "wayland-7").ready()
        self.server = self.owner.process
        self.watch(desktop.EXT)

    def test_a_film_counts_until_it_ends(self):
        self.owner.do("inhibit")
        for _ in range(3):
            self.monitor.here()
        self.owner.do("uninhibit")
        self.monitor.settle()

    def test_seats_come_and_go(self):
        self.owner.do("add")
        self.monitor.settle()
        self.owner.do("key")
        self.monitor.here()
        self.owner.do("remove")
        self.monitor.settle()
        self.owner.do("key")
        self.monitor.here()


class NoCompositor(unittest.TestCase):
    def refused(self, sentence):
        agent = self.session.start_agent()
        self.assertEqual(1, agent.wait(harness.PATIENCE))
        self.assertIn(sentence, agent.stderr.read())

    def test_one_that_does_not_answer_is_named(self):
        self.session = desktop.Session(self)
        self.session.environment.update(WAYLAND_DISPLAY="wayland-9", DISPLAY=":65000")
        self.refused("cannot connect to the Wayland compositor wayland-9")


if __name__ == "__main__":
    unittest.main()

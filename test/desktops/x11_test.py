"""sublet-agent in a session of X11: a real X server (Xvfb), input through XTEST."""

import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import desktop
import harness
from harness import wait_for


@unittest.skipIf(desktop.missing("Xvfb"), "Xvfb is not installed")
class X11(unittest.TestCase):
    def setUp(self):
        self.session = desktop.Session(self)
        self.server = self.session.start_x()
        self.owner = desktop.Owner(self.session, "xtest_input")
        self.monitor = desktop.Monitor(self.session.folder)
        self.addCleanup(self.monitor.close)
        self.agent = self.session.start_agent()
        self.assertEqual(desktop.X11, self.monitor.accept())

    def test_every_kind_of_input_is_seen(self):
        for word in ("key", "button", "motion"):
            self.monitor.settle()
            self.owner.do(word)
            self.monitor.here()

    def test_a_program_that_draws_is_not_input(self):
        self.monitor.settle()
        for _ in range(20):
            self.owner.do("draw")
        self.assertTrue(self.monitor.silent())

    def test_input_that_goes_on_is_reported_now_and_then(self):
        desktop.use_without_pause(self, "motion")

    def test_a_quiet_desktop_costs_nothing(self):
        self.monitor.settle()
        desktop.wait_asleep(self.agent)
        before = desktop.wake_ups(self.agent.pid)
        self.owner.do("draw")
        self.assertIsNone(self.monitor.next(1.5 * desktop.REPEAT))
        self.assertEqual(before, desktop.wake_ups(self.agent.pid))

    def test_a_full_screen_program_is_told(self):
        self.monitor.settle()
        for end in "shrink", "close":
            self.owner.do("fill")
            self.assertEqual(1, self.monitor.full_screen())
            self.owner.do(end)
            self.assertEqual(0, self.monitor.full_screen())
        # What lies behind a lock is not.
        self.owner.do("fill")
        self.assertEqual(1, self.monitor.full_screen())
        self.owner.do("lock")
        self.assertEqual(0, self.monitor.full_screen())
        self.owner.do("unlock")
        self.assertEqual(1, self.monitor.full_screen())

    def test_a_program_that_changes_all_the_time_is_told_now_and_then(self):
        self.monitor.settle()
        began = time.monotonic()
        for _ in range(200):
            self.owner.do("fill")
            self.owner.do("shrink")
        self.owner.do("fill")
        told = []
        while (frame := self.monitor.next(1.5 * desktop.REPEAT)) is not None:
            if frame[0] == desktop.FULL_SCREEN:
                told.append(frame[1])
        self.assertEqual(1, told[-1])
        self.assertLessEqual(len(told), 2 + (time.monotonic() - began))

    def test_a_new_monitor_is_told_of_the_program(self):
        self.owner.do("fill")
        self.assertEqual(1, self.monitor.full_screen())
        self.monitor.close()
        os.unlink(os.path.join(self.session.folder, "agent.sock"))
        self.monitor = desktop.Monitor(self.session.folder)
        self.addCleanup(self.monitor.close)
        self.monitor.accept()
        self.assertEqual(1, self.monitor.full_screen())

    def test_a_ping_is_answered_only_if_the_server_lives(self):
        self.monitor.settle()
        self.assertEqual(3, self.monitor.ping(3))
        self.server.send_signal(signal.SIGSTOP)
        self.monitor.send_ping(4)
        self.assertIsNone(self.monitor.next(1))
        self.server.send_signal(signal.SIGCONT)
        kind, _, sequence, _ = self.monitor.next()
        self.assertEqual((desktop.ACK, 4), (kind, sequence))

    def test_the_agent_ends_with_the_server(self):
        self.server.terminate()
        self.assertEqual(0, self.agent.wait(harness.PATIENCE))
        self.assertIn("has gone", self.agent.stderr.read())

    def test_another_monitor_is_found(self):
        self.monitor.close()
        os.unlink(os.path.join(self.session.folder, "agent.sock"))
        self.owner.do("key")
        self.monitor = desktop.Monitor(self.session.folder)
        self.addCleanup(self.monitor.close)
        self.assertEqual(desktop.X11, self.monitor.accept())
        self.monitor.settle()
        self.owner.do("key")
        self.monitor.here()


@unittest.skipIf(desktop.missing("Xvfb"), "Xvfb is not installed")
class RealMonitor(unittest.TestCase):
    """The owner touches a key, and the load monitor's listeners know."""

    def setUp(self):
        self.session = desktop.Session(self)
        self.session.start_x()
        self.owner = desktop.Owner(self.session, "xtest_input")
        # The owner's programs are played; his hands are not.
        control = os.path.join(self.session.folder, "control")
        with open(control, "w") as f:
            f.write("0.0")
        self.monitor = desktop.LoadMonitor(self.session, "--control", control)
        self.agent = self.session.start_agent()
        wait_for(lambda: "is watched (X11" in self.monitor.log(), "the agent to connect")

    def test_the_owner_comes_back(self):
        for word in ("motion", "key", "button"):
            self.monitor.until(desktop.AWAY)
            self.owner.do(word)
            self.assertEqual(desktop.INPUT, self.monitor.until(desktop.ACTIVE))

    def test_a_stopped_agent_is_dropped(self):
        self.agent.send_signal(signal.SIGSTOP)
        wait_for(lambda: "speaks for a desktop: it does not answer" in self.monitor.log(), "its end")
        self.agent.send_signal(signal.SIGCONT)
        wait_for(lambda: self.monitor.log().count("is watched (X11") == 2, "its return")
        self.monitor.until(desktop.AWAY)
        self.owner.do("key")
        self.assertEqual(desktop.INPUT, self.monitor.until(desktop.ACTIVE))


class NoDesktop(unittest.TestCase):
    def test_without_a_graphical_session_it_ends(self):
        session = desktop.Session(self)
        agent = session.start_agent()
        self.assertEqual(0, agent.wait(harness.PATIENCE))
        self.assertIn("there is no graphical session here", agent.stderr.read())

    def test_a_server_that_does_not_answer_is_named(self):
        session = desktop.Session(self)
        session.environment["DISPLAY"] = ":65000"
        agent = session.start_agent()
        self.assertEqual(1, agent.wait(harness.PATIENCE))
        self.assertIn("cannot connect to the X server :65000", agent.stderr.read())


if __name__ == "__main__":
    unittest.main()

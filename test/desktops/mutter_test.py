"""sublet-agent in a session of Mutter: a compositor without idle protocol, and on a private
session bus an IdleMonitor whose watches fire as Mutter's do (mutter.cc)."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import desktop
import harness
from wayland_test import Watched


@unittest.skipIf(desktop.missing("dbus-daemon"), "dbus-daemon is not installed")
class Mutter(Watched, unittest.TestCase):
    def setUp(self):
        self.session = desktop.Session(self)
        self.session.start_bare_compositor()
        self.session.start_bus()
        self.owner = desktop.Owner(self.session, "mutter").ready()
        self.server = self.owner.process
        self.watch(desktop.MUTTER)


@unittest.skipIf(desktop.missing("dbus-daemon"), "dbus-daemon is not installed")
class NoMutter(unittest.TestCase):
    def test_a_compositor_that_tells_nobody_is_named(self):
        session = desktop.Session(self)
        session.start_bare_compositor()
        session.start_bus()
        agent = session.start_agent()
        self.assertEqual(1, agent.wait(harness.PATIENCE))
        self.assertIn("tells nobody whether it is used", agent.stderr.read())


if __name__ == "__main__":
    unittest.main()

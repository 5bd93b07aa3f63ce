"""Large files through the spool while connections are cut: sent, fetched by a workstation,
handed in, and fetched by their user; they are identical at the end.
$SUBLET_TRANSFER_BYTES makes them larger than 64 MiB."""

import hashlib
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import cutter
import harness

BYTES = int(os.environ.get("SUBLET_TRANSFER_BYTES", 64 << 20))
CUTS = 10


def write_random(path, size):
    digest = hashlib.blake2b(digest_size=32)
    with open(path, "wb") as f:
        for at in range(0, size, 1 << 20):
            part = os.urandom(min(1 << 20, size - at))
            digest.update(part)
            f.write(part)
    return digest.hexdigest()


def digest_of(path):
    digest = hashlib.blake2b(digest_size=32)
    with open(path, "rb") as f:
        while part := f.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def spread(size):
    """The offsets at which a transfer of this size is cut."""
    return [size * (2 * i + 1) // (2 * CUTS) for i in range(CUTS)]


class Transfer(unittest.TestCase):
    def test_cut_ten_times_on_each_way(self):
        with harness.Pool() as pool:
            pool.start_server()
            server = pool.socket
            users = cutter.Cutter(os.path.join(pool.folder, "user", "s"), server)
            machines = cutter.Cutter(os.path.join(pool.folder, "machine", "s"), server)
            sent = write_random(os.path.join(pool.folder, "data"), BYTES)
            pool.socket = os.path.join(pool.folder, "machine", "s")
            pool.client("curly", extra=["--set", "log.level=debug"]).start()
            pool.socket = os.path.join(pool.folder, "user", "s")
            pool.wait_machines(1)
            machines.plan(spread(BYTES) + [BYTES + cut for cut in spread(BYTES)])
            users.plan(spread(BYTES))
            job = pool.submit("--input", "data", "--output", "copy", "--", "cp", "data", "copy")[0]
            self.assertEqual(users.made, CUTS)
            details = pool.wait_state(job, ["done", "failed"], deadline=4 * harness.PATIENCE)
            self.assertEqual(details["state"], "done", details)
            self.assertEqual(machines.made, 2 * CUTS)
            self.assertEqual(details["attempts"], 1, details)
            # Neither is little enough for the client itself.
            self.assertIn("its files are moved by another process", pool.log("client-curly"))
            self.assertEqual(details["outputs"][0]["digest"], sent)
            users.plan(spread(BYTES))
            pool.sublet("fetch", str(job), "--into", "home")
            self.assertEqual(users.made, CUTS)
            self.assertEqual(digest_of(os.path.join(pool.folder, "home", "copy")), sent)
            users.close()
            machines.close()


if __name__ == "__main__":
    unittest.main()

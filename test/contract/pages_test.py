"""Lists of the contract that are read one item at a time have all their items."""

import os
import socket
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import giop
import harness
import tls_pool

BY_USER = 1  # ReportQuery::by


def next_cursor(reply):
    """A page ends with the cursor, a sequence<octet>, and the empty sequence `more`. The cursors
    are texts, so that no four of their octets are the number of their octets."""
    assert struct.unpack("<I", reply[-4:])[0] == 0
    for size in range(256):
        at = len(reply) - 4 - (size + -size % 4) - 4
        if struct.unpack_from("<I", reply, at)[0] == size:
            return reply[at + 4:at + 4 + size]
    raise AssertionError("no cursor in %r" % reply)


class Pages(unittest.TestCase):
    def setUp(self):
        self.pool = tls_pool.TlsPool("127.0.0.1:%d" % tls_pool.free_port())
        self.addCleanup(self.pool.close)
        status, words = self.pool.init()
        self.assertEqual(status, 0, words)
        self.pool.start_server()
        self.connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.connection.close)
        self.connection.settimeout(harness.PATIENCE)
        self.connection.connect(self.pool.socket)

    def ask(self, interface, operation, body):
        """The results of a call, without the reply's head."""
        self.connection.sendall(giop.request(interface, operation, body))
        data = b""
        while not list(giop.messages(data)):
            more = self.connection.recv(65536)
            self.assertTrue(more, "the server closed the connection")
            data += more
        reader = giop.Reader(data)
        reader.number()  # the request's identifier
        self.assertEqual(reader.number(), 0, data)
        for _ in range(reader.number()):
            reader.number()
            reader.octets()
        return reader.rest()

    def items(self, interface, operation, arguments=b""):
        """How many items the list has. Fails if a page has more than one."""
        cursor, seen, count = b"", set(), 0
        while cursor not in seen:
            seen.add(cursor)
            body = arguments + struct.pack("<I", len(cursor)) + cursor
            body += b"\0" * (-len(body) % 4) + struct.pack("<I", 1)
            reply = self.ask(interface, operation, body)
            items = struct.unpack_from("<I", reply)[0]
            self.assertLessEqual(items, 1, operation)
            count += items
            cursor = next_cursor(reply)
            if not cursor:
                return count
        self.fail("%r gives the cursor %r twice" % (operation, cursor))

    def test_one_item_a_page(self):
        for name in ("curly", "larry", "moe"):
            self.pool.joined(name).start()
        self.pool.wait_machines(3)
        ann = tls_pool.Person(self.pool, "ann")
        self.assertEqual(ann.run("join", self.pool.invite("ann", "--user"))[0], 0)
        self.assertEqual(ann.run("submit", "--wait", "--", "true")[0], 0)
        job = self.pool.submit("--retries", "2", "--output", "a", "--output", "b", "--", "sh", "-c",
                               "touch a b; exit 1")[0]
        self.pool.wait_state(job, {"failed"})

        every_job = struct.pack("<I4xQI4xIB3xI", 0, 0, 1, 0, 0, 0)
        self.assertEqual(self.items(b"JobScheduler", b"list", every_job), 2)
        one_job = struct.pack("<Q", job)
        self.assertEqual(self.items(b"JobScheduler", b"attempts", one_job), 3)
        self.assertEqual(self.items(b"JobScheduler", b"outputs", one_job),
                         len(self.pool.job(job)["outputs"]))
        self.assertEqual(self.items(b"MachineAllocator", b"list"), 3)
        self.assertEqual(self.items(b"Membership", b"list"), 4)
        self.assertEqual(self.items(b"Accounting", b"current_standings"), 2)
        by_user = struct.pack("<QQI4xQI4xI", 0, 0, 1, BY_USER, 1, 0)
        self.assertEqual(self.items(b"Accounting", b"usage", by_user), 2)


if __name__ == "__main__":
    unittest.main()

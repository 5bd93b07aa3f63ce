"""Text from callers that negotiate no code set, or Latin-1, as other ORBs do."""

import os
import socket
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import giop
import harness

CODE_SETS, LATIN_1, UTF_16 = 1, 0x00010001, 0x00010109
NEGOTIATED_LATIN_1 = [(CODE_SETS, struct.pack("<B3xII", 1, LATIN_1, UTF_16))]


class Parameters:
    """CDR, little-endian, aligned from the start of the body."""

    def __init__(self):
        self.data = b""

    def number(self, value, form="<I"):
        self.data += b"\0" * (-len(self.data) % struct.calcsize(form)) + struct.pack(form, value)

    def octets(self, value):
        self.number(len(value))
        self.data += value


def join(name, **options):
    """MachineAllocator::join of a new machine."""
    p = Parameters()
    p.number(0, "<Q")
    p.octets(os.urandom(32))
    for text in (name, b"linux", b"x86_64"):
        p.octets(text + b"\0")
    p.number(1)
    p.number(1)
    p.number(1 << 30, "<Q")
    p.number(1 << 30, "<Q")
    p.octets(b"1\0")
    for _ in ("resources", "capabilities", "more"):
        p.number(0)
    return giop.request(b"MachineAllocator", b"join", p.data, **options)


class OtherOrb(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.connection.close)
        self.connection.settimeout(harness.PATIENCE)
        self.connection.connect(self.pool.socket)

    def ask(self, request):
        """The answer's body."""
        self.connection.sendall(request)
        data = b""
        while not list(giop.messages(data)):
            more = self.connection.recv(65536)
            self.assertTrue(more, "the server closed the connection")
            data += more
        return data

    def names(self):
        return [machine["name"] for machine in self.pool.machines()]

    def test_utf8_without_code_sets(self):
        self.ask(join("büro-日".encode()))
        self.assertEqual(self.names(), ["büro-日"])
        # As in the answers: this one says who has the name.
        self.assertIn("büro-日".encode(), self.ask(join("büro-日".encode())))

    def test_latin_1_without_code_sets(self):
        self.ask(join("büro".encode("latin-1")))
        self.assertEqual(self.names(), ["büro"])

    def test_negotiated_latin_1(self):
        """The code set is negotiated by the first request, for all of the connection's."""
        self.ask(join("Ã¼".encode("latin-1"), contexts=NEGOTIATED_LATIN_1))
        self.ask(join("Ã¶".encode("latin-1")))
        self.assertEqual(sorted(self.names()), ["Ã¶", "Ã¼"])


if __name__ == "__main__":
    unittest.main()

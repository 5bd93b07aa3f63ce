"""GIOP 1.2 for tests: creates and parses messages, and a relay that records the traffic
on a server's socket."""

import os
import socket
import struct
import threading

REQUEST, REPLY, CANCEL, LOCATE = 0, 1, 2, 3
EXCEPTIONS = {1: "user exception", 2: "system exception"}  # by reply status


def message(kind, body, size=None, flags=1, version=(1, 2)):
    return (b"GIOP" + bytes(version) + bytes([flags, kind]) +
            struct.pack("<I", len(body) if size is None else size) + body)


def request(key, operation, body=b"", identifier=1, flags=1, contexts=()):
    """`contexts`: the service contexts, each an id and its data."""
    name = operation + b"\0"
    head = struct.pack("<IB3xH2xI", identifier, 3, 0, len(key)) + key
    head += b"\0" * (-len(head) % 4) + struct.pack("<I", len(name)) + name
    head += b"\0" * (-len(head) % 4) + struct.pack("<I", len(contexts))
    for number, data in contexts:
        head += b"\0" * (-len(head) % 4) + struct.pack("<II", number, len(data)) + data
    head += b"\0" * (-(len(head) + 12) % 8)
    return message(REQUEST, head + body, flags=flags)


class Reader:
    """CDR, little-endian, aligned from the message's first byte."""

    def __init__(self, data):
        self.data, self.at = data, 12

    def number(self):
        self.at += -self.at % 4
        self.at += 4
        return struct.unpack_from("<I", self.data, self.at - 4)[0]

    def octets(self):
        size = self.number()
        self.at += size
        return self.data[self.at - size:self.at]

    def rest(self):
        return self.data[self.at + -self.at % 8:]


class Request:
    def __init__(self, data):
        reader = Reader(data)
        self.data = data  # the whole message
        self.identifier = reader.number()
        self.flags = data[reader.at]
        reader.at += 8  # response flags; the target is a key
        self.key = reader.octets()
        self.operation = reader.octets()[:-1].decode()
        for _ in range(reader.number()):
            reader.number()
            reader.octets()
        self.body = reader.rest()


def messages(data):
    """The complete messages at the start of a stream."""
    while len(data) >= 12:
        end = 12 + struct.unpack_from("<I", data, 8)[0]
        if len(data) < end:
            return
        yield data[:end]
        data = data[end:]


def requests(data):
    return [Request(m) for m in messages(data) if m[7] == REQUEST]


def answers(path, data, deadline=10):
    """Sends; returns a word for each reply, "closed" when the peer closes the connection."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(deadline)
        heard = b""
        try:
            s.connect(path)
            s.sendall(data)
            asked = len(requests(data))
            while len([m for m in messages(heard) if m[7] == REPLY]) < asked:
                more = s.recv(65536)
                if not more:
                    return ["closed"]
                heard += more
        except (BrokenPipeError, ConnectionResetError):
            return ["closed"]
        except PermissionError:
            return ["not let in"]
        except socket.timeout:
            return ["silence"]
    return [EXCEPTIONS.get(struct.unpack_from("<I", m, 16)[0], "obeyed")
            for m in messages(heard) if m[7] == REPLY]


class Relay:
    """Replaces a server's socket, forwards all traffic and records it. The server sees
    the relay's user as the peer."""

    def __init__(self, path):
        self.path = path
        self.behind = path + ".behind"
        self.lock = threading.Lock()
        # [from the caller, from the server, ended directions] of each connection
        self.streams = []
        os.rename(path, self.behind)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.behind)
            except OSError:
                caller.close()
                continue
            stream = [b"", b"", 0]
            with self.lock:
                self.streams.append(stream)
            for ends in ((caller, server, 0), (server, caller, 1)):
                threading.Thread(target=self.pump, args=(stream,) + ends, daemon=True).start()

    def pump(self, stream, source, sink, which):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                self.passed(stream, which, data)
                sink.sendall(data)
        except OSError:
            pass
        # The other thread still uses both sockets; the last thread closes them.
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            ended = stream[2] = stream[2] + 1
        if ended == 2:
            source.close()
            sink.close()

    def passed(self, stream, which, data):
        with self.lock:
            stream[which] += data

    def calls(self, which):
        """Requests by callers (0) or by the server (1), oldest connection first."""
        with self.lock:
            streams = [stream[which] for stream in self.streams]
        return [call for stream in streams for call in requests(stream)]

    def step_aside(self):
        """New callers reach the server itself; existing connections stay."""
        os.rename(self.behind, self.path)
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

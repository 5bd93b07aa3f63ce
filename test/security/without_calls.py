"""without_calls.py NAME=ERROR... -- COMMAND: runs the command where the kernel answers these system
calls with an error, as one that lacks a part of them does, or a container that refuses them.

NAME is one of CALLS. The numbers are those of x86-64."""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
# The name: the call's number, and what has to be true of its first argument.
CALLS = {"mount": (165, None), "keyctl": (250, None), "landlock": (444, None),
         "seccomp": (157, ("is", PR_SET_SECCOMP)), "ioprio": (251, None), "clone3": (435, None),
         "bpf": (321, None),
         "mounts namespace": (272, ("has", 0x00020000)),
         "cgroups namespace": (272, ("has", 0x02000000)),
         "ipc namespace": (272, ("has", 0x08000000)),
         "users namespace": (272, ("has", 0x10000000)),
         "processes namespace": (272, ("has", 0x20000000)),
         "network namespace": (272, ("has", 0x40000000))}
# Of struct seccomp_data.
NUMBER, FIRST_ARGUMENT = 0, 16
# Of BPF: load a word of it, skip if equal, skip if it has one of these bits, answer.
LOAD, EQUAL, HAS, ANSWER = 0x20, 0x15, 0x45, 0x06
ALLOW, FAIL = 0x7fff0000, 0x00050000


def row(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def rows_of(name, error):
    number, condition = CALLS[name]
    answer = row(ANSWER, FAIL | error)
    if condition is None:
        return row(LOAD, NUMBER) + row(EQUAL, number, 0, 1) + answer
    how, value = condition
    return (row(LOAD, NUMBER) + row(EQUAL, number, 0, 3) + row(LOAD, FIRST_ARGUMENT) +
            row(EQUAL if how == "is" else HAS, value, 0, 1) + answer)


def refuse(errors):
    text = b"".join(rows_of(name, error) for name, error in errors) + row(ANSWER, ALLOW)
    rows = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(rows))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, FILTER, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter")


if __name__ == "__main__":
    end = sys.argv.index("--")
    refuse([(name, getattr(errno, error)) for name, _, error in
            (word.rpartition("=") for word in sys.argv[1:end])])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1:])

#!/usr/bin/env python3
"""Finds code that is duplicated in different rooms (top-level folders).

White space, comments, blank lines, includes, imports, namespace lines, include guards and
lines of brackets are ignored. Reads C, C++, IDL, Python, shell and CMake.
Exit status: 0 no duplicates between rooms, 1 duplicates, 2 usage error."""

import argparse
import collections
import os
import re
import sys

LINES = 15
C_LIKE = (".h", ".hpp", ".c", ".cc", ".idl")
HASH_LIKE = (".py", ".sh", ".cmake", "CMakeLists.txt")
SHELL = re.compile(r"#!.*\b(?:ba)?sh\b")
# Comments and strings; a string may contain what looks like a comment.
C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'
                     r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'", re.S)
HASH_TOKEN = re.compile(r'#[^\n]*|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                        re.S)
UNCOUNTED = re.compile(
    r"#(include|ifndef|endif|pragma|define \w+_H_$)|(import|from) |using |(inline )?namespace\b|"
    r"extern \"C\"|sys\.path\.insert|[\s\W_]*$")
Place = collections.namedtuple("Place", "path first last")
Pair = collections.namedtuple("Pair", "one other lines")


def without_comments(path, text):
    """The text without comments; line numbers do not change."""
    token = C_TOKEN if path.endswith(C_LIKE) else HASH_TOKEN

    def keep(match):
        word = match.group()
        if word.startswith(("//", "/*", "#", '"""')):
            return "\n" * word.count("\n")
        return word
    return token.sub(keep, text)


def lines_that_count(path, text):
    """(number, normalised text) of each line that is not ignored."""
    if path.endswith(C_LIKE):  # so that UNCOUNTED recognises directives
        text = re.sub(r"(?m)^[ \t]*#[ \t]*", "#", text)
    result = []
    for number, line in enumerate(without_comments(path, text).split("\n"), 1):
        line = re.sub(r"\s+", " ", line.strip())
        if not UNCOUNTED.match(line):
            result.append((number, re.sub(r"\s*(\W)\s*", r"\1", line)))
    return result


def room(path):
    return path.split("/")[0] if "/" in path else ""


def find(files, least=LINES):
    """All maximal runs of `least` or more equal lines in two places. `files`: path -> text."""
    counted = {path: lines_that_count(path, text) for path, text in sorted(files.items())}
    windows = collections.defaultdict(list)
    for path, lines in counted.items():
        for at in range(len(lines) - least + 1):
            windows[tuple(line for _, line in lines[at:at + least])].append((path, at))
    starts = set()
    for places in windows.values():
        starts.update((one, other) for i, one in enumerate(places) for other in places[i + 1:])
    pairs = []
    for (path, at), (other, there) in sorted(starts):
        if ((path, at - 1), (other, there - 1)) in starts:
            continue  # part of a longer run
        length = 0
        while (length < len(counted[path]) - at and length < len(counted[other]) - there and
               counted[path][at + length][1] == counted[other][there + length][1]):
            length += 1
        if path == other:
            length = min(length, there - at)  # the two places must not overlap
        if length >= least:
            pairs.append(Pair(place(counted, path, at, length),
                              place(counted, other, there, length), length))
    return pairs


def place(counted, path, at, length):
    return Place(path, counted[path][at][0], counted[path][at + length - 1][0])


def between_rooms(pairs):
    return [pair for pair in pairs if room(pair.one.path) != room(pair.other.path)]


def read_files(root):
    """Path -> text of all sources below root, without build and hidden folders."""
    files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build", "__"))]
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(C_LIKE + HASH_LIKE) or "." not in name:
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if "." in name or SHELL.match(text):
                    files[os.path.relpath(path, root)] = text
    return files


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true",
                        help="also report duplicates within a room (exit status unaffected)")
    parser.add_argument("--lines", type=int, default=LINES, metavar="N",
                        help="shortest duplicate reported (default: %(default)s)")
    parser.add_argument("root", nargs="?", metavar="ROOT", help="source tree (default: this one)",
                        default=os.path.join(here, "..", ".."))
    chosen = parser.parse_args(arguments)
    if chosen.lines < 2 or not os.path.isdir(chosen.root):
        parser.error("--lines must be at least 2 and ROOT a folder")
    pairs = find(read_files(chosen.root), chosen.lines)
    apart = between_rooms(pairs)
    for pair in sorted(pairs if chosen.all else apart, key=lambda pair: -pair.lines):
        print("%3d lines: %s:%d-%d = %s:%d-%d%s" % (
            (pair.lines,) + pair.one + pair.other + ("" if pair in apart else " (same room)",)))
    print("duplicates: %d between rooms" % len(apart))
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

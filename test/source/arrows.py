#!/usr/bin/env python3
"""Checks every #include against the tables in docs/architecture.md, "Rooms and arrows".

usage: arrows.py [ROOT]      default: the source tree that contains this script
The tables say which room may use which, where each library may be included, and which
files are limited to a standard library. Also reported: folders of more than 20 modules.
Prints one line for each violation.
Exit status: 0 no violation, 1 violations, 2 usage error or unreadable tables."""

import collections
import fnmatch
import os
import re
import sys

PAGE = "docs/architecture.md"
MOST_MODULES = 20
SOURCES = (".h", ".hpp", ".c", ".cc")
MODULES = SOURCES + (".py", ".idl")
# Rooms that hold only tests and benchmarks.
FREE = ("test", "bench")

# Libraries as the tables name them, and their headers.
LIBRARIES = {
    "omniORB and the IDL's headers": ["omniORB4/*", "omnithread*", "giop*.h", "GIOP_*.h",
                                      "orbParameters.h", "SocketCollection.h", "*.hh"],
    "SOCI": ["soci/*"],
    "SQLite": ["sqlite3.h"],
    "OpenSSL": ["openssl/*"],
    "ACE": ["ace/*"],
    "Boost.Log": ["boost/*"],
    "libsodium": ["sodium.h"],
    "libseccomp": ["seccomp.h"],
    "CLI11": ["CLI/*"],
    "toml++": ["toml++/*"],
    "libxcb": ["xcb/*"],
    "libwayland": ["wayland-*.h", "*-client-protocol.h", "*-server-protocol.h"],
    "sd-bus": ["systemd/*"],
    "nlohmann/json": ["nlohmann/*"],
    "CppUnit": ["cppunit/*"],
    "RapidCheck": ["rapidcheck.h", "rapidcheck/*"],
}
# Headers of the C++ library without threads, files, input, output and clocks.
COMPUTING = """algorithm any array bit bitset cctype cerrno cfloat charconv climits cmath compare
    concepts cstddef cstdint cstdlib cstring deque exception functional initializer_list iterator
    limits list map memory new numeric optional queue random ratio set span stack stdexcept string
    string_view tuple type_traits typeindex typeinfo unordered_map unordered_set utility variant
    vector""".split()
# For snprintf, signal numbers and durations.
COMPUTING += ["cstdio", "csignal", "chrono", "stdint.h", "stddef.h"]
# Header-only templates, for programs that do not link the C++ library.
LINKS_NOTHING = """algorithm array bit climits cstddef cstdint initializer_list limits new optional
    span type_traits utility""".split()
# Uses of clocks, files and randomness that the allowed headers would permit.
IMPURE = re.compile(r"\b(?:\w+_clock::|random_device|f?printf\s*\(|fopen|fgets|fread|fwrite|getenv|"
                    r"clock_gettime|gettimeofday|time\s*\(\s*(?:nullptr|NULL|0|&)|s?rand\s*\()")
C_HEADER = re.compile(r"[a-z0-9_/]+\.h$")

STANDARDS = {
    "the pure part of the C++ library": lambda header: header in COMPUTING,
    "the C library": lambda header: bool(C_HEADER.match(header)),
    "the C library and header-only templates": lambda header: bool(C_HEADER.match(header)) or
    header in LINKS_NOTHING,
}

INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]')
Tables = collections.namedtuple("Tables", "rooms libraries pure")


class Unreadable(Exception):
    """The tables are not in the expected form; the text says why."""


def is_test(path):
    parts = path.split("/")
    stem, _, kind = parts[-1].partition(".")
    return (parts[0] in FREE or "testing" in parts[:-1] or stem == "testing" or
            stem.endswith("_testing") or stem.startswith("test_") or
            stem.endswith("_test") and not kind.startswith("h"))


def library_of(header):
    for name, patterns in LIBRARIES.items():
        if any(fnmatch.fnmatchcase(header, pattern) for pattern in patterns):
            return name
    return None


def read_tables(text):
    """Returns the three tables of the section."""
    section = re.search(r"(?ms)^## Rooms and arrows\n(.*?)(?=^## |\Z)", text)
    if not section:
        raise Unreadable("no section '## Rooms and arrows'")
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", section.group(1), re.M):
        lines = [[cell.strip() for cell in line.strip().strip("|").split("|")]
                 for line in table.strip().split("\n")]
        found.append(lines[2:])
    if len(found) != 3 or any(not rows for rows in found):
        raise Unreadable("three tables expected, %d found" % len(found))
    rooms = {}
    for cells in found[0]:
        for folder in re.findall(r"`([^`]+)/`", cells[0]):
            uses = [word for word in re.split(r"[,\s]+", cells[2]) if word not in ("", "–")]
            for name in uses:
                if name != "anything" and name not in rooms:
                    raise Unreadable("%s may use %s, which is not a room listed above it" % (
                        folder, name))
            rooms[folder] = uses
    libraries = {}
    for cells in found[1]:
        for name in cells[0].split(", "):
            if name not in LIBRARIES:
                raise Unreadable("unknown library: " + name)
            libraries[name] = re.findall(r"`([^`]+)`", cells[1])
    for name in LIBRARIES:
        if name not in libraries:
            raise Unreadable("no row for library " + name)
    pure = {}
    for cells in found[2]:
        if cells[1] not in STANDARDS:
            raise Unreadable("unknown standard: " + cells[1])
        for pattern in re.findall(r"`([^`]+)`", cells[0]):
            pure[pattern] = cells[1]
    return Tables(rooms, libraries, pure)


def covers(pattern, path):
    """Whether a `folder/`, a file or a pattern for files matches this path."""
    if pattern.endswith("/"):
        return path.startswith(pattern)
    return fnmatch.fnmatchcase(path, pattern) and path.count("/") == pattern.count("/")


def room_of(path, rooms):
    best = [room for room in rooms if path.startswith(room + "/")]
    return max(best, key=len) if best else None


class Tree:
    """Source files and their includes. `files`: path -> text."""

    def __init__(self, files, tables):
        self.files = files
        self.tables = tables
        self.includes = {path: [(bracket == "<", name) for bracket, name in INCLUDE.findall(text)]
                         for path, text in files.items() if path.endswith(SOURCES)}

    def target(self, path, name):
        """The file that `path` includes as "name"; for a generated header, its IDL or grammar."""
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        generated = name[:-3] + ".idl" if name.endswith(".hh") else None
        for candidate in (name, beside):
            if candidate in self.files:
                return candidate
        if name.endswith("/parser.h") and name[:-8] + "grammar.yy" in self.files:
            return name[:-8] + "grammar.yy"
        if generated:
            here = [file for file in self.files if file.endswith("/" + generated)]
            return here[0] if here else None
        return None

    def reached(self, path):
        """Yields all direct and indirect includes of a file: (name, outside, way)."""
        seen, todo = {path}, [(path, "")]
        while todo:
            file, way = todo.pop()
            for outside, name in self.includes.get(file, []):
                yield name, outside or name.endswith(".hh"), way
                target = None if outside else self.target(file, name)
                if target and target not in seen:
                    seen.add(target)
                    todo.append((target, way + " via " + target if not way else
                                 way + ", " + target))

    def violations(self):
        found = []
        for room in self.tables.rooms:
            if not any(path.startswith(room + "/") for path in self.files):
                found.append("%s: the folder of room %s/ does not exist" % (PAGE, room))
        for path in sorted(self.includes):
            room = room_of(path, self.tables.rooms)
            wrong = self.between_rooms(path, room) if room else ["belongs to no room"]
            if not is_test(path):
                wrong += self.libraries(path) + self.impure(path)
            found.extend("%s: %s" % (path, what) for what in wrong)
        return found + self.stale() + self.crowded()

    def between_rooms(self, path, room):
        """Violations in the includes of a file of this room."""
        wrong = []
        for outside, name in self.includes[path]:
            target = None if outside else self.target(path, name)
            if outside:
                if not (library_of(name) or C_HEADER.match(name) or re.match(r"[a-z_]+$", name)):
                    wrong.append("<%s> belongs to no library listed in %s" % (name, PAGE))
                continue
            if not target:
                wrong.append("\"%s\" is neither a file nor generated" % name)
                continue
            other = room_of(target, self.tables.rooms)
            uses = self.tables.rooms[room]
            if is_test(target) and not is_test(path):
                wrong.append("includes test code: %s" % name)
            elif other not in [room] + uses and "anything" not in uses and not is_test(target):
                wrong.append("%s/ may not use %s/ (%s)" % (room, other, name))
        return wrong

    def stale(self):
        """Entries of the library table that nothing needs."""
        unused = {(library, place) for library, places in self.tables.libraries.items()
                  for place in places}
        for path in self.includes:
            if any(covers(place, path) for _, place in unused) and not is_test(path):
                seen = {library_of(name) for name, outside, _ in self.reached(path) if outside}
                unused = {(library, place) for library, place in unused
                          if library not in seen or not covers(place, path)}
        return ["%s: stale entry: %s is not included in %s" % ((PAGE,) + one)
                for one in sorted(unused)]

    def libraries(self, path):
        """Libraries that this file includes and must not."""
        wrong = {}
        for name, outside, way in self.reached(path):
            library = library_of(name) if outside else None
            if library and library not in wrong:
                places = self.tables.libraries[library]
                if not any(covers(place, path) for place in places):
                    wrong[library] = "must not include %s: <%s>%s" % (library, name, way)
        return sorted(wrong.values())

    def impure(self, path):
        """Violations in a file that is limited to a standard library."""
        wrong = []
        for pattern, standard in self.tables.pure.items():
            if not covers(pattern, path):
                continue
            wrong += ["limited to %s: <%s>%s" % (standard, name, way)
                      for name, outside, way in self.reached(path)
                      if outside and not STANDARDS[standard](name)]
            if standard == "the pure part of the C++ library":
                code = re.sub(r'//.*|"(?:\\.|[^"\\\n])*"', "", self.files[path])
                wrong += ["limited to %s: %s" % (standard, word)
                          for word in sorted(set(IMPURE.findall(code)))]
        return wrong

    def crowded(self):
        """Folders with too many modules. Tests count only in rooms that hold nothing else."""
        modules = collections.defaultdict(set)
        for path in self.files:
            folder, name = os.path.split(path)
            if path.endswith(MODULES) and (folder.split("/")[0] in FREE or not is_test(path)):
                modules[folder].add(name.split(".")[0])
        return ["%s/: %d modules; the limit is %d" % (
            folder, len(names), MOST_MODULES)
            for folder, names in sorted(modules.items()) if len(names) > MOST_MODULES]


def read_files(root):
    """Path -> text of all sources below root, without build and hidden folders."""
    files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build", "__"))]
        for name in names:
            if name.endswith(MODULES + (".yy",)):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="replace") as f:
                    files[os.path.relpath(path, root)] = f.read()
    return files


def check(root):
    with open(os.path.join(root, PAGE), encoding="utf-8") as f:
        tables = read_tables(f.read())
    return Tree(read_files(root), tables).violations()


def main(arguments):
    if arguments in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        found = check(arguments[0] if arguments else os.path.join(here, "..", ".."))
    except (OSError, Unreadable) as error:
        print("arrows: %s" % error, file=sys.stderr)
        return 2
    for line in found:
        print(line)
    print("arrows: %d violations" % len(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

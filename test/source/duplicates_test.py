"""duplicates.py finds nothing between the rooms of this tree, and finds planted copies
despite differences in layout and comments."""

import os
import subprocess
import sys
import tempfile
import unittest

import duplicates

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def body(count, first=0):
    return ["  total += weigh(item[%d]);" % number for number in range(first, first + count)]


def found(**files):
    """Duplicates in a tree of these files, given as room_name=lines."""
    texts = {name.replace("_", "/", 1) + (".py" if name.endswith("_py") else ".cc"):
             "\n".join(lines) for name, lines in files.items()}
    return duplicates.find(texts)


class Planted(unittest.TestCase):
    def test_a_copy(self):
        pairs = found(cli_a=["int a;"] + body(15), server_b=["", ""] + body(15) + ["int b;"])
        self.assertEqual(pairs, [duplicates.Pair(
            duplicates.Place("cli/a.cc", 2, 16), duplicates.Place("server/b.cc", 3, 17), 15)])
        self.assertEqual(duplicates.between_rooms(pairs), pairs)

    def test_fourteen_lines_are_allowed(self):
        self.assertEqual(found(cli_a=body(14), server_b=body(14)), [])
        self.assertEqual(found(cli_a=body(14) + ["int a;"], server_b=body(14) + ["int b;"]), [])

    def test_dressed_up(self):
        dressed = []
        for line in body(15):
            dressed += ["      " + line.replace(" += ", "  +=").replace("[", "[ ") + "  // so",
                        "", "/* a", "   comment */"]
        self.assertEqual(len(found(cli_a=body(15), server_b=dressed)), 1)

    def test_a_string_is_no_comment(self):
        urls = ['  open("http://host/%d");' % number for number in range(15)]
        others = [line.replace("host", "elsewhere") for line in urls]
        self.assertEqual(len(found(cli_a=urls, server_b=urls)), 1)
        self.assertEqual(found(cli_a=urls, server_b=others), [])

    def test_numbers_with_separators(self):
        lines = ["  wait(%d'000);  // it's long" % number for number in range(15)]
        self.assertEqual(len(found(cli_a=lines, server_b=[line.split("//")[0]
                                                          for line in lines])), 1)

    def test_what_does_not_count(self):
        empty = ["#include <x%d.h>" % number for number in range(20)] + \
            ["#ifndef A_H_", "#define A_H_", "namespace sublet {", "using std::move;"] + \
            ["}", "};", "{", "})"] * 10 + ["// A licence."] * 20
        self.assertEqual(found(cli_a=empty, server_b=empty), [])
        self.assertEqual(found(cli_a=empty + body(14), server_b=empty + body(14)), [])

    def test_the_longest_run_once(self):
        pairs = found(cli_a=body(40), server_b=body(40))
        self.assertEqual([pair.lines for pair in pairs], [40])

    def test_every_pair(self):
        self.assertEqual(len(found(cli_a=body(15), server_b=body(15), job_c=body(15))), 3)

    def test_in_one_room(self):
        pairs = found(cli_a=body(15), cli_b=body(15))
        self.assertEqual(len(pairs), 1)
        self.assertEqual(duplicates.between_rooms(pairs), [])

    def test_in_one_file(self):
        pairs = found(cli_a=body(16) + ["int a;"] + body(16))
        self.assertEqual([pair.lines for pair in pairs], [16])
        self.assertEqual(found(cli_a=["  step();"] * 16), [])

    def test_python(self):
        lines = ["    total += weigh(%d)" % number for number in range(15)]
        noted = ['"""What it', 'does."""'] + [line + "  # so" for line in lines]
        self.assertEqual(len(found(cli_a_py=lines, bench_b_py=noted)), 1)


class ThisTree(unittest.TestCase):
    def test_no_two_places(self):
        pairs = duplicates.between_rooms(duplicates.find(duplicates.read_files(ROOT)))
        self.assertEqual(pairs, [])

    def test_sees_it_all(self):
        files = duplicates.read_files(ROOT)
        self.assertGreater(len(files), 600)
        for path in ("protocol/lease.h", "check", "test/harness.py", "idl/types.idl"):
            self.assertIn(path, files)

    def test_a_file_copied_to_another_room(self):
        files = duplicates.read_files(ROOT)
        files["cli/lease.cc"] = files["protocol/lease.cc"]
        self.assertGreater(len(duplicates.between_rooms(duplicates.find(files))), 0)

    def test_command(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-B", duplicates.__file__, *arguments],
                                  capture_output=True, text=True)
        self.assertIn("Exit status", run("--help").stdout)
        self.assertEqual(run("--what").returncode, 2)
        self.assertEqual(run("--lines", "1").returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            for path in ("cli/a.cc", "cli/b.cc"):
                os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(folder, path), "w") as f:
                    f.write("\n".join(body(15)))
            self.assertEqual(run(folder).stdout, "duplicates: 0 between rooms\n")
            done = run("--all", folder)
            self.assertEqual((done.returncode, done.stdout.splitlines()[0]),
                             (0, " 15 lines: cli/a.cc:1-15 = cli/b.cc:1-15 (same room)"))
            os.makedirs(os.path.join(folder, "server"))
            os.rename(os.path.join(folder, "cli/b.cc"), os.path.join(folder, "server/b.cc"))
            self.assertEqual(run(folder).returncode, 1)


if __name__ == "__main__":
    unittest.main()

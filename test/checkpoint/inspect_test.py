"""`sublet checkpoint show`, `verify` and `diff` with good, damaged and hostile files; needs no server."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from files import FLOAT64, INT32, STREAM, UINT64, checkpoint

SUBLET = os.path.join(harness.BIN, "sublet")
# Of memory that the command may allocate. A sanitizer reserves far more than that.
LARGEST = 1 << 30


def little_memory():
    if not harness.SANITIZED:
        resource.setrlimit(resource.RLIMIT_DATA, (LARGEST, LARGEST))


class Inspect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sl-inspect-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(data)
        return name

    def run_it(self, *words):
        done = subprocess.run([SUBLET, "checkpoint", *words], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, errors="replace",
                              timeout=harness.PATIENCE, preexec_fn=little_memory,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder})
        return done.returncode, done.stdout, done.stderr

    def test_show(self):
        self.put("c", checkpoint([("step", UINT64, [41]), ("w", FLOAT64, [0.1, -2.5, 3, 4]),
                                  ("note", STREAM, b"it's\n")], "letters", 3, 12))
        status, out, err = self.run_it("show", "c")
        self.assertEqual((status, err), (0, ""))
        lines = [line.split() for line in out.splitlines()]
        for line in (["program", "letters"], ["layout", "3"], ["generation", "12"],
                     ["progress", "not", "known"], ["format", "version", "1"],
                     ["size", str(128 + 3 * 64 + 45), "bytes,", "3", "sections"],
                     ["step", "uint64", "1", "8", "41"],
                     ["w", "float64", "4", "32", "0.1", "-2.5", "3", "…", "-2.5", "4", "1.15"]):
            self.assertIn(line, lines)
        self.assertIn('"it\'s\\n"', out)

    def test_all_values(self):
        values = [(-1) ** i * i for i in range(30000)]
        self.put("c", checkpoint([("x", INT32, values), ("y", STREAM, b"ab")]))
        status, out, _ = self.run_it("show", "c", "--values", "x")
        self.assertEqual((status, [int(line) for line in out.splitlines()]), (0, values))
        self.assertEqual(self.run_it("show", "c", "--values", "y"), (0, "97\n98\n", ""))
        shown = json.loads(self.run_it("show", "c", "--values", "x", "--json")[1])
        self.assertEqual([int(value) for value in shown["values"]], values)
        status, out, err = self.run_it("show", "c", "--values", "z")
        self.assertEqual((status, out), (4, ""))
        self.assertIn("c has no section 'z'", err)

    def test_verify(self):
        whole = checkpoint([("x", INT32, [1, 2])], generation=7)
        self.put("checkpoint", whole)
        self.put("checkpoint.previous", whole[:-1] + b"x")
        self.assertEqual(self.run_it("verify", "checkpoint"),
                         (0, "checkpoint: whole, generation 7, 200 B\n", ""))
        status, out, _ = self.run_it("verify", ".", "none")
        lines = out.splitlines()
        self.assertEqual((status, len(lines)), (1, 3), out)
        self.assertEqual(lines[0], "./checkpoint: whole, generation 7, 200 B")
        self.assertRegex(lines[1], r"^\./checkpoint\.previous: damaged: .*bytes 192 to 200.*"
                         r"payload_crc is [0-9a-f]{16} \(at byte 112\)$")
        self.assertEqual(lines[2], "none: cannot be read: No such file or directory")
        files = json.loads(self.run_it("verify", "--json", ".")[1])["files"]
        self.assertEqual([(f["whole"], f["offset"], f["checksum"]) for f in files],
                         [(True, -1, ""), (False, 112, "payload_crc")])

    def test_diff(self):
        first = [("step", UINT64, [1]), ("w", FLOAT64, [1.5] * 20000), ("gone", STREAM, b"x")]
        second = [("w", FLOAT64, [1.5] * 19999 + [2]), ("step", UINT64, [2]), ("made", INT32, [])]
        self.put("old", checkpoint(first, generation=4))
        self.put("new", checkpoint(second, generation=5))
        self.put("again", checkpoint(first[::-1], generation=6))
        self.put("broken", checkpoint(first)[:-1])
        self.assertEqual(self.run_it("diff", "old", "again"), (0, "", ""))
        self.assertEqual(self.run_it("diff", "old", "new"), (
            1, "~ step: 1 of 1 differs, first [0]: 1 → 2, largest difference 1\n"
            "~ w: 1 of 20000 differs, first [19999]: 1.5 → 2, largest difference 0.5\n"
            "- gone: 1 × stream\n+ made: 0 × int32\n", ""))
        said = json.loads(self.run_it("diff", "--json", "old", "new")[1])
        self.assertEqual((said["equal"], said["new"]["generation"],
                          [one["kind"] for one in said["sections"]]),
                         (False, 5, ["changed", "changed", "removed", "added"]))
        for words in (["old", "broken"], ["none", "old"], ["old"]):
            status, out, err = self.run_it("diff", *words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertRegex(err, r"\Asublet")

    def test_hostile_files(self):
        """Each is refused with one safe line, at once and in little memory."""
        huge = 1 << 60
        good = checkpoint([("x", INT32, [1])])
        os.mkfifo(os.path.join(self.folder, "pipe"))
        os.symlink("loop", os.path.join(self.folder, "loop"))
        os.mkdir(os.path.join(self.folder, "folder"))
        self.put("empty", b"")
        self.put("text", b"\x1b[2J" * 100)
        self.put("counts", good[:12] + b"\xff\xff\xff\x7f" + good[16:])
        self.put("large", good[:24] + huge.to_bytes(8, "little") + good[32:])
        self.put("sparse", good)
        os.truncate(os.path.join(self.folder, "sparse"), 3 << 30)
        os.symlink("/dev/zero", os.path.join(self.folder, "zero"))
        refused = ["pipe", "loop", "folder", "empty", "text", "counts", "large", "sparse", "zero"]
        if os.geteuid() != 0:
            self.put("closed", good)
            os.chmod(os.path.join(self.folder, "closed"), 0)
            refused.append("closed")
        for name in refused:
            with self.subTest(name):
                status, out, err = self.run_it("show", name)
                self.assertEqual((status, out), (5 if name == "closed" else 3, ""))
                self.assertRegex(err, r"\Asublet: %s( is damaged)?: .*\n\Z" % name)
                status, out, err = self.run_it("verify", name)
                self.assertEqual((status, out.count("\n"), err), (1, 1, ""))

    def test_names_are_shown_safely(self):
        self.put("c", checkpoint([("\x1b[2J\n", INT32, [1])], "\x1b]0;x\x07"))
        for words in (["show", "c"], ["show", "c", "--values", "\x1b[2J"], ["verify", "\x1b[2J"]):
            _, out, err = self.run_it(*words)
            self.assertNotRegex(out + err, "[\x1b\x07]")
            self.assertIn("\\x1b", out + err)


if __name__ == "__main__":
    unittest.main()

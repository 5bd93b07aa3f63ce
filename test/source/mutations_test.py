"""The mutants of single lines, and whole runs in a small tree in which some functions are
tested and some are not."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import mutants
import mutations

SOURCE = """#include <string>
// if (a < b) in a comment
namespace sublet {
constexpr int kMost = 5;
struct Thing {
  int a = 1;
  int twice() const { return a * 2; }
  int get() const {
    return a + 1;
  }
};
int f(int a, const std::string& b)
    noexcept {
  if (a < 1 && b == "x < 1") return 2;
  log(Severity::info) << "a < " << (a < 1)
                      << (a > 1);
  static_assert(1 < 2);
  call(a,
       other(b));
  call(a);
  if (a)
    call(b);
  a += 1;
  return total - first;
}
}  // namespace sublet
"""


def of_line(line, previous=";"):
    return {(operator, new.strip()) for operator, new in
            mutants.variants(line, mutants.hidden(line), previous)}


class Lines(unittest.TestCase):
    def test_only_bodies_of_functions(self):
        found = mutants.of_file("server/a.cc", SOURCE)
        lines = SOURCE.split("\n")
        self.assertEqual([lines[number - 1].strip() for number in found], [
            "return a + 1;", 'if (a < 1 && b == "x < 1") return 2;', "call(a);", "if (a)",
            "call(b);", "a += 1;", "return total - first;"])

    def test_strings_and_comments_stay(self):
        self.assertEqual(of_line('  call("a < b");  // 1 < 2'), {("deleted statement", "{}")})
        for _, new in of_line('  if (a < b) say("1 < 2");'):
            self.assertIn('"1 < 2"', new)

    def test_what_is_eligible(self):
        self.assertTrue(mutants.eligible("server/jobs/service.cc"))
        for path in ("cli/main.cc", "server/a_test.cc", "server/testing/a.h", "server/a.py",
                     "server/services_testing.h", "test/a.cc"):
            self.assertFalse(mutants.eligible(path), path)


class Operators(unittest.TestCase):
    def has(self, line, operator, *expected, previous=";"):
        found = {new for kind, new in of_line(line, previous) if kind == operator}
        self.assertEqual(found, set(expected))

    def test_relational(self):
        self.has("  if (a < b) f();", "relational", "if (a <= b) f();")
        self.has("  bool x = a == b;", "relational", "bool x = a != b;")
        self.has("  std::vector<int> x;", "relational")

    def test_arithmetic(self):
        self.has("  x = a + b * c;", "arithmetic", "x = a - b * c;", "x = a + b / c;")
        self.has("  ++x;", "arithmetic", "--x;")

    def test_boolean(self):
        self.has("  if (a && b) f();", "boolean", "if (a || b) f();", "if (!(a && b)) f();")
        self.has("  if (auto x = f()) g();", "boolean")
        self.has("  x = true;", "boolean", "x = false;")

    def test_constant(self):
        self.has("  x = 1'000;", "constant", "x = 1001;", "x = 999;")
        self.has("  x = y2 + 0;", "constant", "x = y2 + 1;")
        self.has("  char text[32];", "constant")

    def test_return_value(self):
        self.has("  return total(x);", "return value", "return {};")
        self.has("  return false;", "return value")
        self.has("  return f([] { return a; });", "return value", "return f([] { return {}; });")

    def test_deleted_statement(self):
        self.has("  call(a);", "deleted statement", "{}")
        self.has("  a.b->c = d;", "deleted statement", "{}")
        self.has("  call(b);", "deleted statement", "{}", previous="  if (a)")
        self.has("  call(b);", "deleted statement", previous="  x = f(a,")
        self.has("  int a = b;", "deleted statement")
        self.has("  return f(a);", "deleted statement")

    def test_removed_term(self):
        self.has("  return a + b(c) - d;", "removed term", "return a - d;", "return a + b(c);",
                 "return b(c) - d;", "return a + d;")
        self.has("  if (a && (b || c)) f();", "removed term", "if (a) f();", "if (a && (b)) f();")


class Choice(unittest.TestCase):
    FILES = {"server/a.cc": SOURCE, "client/b.cc": SOURCE, "cli/c.cc": SOURCE}

    def test_by_seed(self):
        first = list(mutants.pick(self.FILES, 7))
        self.assertEqual(first, list(mutants.pick(self.FILES, 7)))
        self.assertNotEqual(first, list(mutants.pick(self.FILES, 8)))
        self.assertEqual(len(first), 14)  # each line once
        self.assertEqual({mutant.path for mutant in first}, {"server/a.cc", "client/b.cc"})

    def test_applied(self):
        for mutant in mutants.pick(self.FILES, 7):
            text = mutants.applied(SOURCE, mutant)
            differ = [number for number, pair in enumerate(zip(SOURCE.split("\n"),
                                                               text.split("\n")), 1)
                      if pair[0] != pair[1]]
            self.assertEqual(differ, [mutant.line])
        with self.assertRaises(ValueError):
            mutants.applied(SOURCE.replace("a += 1", "a += 2"), mutants.Mutant(
                "server/a.cc", 23, "constant", "a += 1;", "a += 0;"))

    def test_again_in_a_changed_tree(self):
        first = list(mutants.pick(self.FILES, 7))
        listing = "".join("%d: %s:%d %s\n  - %s\n  + %s\n" % ((number,) + mutant)
                          for number, mutant in enumerate(first, 1))
        self.assertEqual(mutants.read_list(listing), first)
        for mutant in first:
            self.assertEqual(mutants.moved(mutant, SOURCE), mutant)
            self.assertEqual(mutants.moved(mutant, "\n" + SOURCE).line, mutant.line + 1)
            self.assertIsNone(mutants.moved(mutant, SOURCE.replace(mutant.before, "gone;")))

    def test_equivalents(self):
        known = mutants.read_equivalents("# About.\n\nserver/a.cc\n- a || b;\n+ b;\nBecause a\n"
                                         "is b.\n\nx.cc\n- 1\n+ 2\nNo.\n")
        self.assertEqual(known["server/a.cc", "a || b;", "b;"], "Because a is b.")
        self.assertEqual(len(known), 2)
        with self.assertRaises(ValueError):
            mutants.read_equivalents("server/a.cc\n- a\n+ b\n")


class Tests(unittest.TestCase):
    def test_of_ctest(self):
        def entry(name, label, *more):
            values = [{"name": "LABELS", "value": [label]}, *more]
            return {"name": name, "command": ["x"], "properties": values}
        listing = json.dumps({"tests": [
            entry("unit.a", "unit", {"name": "ENVIRONMENT", "value": ["A=b=c"]},
                  {"name": "RUN_SERIAL", "value": True}),
            entry("source.a", "source"), entry("long.a", "long"), {"name": "unit.not_built"}]})
        self.assertEqual(mutations.read_tests(listing), [
            mutations.Test("unit.a", ["x"], ".", {"A": "b=c"}, 600, True, None, ["unit"])])


class Order(unittest.TestCase):
    def test_the_room_first(self):
        def test(name, folder, label="unit"):
            return mutations.Test(name, ["/b/unit/" + name], "/x/build/" + folder, {}, 600, False,
                                  None, [label])
        tests = [test("unconcerned", "cli"), test("far", "cli"), test("slow", "server"),
                 test("same", "server"), test("quick", "server"), test("daemon.idle", "test", "daemon"),
                 test("daemon.spool", "test", "daemon"), test("daemon.command", "test", "daemon")]
        changed = {"/b/unit/" + name for name in ("far", "slow", "quick")}
        mutant = mutants.Mutant("server/jobs/a.cc", 1, "", "", "")
        order = mutations.ordered(tests, mutant, changed, {"slow": 9, "quick": 1})
        self.assertEqual([one.name for one in order], [
            "quick", "slow", "far", "same", "daemon.command", "daemon.spool", "daemon.idle",
            "unconcerned"])


PROJECT = {
    "CMakePresets.json": json.dumps({"version": 6, "configurePresets": [
        {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}]}),
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(small C)
enable_testing()
add_executable(sums server/sums.c server/sums_test.c)
set_target_properties(sums PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
target_compile_options(sums PRIVATE -Werror -O2)
add_test(NAME unit.sums COMMAND sums)
set_tests_properties(unit.sums PROPERTIES LABELS unit)
add_test(NAME unit.broken COMMAND false)
""",
    "server/sums.c": """int tested(int a) {
  return a - 7;
}
int untested(int a) {
  return a - 9;
}
int same(int a) {
  if (a < 1 || a < 1) return 5;
  return a;
}
int wrong(int a) {
  int b[1] = {a};
  return *b + *b;
}
""",
    "server/sums_test.c": """int tested(int); int same(int); int wrong(int);
int main(void) { return tested(9) == 2 && same(0) == 5 && same(1) == 1 && same(8) == 8 &&
                        wrong(2) == 4 ? 0 : 1; }
""",
}


def environment_of(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        return f.read()


class WholeRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "root")
        self.folder = os.path.join(folder.name, "run")
        for path, text in PROJECT.items():
            os.makedirs(os.path.join(self.root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(self.root, path), "w") as f:
                f.write(text)

    def run_it(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = mutations.main(["--root", self.root, "--folder", self.folder, *arguments])
        return status, out.getvalue(), errors.getvalue()

    def state(self):
        with open(os.path.join(self.folder, "state.json")) as f:
            return json.load(f)

    def test_caught_missed_and_resumed(self):
        status, text, _ = self.run_it("--count", "2", "--jobs", "1")
        self.assertEqual(status, 0, text)
        self.assertIn("fails without a mutant: unit.broken", text)
        before = self.state()["results"]
        self.assertEqual(sum(one["result"] != mutations.BROKEN for one in before.values()), 2)
        status, _, errors = self.run_it("--count", "9")
        self.assertEqual(status, 2)
        self.assertIn("--resume", errors)
        status, text, _ = self.run_it("--count", "9", "--resume")
        self.assertEqual(status, 0, text)
        after = self.state()["results"]
        for number, one in before.items():
            self.assertEqual(after[number], one)  # not run again
        for one in after.values():
            if one["line"] == 2:  # tested()
                self.assertIn(one["result"], (mutations.CAUGHT, mutations.BROKEN), one)
            if one["line"] == 5:  # untested()
                self.assertIn(one["result"], (mutations.MISSED, mutations.BROKEN), one)
        self.assertEqual({one["line"] for one in after.values()}, {2, 5, 8, 9, 12, 13})
        with open(os.path.join(self.folder, "tree", "server", "sums.c")) as f:
            self.assertEqual(f.read(), PROJECT["server/sums.c"])
        self.assertIn("| | line | operator |", self.run_it("--table")[1])
        with open(os.path.join(self.root, "server", "sums.c"), "a") as f:
            f.write("int more(int a) { return a; }\n")
        status, _, errors = self.run_it("--count", "9", "--resume")
        self.assertEqual(status, 2)
        self.assertIn("different tree", errors)

    def decided(self, before, after, line):
        run = mutations.Run(mutations.Workshop(self.folder, self.root, 1, ["all"], "sums"),
                            mutations.read_options(["--root", self.root]))
        tests = run.workshop.prepare()
        return run.decide(mutants.Mutant("server/sums.c", line, "x", before, after), tests,
                          run.workshop.programs())

    def test_decided(self):
        self.assertEqual(self.decided("return a - 7;", "return a - 6;", 2),
                         (mutations.CAUGHT, "unit.sums"))
        self.assertEqual(self.decided("return a - 9;", "return a - 8;", 5),
                         (mutations.MISSED, "by any of 1 tests"))
        self.assertEqual(self.decided("if (a < 1 || a < 1) return 5;", "if (a < 1) return 5;", 8),
                         (mutations.EQUIVALENT, "compiles to the same programs"))
        result, why = self.decided("return a - 7;", "return a - q;", 2)
        self.assertEqual(result, mutations.BROKEN)
        self.assertIn("q", why)

    def test_listed_as_equivalent(self):
        listed = os.path.join(self.root, "equivalents.txt")
        with open(listed, "w") as f:
            f.write("server/sums.c\n- return a - 7;\n+ return a - 6;\nIt says so.\n")
        known, mutations.EQUIVALENTS = mutations.EQUIVALENTS, listed
        try:
            self.assertEqual(self.decided("return a - 7;", "return a - 6;", 2),
                             (mutations.EQUIVALENT, "It says so."))
        finally:
            mutations.EQUIVALENTS = known

    def test_only_and_list(self):
        status, text, _ = self.run_it("--list", "--count", "3")
        self.assertEqual(status, 0)
        listed = [line for line in text.split("\n") if line[:1].isdigit()]
        self.assertEqual(len(listed), 3)
        self.assertFalse(os.path.exists(self.folder))
        self.run_it("--only", "3", "--tests", "sums")
        self.assertEqual(list(self.state()["results"]), ["3"])
        self.assertIn("Limited to tests that match `sums`.", self.run_it("--table")[1])

    def test_a_test_that_hangs(self):
        workshop = mutations.Workshop(self.folder, self.root, 1, ["all"], "")
        began = time.monotonic()
        test = mutations.Test("hangs", ["sleep", "60"], ".", {}, 600, False, None, [])
        self.assertFalse(workshop.run(test, 0.3)[0])
        self.assertLess(time.monotonic() - began, 30)
        skips = mutations.Test("skips", ["sh", "-c", "exit 77"], ".", {}, 600, False, 77, [])
        self.assertTrue(workshop.run(skips, 30)[0])

    def test_what_is_left_behind_is_ended(self):
        workshop = mutations.Workshop(self.folder, self.root, 1, ["all"], "")
        left = subprocess.Popen(["sleep", "60"], env=workshop.environment())
        other = subprocess.Popen(["sleep", "60"])
        try:
            # Popen() returns in the middle of exec, before the kernel shows the environment.
            end = time.monotonic() + 60
            while b"SUBLET_MUTATIONS" not in environment_of(left.pid):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.001)
            workshop.sweep()
            self.assertEqual(left.wait(30), -9)
            self.assertIsNone(other.poll())
        finally:
            other.kill()
            other.wait()


class Command(unittest.TestCase):
    def test_help_and_usage(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-B", mutations.__file__, *arguments],
                                  capture_output=True, text=True)
        self.assertIn("Exit status", run("--help").stdout)
        self.assertEqual(run("--what").returncode, 2)

    def test_this_tree(self):
        files = {}
        for folder in mutants.ROOMS:
            for where, _, names in os.walk(os.path.join(mutations.ROOT, folder)):
                for name in names:
                    path = os.path.relpath(os.path.join(where, name), mutations.ROOT)
                    if mutants.eligible(path):
                        with open(os.path.join(where, name), encoding="utf-8") as f:
                            files[path] = f.read()
        self.assertGreater(sum(1 for _ in mutants.pick(files, 1)), 5000)
        with open(mutations.EQUIVALENTS, encoding="utf-8") as f:
            for path, before, _ in mutants.read_equivalents(f.read()):
                self.assertIn(before, files[path])


if __name__ == "__main__":
    unittest.main()

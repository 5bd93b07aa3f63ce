"""idl_compare.py reports each kind of change planted in a small IDL."""

import os
import subprocess
import sys
import tempfile
import unittest

import idl_compare

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
IDL = os.path.join(ROOT, "idl")
FROZEN = os.path.join(IDL, "frozen")  # made with the first release
TYPES = """#pragma prefix "pool"
module M {
  // The first.
  typedef unsigned long long JobId;
  typedef sequence<octet, 16> Secret;
  typedef long Grid[2][3];
  const unsigned long LIMIT = 1024;
  const string WORD = "a";
  enum Color { RED, GREEN };
  struct Pair { JobId id; string<8> name; Secret key; };
  union Either switch (long) { case 1: long number; default: string text; };
  exception Wrong { string code; };
  exception Gone { string code; };
};
"""
CALLS = """#include "types.idl"
#pragma prefix "pool"
module M {
  interface Base { void ping() raises (Wrong); };
  interface Other { };
  interface Calls : Base {
    readonly attribute long load;
    oneway void tell(in JobId id);
    Pair ask(in JobId id, inout string name, out Secret key) raises (Wrong, Gone);
    void stop();
  };
};
"""


class Planted(unittest.TestCase):
    def setUp(self):
        self.old = None
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folders = [os.path.join(folder.name, name) for name in ("old", "new")]
        for version in self.folders:
            os.mkdir(version)
            self.write(version, TYPES, CALLS)

    def write(self, version, types, calls):
        for name, text in (("types.idl", types), ("calls.idl", calls)):
            with open(os.path.join(version, name), "w") as f:
                f.write(text)

    def changed(self, *replacements):
        """The report after these replacements, without the module name."""
        types, calls = TYPES, CALLS
        for old, new in replacements:
            self.assertEqual((types + calls).count(old), 1, old)
            types, calls = types.replace(old, new), calls.replace(old, new)
        self.write(self.folders[1], types, calls)
        self.old = self.old or idl_compare.read_contract(self.folders[0])
        new = idl_compare.read_contract(self.folders[1])
        return [line.replace("M::", "") for line in idl_compare.Comparison(self.old, new).lines]

    def breaks(self, old, new, *expected):
        self.assertEqual(self.changed((old, new)), ["incompatible: " + line for line in expected])

    def keeps(self, old, new, *expected):
        self.assertEqual(self.changed((old, new)), ["compatible: " + line for line in expected])

    def test_nothing(self):
        self.assertEqual(self.changed(), [])
        self.assertEqual(self.changed(("  typedef long Grid", "\n    typedef  long  Grid")), [])

    def test_members(self):
        self.breaks("Secret key; };", "};", "Pair: member key removed")
        self.breaks("Secret key; };", "Secret key; long more; };", "Pair: new member more")
        self.breaks("Secret key; };", "Secret lock; };", "Pair: member key renamed to lock")
        self.breaks("JobId id; string<8> name;", "string<8> name; JobId id;",
                    "Pair: members reordered: were id, name, key, are name, id, key")
        self.breaks("string<8> name", "string name", "Pair: member name: was string<8>, is string")
        self.breaks("exception Wrong { string code; }", "exception Wrong { string code; long x; }",
                    "Wrong: new member x")

    def test_constants_and_enums(self):
        self.breaks("LIMIT = 1024", "LIMIT = 1 << 9", "LIMIT: value: was 1024, is 512")
        self.keeps("LIMIT = 1024", "LIMIT = 1 << 10")
        self.breaks("const unsigned long LIMIT", "const long LIMIT",
                    "LIMIT: type: was unsigned long, is long")
        self.breaks('WORD = "a"', 'WORD = "b"', "WORD: value: was 'a', is 'b'")
        self.breaks('  const string WORD = "a";\n', "", "WORD: constant removed")
        self.breaks("RED, GREEN }", "RED, GREEN, BLUE }",
                    "Color: values: was ['RED', 'GREEN'], is ['RED', 'GREEN', 'BLUE']")

    def test_typedefs(self):
        self.breaks("sequence<octet, 16> Secret", "sequence<octet, 20> Secret",
                    "Secret: type: was sequence<octet, 16>, is sequence<octet, 20>")
        self.breaks("sequence<octet, 16> Secret", "sequence<octet> Secret",
                    "Secret: type: was sequence<octet, 16>, is sequence<octet>")
        self.breaks("Grid[2][3]", "Grid[2][4]", "Grid: type: was long[2][3], is long[2][4]")
        self.breaks("unsigned long long JobId", "unsigned long JobId",
                    "JobId: type: was unsigned long long, is unsigned long")

    def test_unions(self):
        self.breaks("case 1: long", "case 2: long",
                    "Either: member number: cases were ['1'], are ['2']")
        self.breaks("case 1: long number;", "", "Either: member number removed")
        self.breaks("switch (long)", "switch (short)",
                    "Either: discriminator: was long, is short")

    def test_operations(self):
        self.breaks("    void stop();\n", "", "Calls::stop: operation removed")
        self.breaks("void stop()", "long stop()", "Calls::stop: result: was void, is long")
        self.breaks("oneway void tell", "void tell", "Calls::tell: oneway: was True, is False")
        self.breaks("out Secret key)", "out Secret key, in long x)",
                    "Calls::ask: new parameter: in long x")
        self.breaks("in JobId id, inout", "inout", "Calls::ask: parameter removed: in JobId id")
        self.breaks("out Secret key)", "inout Secret key)",
                    "Calls::ask: parameter key: was out, is inout")
        self.breaks("inout string name", "inout wstring name",
                    "Calls::ask: parameter name: was string, is wstring")
        self.breaks("readonly attribute", "attribute",
                    "Calls::load: readonly: was True, is False")
        self.breaks("attribute long load", "attribute short load",
                    "Calls::load: type: was long, is short")

    def test_swapped_parameters_of_one_type(self):
        with_two = "void stop(in long a, in long b)"
        self.write(self.folders[0], TYPES, CALLS.replace("void stop()", with_two))
        self.breaks("void stop()", "void stop(in long b, in long a)",
                    "Calls::stop: parameter a is now b", "Calls::stop: parameter b is now a")

    def test_raises(self):
        self.breaks("(Wrong, Gone)", "(Wrong)", "Calls::ask: no longer raises Gone")
        self.breaks("void stop()", "void stop() raises (Gone)", "Calls::stop: now raises Gone")
        self.keeps("(Wrong, Gone)", "(Gone, Wrong)")

    def test_inheritance(self):
        self.breaks("Calls : Base", "Calls : Base, Other",
                    "Calls: inherits: was ['Base'], is ['Base', 'Other']")
        self.breaks("Calls : Base", "Calls", "Calls: inherits: was ['Base'], is []")
        self.breaks("interface Other", "abstract interface Other",
                    "Other: abstract, local: was [False, False], is [True, False]")

    def test_identity(self):
        lines = self.changed(('#pragma prefix "pool"\nmodule M {\n  // The',
                              '#pragma prefix "pond"\nmodule M {\n  // The'))
        self.assertIn("incompatible: Pair: repository id was IDL:pool/M/Pair:1.0, "
                      "is IDL:pond/M/Pair:1.0", lines)
        self.breaks("exception Gone { string code; };",
                    "exception Gone { string code; };\n#pragma version Gone 1.1",
                    "Gone: repository id was IDL:pool/M/Gone:1.0, is IDL:pool/M/Gone:1.1")
        self.breaks("exception Gone { string code; };",
                    'exception Gone { string code; };\n#pragma ID Gone "IDL:x/Gone:1.0"',
                    "Gone: repository id was IDL:pool/M/Gone:1.0, is IDL:x/Gone:1.0")

    def test_renamed_and_removed_declarations(self):
        self.assertEqual(self.changed(("interface Other", "interface Another")),
                         ["incompatible: Other: interface removed",
                          "compatible: Another: new interface"])
        self.breaks("  enum Color { RED, GREEN };\n", "  struct Color { long red; };\n",
                    "Color: was enum, is struct")

    def test_compatible(self):
        self.keeps("interface Other { };", "interface Other { void new_one(); };",
                   "Other::new_one: new operation")
        self.keeps("interface Other { };", "interface Other { };\n  interface Third { };",
                   "Third: new interface")
        self.keeps("enum Color", "const long MORE = 1;\n  enum Color", "MORE: new constant")
        self.keeps("enum Color", "struct S { long a; };\n  typedef S T;\n  enum Color",
                   "S: new struct", "T: new typedef")
        self.keeps("// The first.", "// Of the pool.", "types.idl: comments changed")
        self.keeps("in JobId id, inout", "in JobId job, inout",
                   "Calls::ask: parameter id is now job")
        self.keeps("struct Pair { JobId id;", "struct Pair { unsigned long long id;",
                   "Pair: member id: was JobId, is unsigned long long")

    def test_moved_to_another_file(self):
        word = '  const string WORD = "a";\n'
        other = "  interface Other"
        self.assertEqual(self.changed((word, ""), (other, word + other)), [
            "compatible: WORD: moved from types.idl to calls.idl"])


class Command(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "-B", idl_compare.__file__, *arguments],
                              capture_output=True, text=True)

    def test_nothing_that_is_frozen_changes(self):
        done = self.run_it(FROZEN if os.path.isdir(FROZEN) else IDL, IDL)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_this_contract_beside_itself(self):
        done = self.run_it(IDL, IDL)
        self.assertEqual((done.returncode, done.stdout),
                         (0, "idl_compare: 0 incompatible, 0 compatible changes\n"))
        self.assertGreater(len(idl_compare.read_contract(IDL)[0]), 200)

    def test_one_with_a_word_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(IDL):
                with open(os.path.join(IDL, name), encoding="utf-8") as f:
                    text = f.read()
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text.replace("typedef long long Instant;", "typedef long Instant;"))
            done = self.run_it(IDL, folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("incompatible: Sublet::v1::Instant: type: was long long, is long\n"
                      "idl_compare: 1 incompatible, 0 compatible changes\n", done.stdout)

    def test_usage(self):
        self.assertIn("usage:", self.run_it("--help").stdout)
        self.assertEqual(self.run_it("--help").returncode, 0)
        self.assertEqual(self.run_it(IDL).returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("no .idl files", self.run_it(IDL, folder).stderr)
            with open(os.path.join(folder, "a.idl"), "w") as f:
                f.write("module M { struct S { Unknown x; }; };\n")
            done = self.run_it(IDL, folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("Unknown", done.stderr)


if __name__ == "__main__":
    unittest.main()

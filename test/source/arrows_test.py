"""arrows.py finds no violation in this tree, and each violation planted in a small one."""

import os
import subprocess
import sys
import tempfile
import unittest

import arrows

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = """# A page
## Rooms and arrows
| folder | room | may use |
|---|---|---|
| `idl/` | contract | – |
| `protocol/` | promises | – |
| `base/` | system | – |
| `scheduling/` | brain | protocol |
| `server/` | daemon | scheduling, base, idl |
| `server/child/` | its child | base |
| `test/` | tests | anything |

| library | only in |
|---|---|
| omniORB and the IDL's headers | `server/servants/`, `server/main.*` |
| SOCI, SQLite | `server/store/` |
| Boost.Log | `base/log.cc` |
| OpenSSL, ACE, libsodium, libseccomp, CLI11, toml++, nlohmann/json, CppUnit, RapidCheck | tests |
| libxcb, libwayland, sd-bus | tests |

| files | only |
|---|---|
| `protocol/`, `scheduling/` | the pure part of the C++ library |
| `base/*.h` | the C library |
| `server/child/` | the C library and header-only templates |

## Another
| `cli/` | not of that section | server |
"""
CLEAN = {
    "idl/pool.idl": "module Sublet {};",
    "protocol/lease.h": "#include <string>\n",
    "base/log.h": "#include <stdint.h>\n",
    "base/log.cc": "#include <boost/log/core.hpp>\n#include <fstream>\n",
    "base/testing/folder.h": "#include <filesystem>\n",
    "scheduling/pool.cc": '#include "protocol/lease.h"\n#include <map>\n'
                          '// printf("") says time(0)\n',
    "scheduling/pool_test.cc": '#include <cppunit/Test.h>\n#include <thread>\n'
                               '#include "base/testing/folder.h"\n',
    "server/servants/jobs.cc": '#include "pool.hh"\n#include <omniORB4/CORBA.h>\n',
    "server/store/rows.h": "#include <soci/soci.h>\n#include <sqlite3.h>\n",
    "server/main.cc": '#include "pool.hh"\n#include "servants/local.h"\n',
    "server/servants/local.h": "",
    "server/child/main.cc": '#include <unistd.h>\n#include <algorithm>\n#include "base/log.h"\n',
    "test/pool.cc": '#include "server/store/rows.h"\n#include "scheduling/pool_test.cc"\n',
}


def found(**planted):
    """Violations in the small tree with these files added or replaced."""
    files = dict(CLEAN, **{path.replace("__", "/").replace("_DOT_", "."): text
                           for path, text in planted.items()})
    return arrows.Tree(files, arrows.read_tables(PAGE)).violations()


class Planted(unittest.TestCase):
    def only(self, expected, **planted):
        self.assertEqual(found(**planted), expected)

    def test_clean(self):
        self.only([])

    def test_forbidden_arrow(self):
        self.only(["scheduling/pool.cc: scheduling/ may not use base/ (base/log.h)"],
                  scheduling__pool_DOT_cc='  #  include "base/log.h"')
        self.only(["server/child/x.cc: server/child/ may not use server/ "
                   "(server/servants/local.h)"],
                  server__child__x_DOT_cc='#include "server/servants/local.h"')

    def test_a_test_has_only_its_rooms_arrows(self):
        self.only(["scheduling/pool_test.cc: scheduling/ may not use base/ (base/log.h)"],
                  scheduling__pool_test_DOT_cc='#include "base/log.h"')

    def test_helpers_of_tests_are_for_tests(self):
        self.only(["server/x.cc: includes test code: base/testing/folder.h"],
                  server__x_DOT_cc='#include "base/testing/folder.h"')

    def test_the_brain_and_corba(self):
        lines = found(scheduling__pool_DOT_cc="#include <omniORB4/CORBA.h>")
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("must not include omniORB and the IDL's headers", lines[0])
        self.assertIn("limited to the pure part of the C++ library: <omniORB4/CORBA.h>", lines[1])
        lines = found(scheduling__pool_DOT_cc='#include "pool.hh"')
        self.assertEqual(len(lines), 3, lines)
        self.assertIn("scheduling/ may not use idl/ (pool.hh)", lines[0])

    def test_library_outside_its_place(self):
        self.only(["server/x.cc: must not include SQLite: <sqlite3.h>"],
                  server__x_DOT_cc="#include <sqlite3.h>")
        self.only(["base/text.cc: must not include Boost.Log: <boost/log/core.hpp>"],
                  base__text_DOT_cc="#include <boost/log/core.hpp>")

    def test_library_through_another_header(self):
        self.only(["server/x.cc: must not include omniORB and the IDL's headers: "
                   "<omniORB4/CORBA.h> via server/y.h, server/servants/jobs.cc",
                   "server/y.h: must not include omniORB and the IDL's headers: <omniORB4/CORBA.h> "
                   "via server/servants/jobs.cc"],
                  server__x_DOT_cc='#include "server/y.h"',
                  server__y_DOT_h='#include "servants/jobs.cc"',
                  server__servants__jobs_DOT_cc="#include <omniORB4/CORBA.h>")

    def test_place_without_its_library(self):
        self.only(["docs/architecture.md: stale entry: SQLite is not included in server/store/"],
                  server__store__rows_DOT_h="#include <soci/soci.h>")

    def test_unknown_library(self):
        self.only(["base/x.cc: <Qt/qt.h> belongs to no library listed in docs/architecture.md"],
                  base__x_DOT_cc="#include <Qt/qt.h>")

    def test_pure_rooms(self):
        for header in ("thread", "fstream", "unistd.h", "mutex", "iostream", "filesystem"):
            limited = "limited to the pure part of the C++ library: <%s>" % header
            self.only(["protocol/lease.h: " + limited,
                       "scheduling/pool.cc: " + limited + " via protocol/lease.h"],
                      protocol__lease_DOT_h="#include <%s>" % header)
        for code in ("std::chrono::steady_clock::now()", "time(nullptr)", "getenv(name)",
                     "std::random_device seed"):
            lines = found(protocol__lease_DOT_h="#include <chrono>\nauto a = " + code + ";")
            self.assertEqual(len(lines), 1, (code, lines))

    def test_c_only(self):
        self.only(["base/hash.h: limited to the C library: <string>"],
                  base__hash_DOT_h="#include <string>")
        self.only(["server/child/main.cc: limited to the C library and header-only templates: "
                   "<string>"],
                  server__child__main_DOT_cc="#include <string>")

    def test_what_leads_nowhere(self):
        self.only(['base/x.cc: "base/gone.h" is neither a file nor generated'],
                  base__x_DOT_cc='#include "base/gone.h"')
        self.only(['base/x.cc: "base/parser.h" is neither a file nor generated'],
                  base__x_DOT_cc='#include "base/parser.h"')
        self.only(["gui/x.cc: belongs to no room"], gui__x_DOT_cc="")

    def test_crowded_folder(self):
        many = {"base__m%d_DOT_%s" % (i, end): "" for i in range(20) for end in ("h", "cc")}
        tests = {"base__t%d_test_DOT_cc" % i: "" for i in range(30)}
        self.only(["base/: 21 modules; the limit is 20"], **many, **tests)
        tests = {"test__t%d_test_DOT_py" % i: "" for i in range(20)}
        self.only(["test/: 21 modules; the limit is 20"], **tests)

    def test_room_without_a_folder(self):
        files = {path: text for path, text in CLEAN.items() if not path.startswith("idl/")}
        lines = arrows.Tree(files, arrows.read_tables(PAGE)).violations()
        self.assertIn("docs/architecture.md: the folder of room idl/ does not exist",
                      lines)


class Page(unittest.TestCase):
    def refused(self, old, new):
        self.assertIn(old, PAGE)
        with self.assertRaises(arrows.Unreadable) as caught:
            arrows.read_tables(PAGE.replace(old, new))
        return str(caught.exception)

    def test_unreadable(self):
        self.assertIn("no section", self.refused("## Rooms", "## Halls"))
        self.assertIn("above it", self.refused("brain | protocol", "brain | server"))
        self.assertIn("unknown library", self.refused("ACE", "ACME"))
        self.assertIn("no row", self.refused("libsodium, ", ""))
        self.assertIn("unknown standard: nothing", self.refused("| the C library |", "| nothing |"))
        self.assertIn("three tables", self.refused("\n| files | only |", "| files | only |"))


class ThisTree(unittest.TestCase):
    def test_no_violations(self):
        self.assertEqual(arrows.check(ROOT), [])

    def test_sees_it_all(self):
        files = arrows.read_files(ROOT)
        self.assertGreater(len(files), 400)
        self.assertIn("protocol/lease.h", files)

    def test_command(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-B", arrows.__file__, *arguments],
                                  capture_output=True, text=True)
        self.assertEqual(run().returncode, 0)
        self.assertIn("usage:", run("--help").stdout)
        self.assertEqual(run("--what").returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(folder).returncode, 2)
            os.mkdir(os.path.join(folder, "docs"))
            with open(os.path.join(folder, arrows.PAGE), "w", encoding="utf-8") as f:
                f.write(PAGE)
            done = run(folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("arrows: 12 violations", done.stdout)


if __name__ == "__main__":
    unittest.main()

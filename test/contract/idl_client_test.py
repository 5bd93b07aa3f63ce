"""The client written from idl/ alone, with a real pool; and that it uses nothing else of
this project."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

FOLDER = os.path.join(harness.ROOT, "examples", "idl-client")
SOURCE = os.path.join(FOLDER, "main.cc")


class IdlClient(unittest.TestCase):
    def run_it(self, pool, *args, program=None):
        done = subprocess.run([program or os.path.join(harness.BIN, "idl-client")] + list(args),
                              cwd=pool.folder, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=4 * harness.PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def check_run(self, pool, lines, program=None):
        data = os.path.join(pool.folder, "numbers")
        with open(data, "w") as f:
            f.writelines(lines)
        status, out, err = self.run_it(pool, pool.socket, data, program=program)
        self.assertEqual((status, err), (0, ""), out)
        first, second = [int(n) for n in re.findall(r"^job (\d+), state 5$", out, re.M)]
        with open(os.path.join(pool.folder, "job-%d.sorted" % first)) as f:
            self.assertEqual(f.readlines(), sorted(set(lines)))
        with open(os.path.join(pool.folder, "job-%d.sorted" % second)) as f:
            self.assertEqual(f.readlines(), sorted(lines, reverse=True))
        return out

    def test_batch_and_report(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            out = self.check_run(pool, ["b\n", "a\n", "b\n"])
            user = pool.sublet("report")["usage"][0]["group"]["user"]
            self.assertRegex(out, r"(?m)^%s: 2 jobs, \d+ us$" % user)
            # Several chunks in each direction.
            self.check_run(pool, ["%09d\n" % (i * 7919 % 300000) for i in range(300000)])

    def test_built_as_the_readme_says(self):
        with open(os.path.join(FOLDER, "README.md")) as f:
            commands = re.search(r"```sh\n(.*?)```", f.read(), re.S).group(1)
        with harness.Pool() as pool:
            for name in ("idl", "examples"):
                os.symlink(os.path.join(harness.ROOT, name), os.path.join(pool.folder, name))
            done = subprocess.run(["sh", "-ec", commands], cwd=pool.folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            pool.start_server()
            pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            self.check_run(pool, ["2\n", "1\n"], os.path.join(pool.folder, "idl-client"))

    def test_exceptions_are_told(self):
        with harness.Pool() as pool:
            data = os.path.join(pool.folder, "numbers")
            with open(data, "w") as f:
                f.write("1\n")
            status, _, err = self.run_it(pool, pool.socket, data)
            self.assertEqual((status, err), (1, "TRANSIENT\n"))
            pool.start_server(sets=["spool.largest_file=1 KiB"])
            with open(data, "w") as f:
                f.write("x" * 2000)
            status, _, err = self.run_it(pool, pool.socket, data)
            self.assertEqual(status, 2, err)
            self.assertRegex(err, r"\ALimitExceeded\n.+ Split it, .+\.\n\Z")

    def test_outputs_that_cannot_be_written_are_told(self):
        for obstacle in (os.mkdir, lambda path: os.symlink("/dev/full", path)):
            with harness.Pool() as pool:
                pool.start_server()
                pool.client("curly", slots=2).start()
                pool.wait_machines(1)
                data = os.path.join(pool.folder, "numbers")
                with open(data, "w") as f:
                    f.write("1\n")
                obstacle(os.path.join(pool.folder, "job-2.sorted"))
                status, out, err = self.run_it(pool, pool.socket, data)
                self.assertEqual((status, err), (1, "an output could not be written\n"), out)

    def test_it_is_what_it_claims_to_be(self):
        with open(SOURCE) as f:
            lines = f.readlines()
        self.assertLess(len(lines), 150)
        quoted = re.findall(r'#include "(.*)"', "".join(lines))
        stubs = [name[:-4] + ".hh" for name in os.listdir(os.path.join(harness.ROOT, "idl"))
                 if name.endswith(".idl")]
        self.assertTrue(quoted)
        self.assertEqual([name for name in quoted if name not in stubs], [])


if __name__ == "__main__":
    unittest.main()

"""Installation: `cmake --install` below a prefix, and the Debian packages, built, inspected,
unpacked, and installed, upgraded, removed and purged in a copy of this machine. usage: packages_test.py BUILD_FOLDER [Class.test]"""

import glob
import gzip
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = ""
FOLDER = ""
PACKAGES = {"sublet-server", "sublet-client", "sublet", "libsublet-checkpoint-dev",
            "libsublet-checkpoint0", "python3-sublet"}


def output(*args, **options):
    return subprocess.run(args, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def skip_without(*programs):
    for program in programs:
        if not shutil.which(program):
            raise unittest.SkipTest(program + " is not installed")


def setUpModule():
    global FOLDER
    FOLDER = tempfile.mkdtemp(prefix="sublet-packages-")


def tearDownModule():
    shutil.rmtree(FOLDER)


def packages(version=None):
    """Name -> file of each package, made at the first call for a version."""
    made = os.path.join(FOLDER, "made", version or "now")
    if not os.path.exists(made):
        skip_without("cpack", "dpkg-deb", "dpkg-shlibdeps", "file")
        done = subprocess.run(["cpack", "-G", "DEB", "-B", made] +
                              (["-R", version] if version else []), cwd=BUILD, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
    return {os.path.basename(f).split("_")[0]: f for f in glob.glob(made + "/*.deb")}


class Packages(unittest.TestCase):
    """The packages, built once."""

    @classmethod
    def setUpClass(cls):
        cls.files = packages()

    def fields(self, package):
        text = output("dpkg-deb", "-f", self.files[package])
        return dict(re.findall(r"^(\S+): (.*(?:\n .*)*)", text, re.MULTILINE))

    def contents(self, package):
        """Path -> (mode, owner)."""
        lines = output("dpkg-deb", "-c", self.files[package]).splitlines()
        return {f[5][1:]: (f[0], f[1]) for f in (line.split(None, 5) for line in lines)}

    def unpacked(self, package):
        folder = os.path.join(FOLDER, "unpacked", package)
        if not os.path.exists(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            subprocess.run(["dpkg-deb", "-R", self.files[package], folder], check=True)
        return folder

    def test_which_there_are(self):
        self.assertEqual(set(self.files), PACKAGES)
        version = output(BUILD + "/bin/sublet", "--version").split()[1]
        architecture = output("dpkg", "--print-architecture").strip()
        for package in PACKAGES:
            fields = self.fields(package)
            self.assertEqual((fields["Package"], fields["Version"], fields["Architecture"]),
                             (package, version,
                              "all" if package == "python3-sublet" else architecture))
            summary, rest = fields["Description"].split("\n", 1)
            self.assertLess(len(summary), 80)
            self.assertIn("\n .\n", "\n" + rest)

    def test_built_without_tests(self):
        """The target `installed` builds all that the packages have, and no test."""
        if not os.path.exists(BUILD + "/build.ninja"):
            self.skipTest("not built by ninja")
        commands = output("ninja", "-t", "commands", "installed", cwd=BUILD)
        for package in PACKAGES:
            for path, (mode, _) in self.contents(package).items():
                if "bin/" in path and mode[0] == "-":
                    self.assertIn(" -o bin/%s " % os.path.basename(path), commands)
        for made in glob.glob(BUILD + "/man/*") + glob.glob(BUILD + "/completions/*"):
            self.assertIn("/" + os.path.relpath(made, BUILD), commands)
        self.assertIn("libsublet_checkpoint.a", commands)
        self.assertIn("libsublet_checkpoint.so", commands)
        for other in (" -o unit/", "_test.cc", "/bench/", "/examples/"):
            self.assertNotIn(other, commands)

    def test_where_things_are(self):
        for package, programs in (("sublet-server", ["/usr/sbin/sublet-server"]),
                                  # The client looks for monitor and shepherd beside it.
                                  ("sublet-client", ["/usr/bin/sublet-agent",
                                                     "/usr/sbin/sublet-client",
                                                     "/usr/sbin/sublet-loadmon",
                                                     "/usr/sbin/sublet-shepherd"]),
                                  ("sublet", ["/usr/bin/sublet"])):
            contents = self.contents(package)
            executable = [f for f, (mode, _) in contents.items() if mode[0] == "-" and "x" in mode]
            self.assertEqual(sorted(executable), programs)
        self.assertLessEqual({"/etc/sublet/server.toml",
                              "/usr/lib/systemd/system/sublet-server.service",
                              "/usr/lib/tmpfiles.d/sublet-server.conf",
                              "/usr/share/doc/sublet-server/administrator.md"},
                             set(self.contents("sublet-server")))
        self.assertLessEqual({"/etc/sublet/client.toml", "/etc/sublet/loadmon.toml",
                              "/usr/lib/systemd/system/sublet-client.service",
                              "/usr/lib/systemd/user/sublet-client.service",
                              "/usr/lib/systemd/user/sublet-agent.service",
                              "/etc/xdg/autostart/sublet-agent.desktop"},
                             set(self.contents("sublet-client")))
        self.assertIn("/usr/share/sublet/idl/job_scheduler.idl", self.contents("sublet"))
        self.assertLessEqual({"/usr/include/sublet/sublet_checkpoint.h",
                              "/usr/include/sublet/sublet_checkpoint.hpp",
                              "/usr/include/sublet/sublet_checkpoint.f90",
                              "/usr/include/sublet/sublet_status.h"},
                             set(self.contents("libsublet-checkpoint-dev")))
        modules = [os.path.basename(f) for f in self.contents("python3-sublet") if f.endswith(".py")]
        self.assertIn("checkpoint.py", modules)
        self.assertEqual([f for f in modules if "test" in f], [])

    def test_licence_and_changes(self):
        with open(os.path.join(ROOT, "packaging", "changelog")) as f:
            changes = f.read()
        version = output(BUILD + "/bin/sublet", "--version").split()[1]
        self.assertTrue(changes.startswith("sublet (%s) " % version), changes)
        for package in PACKAGES:
            folder = self.unpacked(package) + "/usr/share/doc/" + package
            with gzip.open(folder + "/changelog.gz", "rt") as f:
                self.assertEqual(f.read(), changes)
            with open(folder + "/copyright") as f:
                self.assertIn("License: Apache-2.0", f.read())

    def test_nothing_in_two_packages(self):
        seen = {}
        for package in PACKAGES:
            for path, (mode, owner) in self.contents(package).items():
                self.assertEqual(owner, "root/root", path)
                # Only root may change installed files; no program is set-user-id. The mode of a
                # symbolic link means nothing.
                if mode[0] != "l":
                    self.assertNotIn("w", mode[5:], path)
                self.assertNotRegex(mode, "[sStT]", path)
                if mode[0] != "d":
                    self.assertNotIn(path, seen, (package, seen.get(path)))
                    seen[path] = package
        for folder in ("/var", "/run"):
            self.assertEqual([p for p in seen if p.startswith(folder)], [])

    def test_dependencies(self):
        for package in ("sublet-server", "sublet-client", "sublet"):
            depends = self.fields(package)["Depends"]
            for library in ("libc6", "libomniorb4-2", "libssl3", "libsodium23"):
                self.assertIn(library, depends, package)
            self.assertNotIn("-dev", depends)
        for package in ("sublet-server", "sublet-client"):
            self.assertIn("libboost-log", self.fields(package)["Depends"])
        self.assertIn("libsoci-sqlite3", self.fields("sublet-server")["Depends"])
        self.assertIn("adduser", self.fields("sublet-server")["Depends"])
        self.assertNotIn("sqlite", self.fields("sublet-client")["Depends"])
        self.assertEqual(self.fields("libsublet-checkpoint-dev")["Depends"],
                         "libc6-dev, libsublet-checkpoint0")
        self.assertRegex(self.fields("libsublet-checkpoint0")["Depends"], r"^libc6 [^,]*$")
        self.assertEqual(self.fields("python3-sublet")["Depends"], "python3 (>= 3.9)")

    def test_settings_are_the_administrators(self):
        for package in PACKAGES:
            path = self.unpacked(package) + "/DEBIAN/conffiles"
            listed = []
            if os.path.exists(path):
                with open(path) as f:
                    listed = f.read().split()
            here = [p for p, (mode, _) in self.contents(package).items()
                    if p.startswith("/etc/") and mode[0] != "d"]
            self.assertEqual(sorted(listed), sorted(here), package)

    def script(self, package, name):
        path = "%s/DEBIAN/%s" % (self.unpacked(package), name)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o755, path)
        subprocess.run(["sh", "-n", path], check=True)
        return path

    def test_only_purge_removes_data(self):
        """Runs the maintainer scripts as dpkg does, with every command replaced by one that
        records its arguments."""
        said = os.path.join(FOLDER, "said")
        commands = os.path.join(FOLDER, "commands")
        os.makedirs(commands)
        for name in ("rm", "adduser", "deluser", "install", "systemctl", "deb-systemd-helper",
                     "deb-systemd-invoke"):
            with open(os.path.join(commands, name), "w") as f:
                f.write('#!/bin/sh\necho "%s $*" >>%s\n' % (name, said))
            os.chmod(f.name, 0o755)
        states = {"sublet-server": "/var/lib/sublet-server", "sublet-client": "/var/lib/sublet-client"}
        for package, state in states.items():
            for script, words in (("prerm", ["upgrade", "2"]), ("postrm", ["upgrade", "2"]),
                                  ("prerm", ["remove"]), ("postrm", ["remove"]),
                                  ("postrm", ["abort-install"]), ("postrm", ["purge"])):
                open(said, "w").close()
                subprocess.run([self.script(package, script)] + words, check=True,
                               env={"PATH": commands + ":/usr/bin:/bin"})
                with open(said) as f:
                    lines = f.read().splitlines()
                removed = [line for line in lines if line.split()[0] in ("rm", "deluser")]
                if words == ["purge"]:
                    self.assertEqual(len(removed), 1)
                    self.assertTrue(removed[0].startswith("rm -rf %s " % state), removed)
                else:
                    self.assertEqual(removed, [], (package, script, words))
        self.script("sublet-client", "postinst")
        open(said, "w").close()
        subprocess.run([self.script("sublet-server", "postinst"), "configure", ""], check=True,
                       env={"PATH": commands + ":/usr/bin:/bin"})
        with open(said) as f:
            self.assertRegex(f.read(), "adduser --system .* sublet\n")

    def test_programs_of_the_packages_run(self):
        for package, program in (("sublet-server", "sbin/sublet-server"),
                                 ("sublet-client", "sbin/sublet-client"),
                                 ("sublet-client", "sbin/sublet-loadmon"),
                                 ("sublet-client", "sbin/sublet-shepherd"),
                                 ("sublet-client", "bin/sublet-agent"),
                                 ("sublet", "bin/sublet")):
            path = os.path.join(self.unpacked(package), "usr", program)
            self.assertEqual(output(path, "--version"),
                             "%s %s\n" % (os.path.basename(program), self.fields(package)["Version"]))
            with open(path, "rb") as f:
                self.assertNotIn(b".debug_info", f.read(), path)

    def test_a_program_is_built_with_the_library(self):
        skip_without("cc", "pkg-config")
        tree = self.unpacked("libsublet-checkpoint-dev")
        description = glob.glob(tree + "/usr/lib/**/sublet-checkpoint.pc", recursive=True)[0]
        flags = output("pkg-config", "--cflags", "--libs", "sublet-checkpoint",
                       env={"PATH": os.environ["PATH"], "PKG_CONFIG_SYSROOT_DIR": tree,
                            "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1",
                            "PKG_CONFIG_PATH": os.path.dirname(description)}).split()
        program = os.path.join(FOLDER, "counts")
        write_counts(program + ".c")
        subprocess.run(["cc", "-Wall", "-Werror", program + ".c", "-o", program] + flags, check=True)
        subprocess.run([program], check=True, env={})

    def test_a_program_uses_the_python_package(self):
        """And dpkg's scripts for it do nothing without Debian's tools."""
        tree = self.unpacked("python3-sublet")
        listing = ("from sublet import checkpoint\n"
                   "with checkpoint.open('counts', 1, path='counts') as c:\n"
                   "    for step in c.range('step', 10):\n"
                   "        c.save()\n"
                   "    print(step, c.generation)\n")
        self.assertEqual(output(sys.executable, "-B", "-c", listing, cwd=FOLDER,
                                env={"PYTHONPATH": tree + "/usr/lib/python3/dist-packages"}),
                         "9 10\n")
        for script, words in (("postinst", ["configure"]), ("prerm", ["remove"])):
            subprocess.run([self.script("python3-sublet", script)] + words, check=True,
                           env={"PATH": "/nowhere"})


def write_counts(path):
    with open(path, "w") as f:
        f.write('#include <sublet_checkpoint.h>\n'
                'int main(void) {\n'
                '  uint64_t n = 0;\n'
                '  struct sublet_checkpoint* c = sublet_checkpoint_open("counts", 1);\n'
                '  sublet_checkpoint_variable(c, "n", &n, 1, SUBLET_UINT64);\n'
                '  if (sublet_checkpoint_start(c, 0) < 0) return 1;\n'
                '  while (++n < 1000) sublet_checkpoint_point(c);\n'
                '  sublet_checkpoint_finish(c);\n'
                '  sublet_checkpoint_close(c);\n'
                '  return 0;\n'
                '}\n')


class Library(unittest.TestCase):
    """The checkpoint library below a private prefix, as a program outside this tree finds it."""

    @classmethod
    def setUpClass(cls):
        skip_without("cc")
        cls.prefix = os.path.join(FOLDER, "library")
        for component in ("checkpoint", "checkpoint_library"):
            output("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
        cls.libraries = os.path.dirname(
            glob.glob(cls.prefix + "/lib/**/libsublet_checkpoint.a", recursive=True)[0])

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=FOLDER)
        self.source = os.path.join(self.folder, "counts.c")
        write_counts(self.source)

    def check(self, program, shared):
        """It runs, and needs the shared library if and only if it should."""
        needed = output("readelf", "-d", program)
        self.assertEqual("libsublet_checkpoint.so.0" in needed, shared, needed)
        subprocess.run([program], check=True, env={"LD_LIBRARY_PATH": self.libraries})

    def test_only_the_interface_is_exported(self):
        skip_without("nm")
        names = output("nm", "-D", "--defined-only", "--format=posix",
                       self.libraries + "/libsublet_checkpoint.so").split("\n")
        exported = {line.split("@")[0].split()[0] for line in names if line}
        exported.discard("SUBLET_CHECKPOINT_0")
        with open(self.prefix + "/include/sublet/sublet_checkpoint.h") as f:
            declared = set(re.findall(r"(?m)^(?!typedef)\w[^\n(=]*\b(sublet_checkpoint_\w+)\(",
                                      f.read()))
        self.assertEqual(exported, declared)

    def test_with_pkg_config(self):
        skip_without("pkg-config")
        for module, shared in (("sublet-checkpoint", False), ("sublet-checkpoint-shared", True)):
            flags = output("pkg-config", "--cflags", "--libs", module,
                           env={"PATH": os.environ["PATH"],
                                "PKG_CONFIG_PATH": self.libraries + "/pkgconfig"}).split()
            program = os.path.join(self.folder, module)
            subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", self.source, "-o", program] + flags,
                           check=True)
            self.check(program, shared)

    def test_with_find_package(self):
        with open(os.path.join(self.folder, "CMakeLists.txt"), "w") as f:
            f.write("cmake_minimum_required(VERSION 3.25)\n"
                    "project(Counts LANGUAGES C)\n"
                    "find_package(SubletCheckpoint 0.1 REQUIRED)\n"
                    "add_executable(counts counts.c)\n"
                    "target_link_libraries(counts Sublet::checkpoint)\n"
                    "add_executable(counts_shared counts.c)\n"
                    "target_link_libraries(counts_shared Sublet::checkpoint_shared)\n")
        output("cmake", "-S", self.folder, "-B", self.folder + "/build",
               "-DCMAKE_PREFIX_PATH=" + self.prefix)
        output("cmake", "--build", self.folder + "/build")
        self.check(self.folder + "/build/counts", False)
        self.check(self.folder + "/build/counts_shared", True)

    def test_in_fortran(self):
        skip_without("gfortran")
        source = os.path.join(self.folder, "counts.f90")
        with open(source, "w") as f:
            f.write('program counts\n'
                    '  use sublet_checkpoint\n'
                    '  type(checkpoint) :: c\n'
                    '  integer(int64), target :: n = 0\n'
                    '  call c%open("counts", 1)\n'
                    '  call c%variable("n", n)\n'
                    '  call c%start()\n'
                    '  call c%point()\n'
                    '  call c%close()\n'
                    'end program\n')
        program = os.path.join(self.folder, "fortran")
        subprocess.run(["gfortran", self.prefix + "/include/sublet/sublet_checkpoint.f90", source, "-o",
                        program, self.libraries + "/libsublet_checkpoint.a"],
                       cwd=self.folder, check=True)
        subprocess.run([program], check=True, env={})

    def test_in_cxx17(self):
        skip_without("c++")
        source = os.path.join(self.folder, "values.cc")
        with open(source, "w") as f:
            f.write('#include <sublet_checkpoint.hpp>\n'
                    'struct Body { double mass = 0; std::string name; };\n'
                    'auto checkpoint_fields(Body& b) { return std::tie(b.mass, b.name); }\n'
                    'int main() {\n'
                    '  std::vector<Body> bodies(2);\n'
                    '  sublet::Checkpoint checkpoint("values", 1);\n'
                    '  checkpoint.variable("bodies", bodies);\n'
                    '  checkpoint.start();\n'
                    '  return checkpoint.point() ? 0 : 1;\n'
                    '}\n')
        program = os.path.join(self.folder, "values")
        subprocess.run(["c++", "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror", source, "-o",
                        program, "-I" + self.prefix + "/include/sublet",
                        self.libraries + "/libsublet_checkpoint.a"], check=True)
        subprocess.run([program], check=True, env={})


class Machine:
    """A copy of this machine that may be changed: an overlay of its root file system with a
    /run of its own, in a mount and process namespace that ends with everything in it."""

    BEGIN = """set -e
mount -t tmpfs none "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$1/root"
test -e "$1/root/var/lib/dpkg/status" || { echo "/var is a file system of its own" >&2; exit 1; }
mount -t tmpfs none "$1/root/run"
mount -t proc none "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount --bind "$2" "$1/root/mnt"
exec chroot "$1/root" sh -c 'echo ready; read end'
"""

    def __init__(self, shown):
        """`shown`: a folder that is at /mnt there."""
        skip_without("unshare", "nsenter", "chroot")
        folder = tempfile.mkdtemp(dir=FOLDER)
        self.first = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh",
                                       "-c", self.BEGIN, "sh", folder, shown], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
        if self.first.stdout.readline() != "ready\n":
            raise unittest.SkipTest("no overlay of / here: " + self.first.communicate()[1])
        self.init = harness.children(self.first.pid)[0]

    def close(self):
        self.first.communicate("end\n")

    def words(self, *command):
        return ["nsenter", "--target", str(self.init), "--mount", "--pid", "--root", "env",
                "-i", "--chdir=/", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"] + list(command)

    def run(self, *command):
        """The output, errors included."""
        done = subprocess.run(self.words(*command), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=harness.PATIENCE)
        if done.returncode != 0:
            raise AssertionError("%s: %s" % (command, done.stdout))
        return done.stdout

    def start(self, log, *command):
        with open(os.path.join(FOLDER, log), "w") as f:
            return subprocess.Popen(self.words(*command), stdin=subprocess.DEVNULL, stdout=f,
                                    stderr=f)

    def path(self, path):
        return "/proc/%d/root%s" % (self.init, path)

    def exist(self, *paths):
        return [p for p in paths if os.path.lexists(self.path(p))]

    def named(self, part):
        """All paths with this in their name."""
        return sorted(os.path.join(folder, name)[len(self.path("")):]
                      for top in ("/etc", "/run", "/usr", "/var")
                      for folder, below, names in os.walk(self.path(top))
                      for name in below + names if part in name)

    def write(self, path, text, how="w"):
        with open(self.path(path), how) as f:
            f.write(text)

    def read(self, path):
        with open(self.path(path)) as f:
            return f.read()


@unittest.skipUnless(os.geteuid() == 0, "needs root: installs packages in a copy of this machine")
class Life(unittest.TestCase):
    """From the first installation to the purge, with dpkg and the real maintainer scripts."""

    SETTINGS = ["/etc/sublet/client.toml", "/etc/sublet/loadmon.toml", "/etc/sublet/server.toml"]
    STATES = ["/var/lib/sublet-client", "/var/lib/sublet-server"]
    ENABLED = ["/etc/systemd/system/multi-user.target.wants/sublet-client.service",
               "/etc/systemd/system/multi-user.target.wants/sublet-server.service"]
    # The monitor takes whoever is at this machine for away.
    AWAY = 'idle_time = "1 s"\ninput = false\n[cpu]\nbecome_idle = -1\nstay_idle = -1\n'
    LATER = "99.0.0"

    def setUp(self):
        made = os.path.join(FOLDER, "made")
        os.makedirs(made, exist_ok=True)
        self.machine = Machine(made)
        self.addCleanup(self.machine.close)
        # Those of the machine itself, if they are installed.
        self.machine.run("dpkg", "--purge", *PACKAGES)
        self.before = self.machine.named("sublet")

    def dpkg(self, action, version):
        files = packages(version).values()
        made = os.path.join(FOLDER, "made")
        self.machine.run("dpkg", action, *(f.replace(made, "/mnt") for f in files))
        self.assertEqual(self.machine.run("dpkg", "--audit"), "")
        self.assertEqual(self.versions(), {version or output(BUILD + "/bin/sublet",
                                                             "--version").split()[1]})

    def versions(self):
        return set(self.machine.run("dpkg-query", "-W", "-f", "${Version}\n", *PACKAGES).split())

    def pool(self):
        """Starts the installed daemons as systemd would."""
        self.daemons = [
            self.machine.start("server.log", "runuser", "-u", "sublet", "--", "sublet-server",
                               "--config", "/etc/sublet/server.toml"),
            self.machine.start("client.log", "sublet-client", "--config", "/etc/sublet/client.toml")]
        harness.wait_for(lambda: self.machine.exist("/run/sublet/server.sock"), "the server")

    def stop_pool(self):
        for daemon, pid in ((d, harness.children(d.pid)) for d in self.daemons[::-1]):
            for child in pid:
                harness.kill(child, signal.SIGTERM)
            daemon.wait(harness.PATIENCE)

    def compiled(self):
        return glob.glob(self.machine.path("/usr/lib/python3/dist-packages/sublet/__pycache__/*"))

    def test_install_upgrade_remove_purge(self):
        machine = self.machine
        self.dpkg("--install", None)
        self.assertEqual(machine.exist(*self.SETTINGS + self.STATES[1:] + self.ENABLED),
                         self.SETTINGS + self.STATES[1:] + self.ENABLED)
        self.assertEqual(machine.run("stat", "-c", "%U %a", self.STATES[1], "/run/sublet"),
                         "sublet 700\nsublet 755\n")
        machine.write("/etc/sublet/loadmon.toml", self.AWAY)
        self.pool()
        self.assertIn("it ran\n", machine.run("sublet", "submit", "--wait", "--", "echo", "it ran"))
        self.assertNotEqual(self.compiled(), [])
        machine.run("/usr/bin/python3", "-c", "from sublet import checkpoint")
        self.stop_pool()

        # An upgrade keeps settings, the choice of services, and jobs; dpkg asks nothing.
        machine.write("/etc/sublet/server.toml", "# mine\n", "a")
        os.unlink(machine.path(self.ENABLED[0]))
        self.dpkg("--install", self.LATER)
        self.assertTrue(machine.read("/etc/sublet/server.toml").endswith("# mine\n"))
        self.assertEqual(machine.read("/etc/sublet/loadmon.toml"), self.AWAY)
        self.assertEqual(machine.exist(*self.ENABLED), self.ENABLED[1:])
        self.pool()
        self.assertIn("it ran\n", machine.run("sublet", "logs", "1"))
        self.stop_pool()

        # A removal keeps them, too.
        machine.run("dpkg", "--remove", *PACKAGES)
        self.assertEqual(self.compiled(), [])
        self.assertEqual(machine.exist("/usr/sbin/sublet-server", "/usr/sbin/sublet-client",
                                       "/usr/bin/sublet"), [])
        self.assertEqual(machine.exist(*self.SETTINGS + self.STATES), self.SETTINGS + self.STATES)
        self.assertTrue(machine.read("/etc/sublet/server.toml").endswith("# mine\n"))

        # A purge leaves only the account.
        machine.run("dpkg", "--purge", *PACKAGES)
        self.assertEqual(machine.named("sublet"), self.before)
        self.assertIn("sublet", machine.run("getent", "passwd", "sublet"))


class Installed(unittest.TestCase):
    """`cmake --install` below a private prefix, once."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = os.path.join(FOLDER, "prefix")
        cls.install()

    @classmethod
    def install(cls):
        return output("cmake", "--install", BUILD, "--prefix", cls.prefix)

    def read(self, path):
        with open(os.path.join(self.prefix, path)) as f:
            return f.read()

    UNITS = {"lib/systemd/system/sublet-server.service": "server",
             "lib/systemd/system/sublet-client.service": "client",
             # One of the folders below ~/.local where systemd looks for a user's units.
             "share/systemd/user/sublet-client.service": "client"}

    def test_places_follow_the_prefix(self):
        for path, unit in self.UNITS.items():
            text = self.read(path)
            command = re.search("^ExecStart=(.*)$", text, re.MULTILINE)[1].split()
            self.assertEqual(command, ["%s/sbin/sublet-%s" % (self.prefix, unit), "--config",
                                       "%s/etc/sublet/%s.toml" % (self.prefix, unit)])
            self.assertTrue(os.access(command[0], os.X_OK))
            self.assertTrue(os.path.exists(command[2]))
        self.assertIn('config = "%s/etc/sublet/loadmon.toml"' % self.prefix,
                      self.read("etc/sublet/client.toml"))

    def test_settings_are_kept(self):
        path = os.path.join(self.prefix, "etc/sublet/server.toml")
        with open(path, "a") as f:
            f.write("# mine\n")
        self.assertIn("Kept: " + path, self.install())
        self.assertIn("# mine\n", self.read("etc/sublet/server.toml"))

    def test_units_are_sound(self):
        skip_without("systemd-analyze")
        for path in self.UNITS:
            of_user = ["--user"] if "/user/" in path else []
            done = subprocess.run(["systemd-analyze", "verify", "--man=no"] + of_user +
                                  [os.path.join(self.prefix, path)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, "XDG_RUNTIME_DIR": FOLDER})
            # It also reports other units of this machine.
            ours = [line for line in done.stdout.splitlines() if "sublet" in line]
            self.assertEqual((done.returncode, ours), (0, []), done.stdout)
        # systemd's exposure level of a compromised service: 10 is unrestricted. The client's
        # jobs need too many permissions for a low level.
        subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20",
                        self.prefix + "/lib/systemd/system/sublet-server.service"],
                       check=True, stdout=subprocess.DEVNULL)

    def test_units_say_what_the_daemons_rely_on(self):
        server, client, of_user = map(self.read, self.UNITS)
        for text in (server, client, of_user):
            self.assertRegex(text, "(?m)^Type=notify$")
            self.assertRegex(text, "(?m)^NotifyAccess=main$")
            self.assertRegex(text, "(?m)^WatchdogSec=")
        self.assertRegex(server, "(?m)^User=sublet$")
        # Callers are identified by their user ids, which a user namespace would hide.
        self.assertNotRegex(server, "(?m)^(PrivateUsers|DynamicUser)=")
        # Jobs survive a restart, and have no private /tmp that it would remove.
        for text in (client, of_user):
            self.assertRegex(text, "(?m)^KillMode=process$")
            self.assertRegex(text, "(?m)^RestartKillSignal=SIGHUP$")
            self.assertNotRegex(text, "(?m)^(PrivateTmp|RuntimeDirectory|DynamicUser)=")
        # To enter the namespaces of a slot.
        self.assertRegex(client, "(?m)^CapabilityBoundingSet=.*CAP_SYS_CHROOT")
        # What only root's manager can do.
        self.assertNotRegex(of_user, "(?m)^(User|StateDirectory|Protect.*|CapabilityBoundingSet)=")
        self.assertRegex(of_user, "(?m)^WantedBy=default.target$")

    def test_systemd_finds_the_user_unit(self):
        """As below ~/.local, whose share/ is XDG_DATA_HOME."""
        skip_without("systemctl")
        home = os.path.join(FOLDER, "home")
        os.mkdir(home)
        subprocess.run(["systemctl", "--user", "enable", "sublet-client"], check=True,
                       stderr=subprocess.DEVNULL,
                       env={"PATH": os.environ["PATH"], "HOME": home, "SYSTEMD_OFFLINE": "1",
                            "XDG_DATA_HOME": self.prefix + "/share"})
        link = home + "/.config/systemd/user/default.target.wants/sublet-client.service"
        self.assertEqual(os.readlink(link), self.prefix + "/share/systemd/user/sublet-client.service")

    def test_the_user_unit_starts_the_client(self):
        """Its command as an ordinary user, with nothing but a home: a job runs as that user."""
        root = os.geteuid() == 0
        account = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.geteuid())
        command = re.search("(?m)^ExecStart=(.*)$", self.read(list(self.UNITS)[2]))[1].split()
        os.chmod(FOLDER, 0o755)
        with harness.Pool(["pool.administrators=" + account.pw_name]) as pool:
            pool.start_server()
            client = pool.client("curly")
            home = os.path.join(pool.folder, "home")
            os.mkdir(home)
            os.chown(home, account.pw_uid, account.pw_gid)
            client.owner("away")
            # The pool and the owner's presence are the test's.
            with open(os.path.join(pool.folder, "client-curly.log"), "w") as log:
                client.process = subprocess.Popen(
                    command + client.server_arguments() +
                    ["--monitor-control", client.control, "--set", "weak=true"],
                    env={"HOME": home, "PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log, cwd=home,
                    **({"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
                       if root else {}))
            pool.wait_machines(1)
            self.assertTrue(os.path.exists(home + "/.local/state/sublet-client/machine"))
            status, out, err = pool.run("submit", "--wait", "--", "id", "-u")
            self.assertEqual((status, out), (0, "%d\n" % account.pw_uid), err + pool.all_logs())
            self.assertEqual(client.stop(harness.PATIENCE), 0)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()

"""README.md and docs/ are correct: their commands are run, in order, in a private pool
(README.md creates its own); their listings are compiled and run, their batch files
checked; their links have targets, and the options that they name exist.

A fenced block names its language. A `sh` block is run unless the line above it is
`<!-- not run: REASON -->`. A block that begins with a comment naming a file
(`# squares.toml: ...`, `/* pi.c: ...`) is written to that file for later blocks."""

import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import tomllib
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

PAGES = ["README.md"] + sorted(os.path.relpath(path, harness.ROOT) for path in
                               glob.glob(os.path.join(harness.ROOT, "docs", "*.md")))
PROGRAMS = ("sublet", "sublet-server", "sublet-client", "sublet-loadmon", "sublet-agent")
LANGUAGES = ("sh", "toml", "c", "cpp", "fortran", "python", "idl", "json", "ini", "text")
OUR_COMMAND = r"\s*(?:\./(?:demo|check|bench)|(?:build/bin/)?(?:%s))(?: |$)" % "|".join(PROGRAMS)


class Block:
    def __init__(self, page, line, language, text, not_run):
        self.place = "%s:%d" % (page, line)
        self.language = language
        self.text = text
        self.not_run = not_run  # the reason, or None

    def file_name(self):
        named = re.match(r"(?:#|/\*|//) ([\w.-]+\.\w+)\b", self.text)
        return named.group(1) if named else None


def read(page):
    with open(os.path.join(harness.ROOT, page), encoding="utf-8") as f:
        return f.read()


def blocks(page):
    found = []
    opened = above = marker = None
    for number, line in enumerate(read(page).split("\n"), 1):
        if opened:
            if line.strip() == "```":
                found.append(Block(page, opened[0], opened[1], "".join(opened[2]), marker))
                opened = None
                above = ""
            else:
                opened[2].append(line + "\n")
        elif line.startswith("```"):
            reason = re.fullmatch(r"<!-- not run: (\S.*) -->", above or "")
            marker = reason.group(1) if reason else None
            opened = (number, line[3:], [])
        elif line.startswith("    ") and re.match(OUR_COMMAND, line):
            found.append(Block(page, number, "", line + "\n", None))
        else:
            above = line
    return found


def commands_in(text):
    """Command lines of our programs: (program, words), up to words for another program."""
    for line in text.replace("\\|", "|").split("\n"):
        for part in re.split(r"[|;&]|\$\(| # ", line):
            words = part.split()
            while words and re.fullmatch(r"\w+=\S*", words[0]):
                words = words[1:]
            if words and os.path.basename(words[0]) in PROGRAMS:
                name = os.path.basename(words[0])
                yield name, words[1:words.index("--") if "--" in words else len(words)]


def help_of(name, words):
    """The help texts that apply to a command line, the program's own first."""
    texts = []
    path = []
    for word in [None] + [w for w in words if re.fullmatch(r"[a-z]+", w)]:
        if word:
            listed = texts[-1].partition("Subcommands:\n")[2]
            if not re.search(r"^  %s\b" % word, listed, re.M):
                continue
            path.append(word)
        done = subprocess.run([os.path.join(harness.BIN, name)] + path + ["--help"], check=True,
                              capture_output=True, text=True, timeout=harness.PATIENCE)
        texts.append(done.stdout)
    return texts


class Scene:
    """A private home with a minimal checkout, in which a page's commands are run."""

    def __init__(self, pool):
        self.pool = pool
        self.home = os.path.join(pool.folder, "home")
        self.checkout = os.path.join(self.home, "sublet")
        build = os.path.join(self.checkout, "build")
        os.makedirs(os.path.join(build, "checkpoint-api"))
        os.symlink(harness.BIN, os.path.join(build, "bin"))
        for name in ("checkpoint-api", "docs", "etc", "examples", "idl"):
            os.symlink(os.path.join(harness.ROOT, name), os.path.join(self.checkout, name))

    def make_library(self):
        """libsublet_checkpoint.a as in a release build, also in a sanitized one."""
        sources = glob.glob(os.path.join(harness.ROOT, "checkpoint-api", "*.c"))
        objects = os.path.join(self.pool.folder, "objects")
        os.mkdir(objects)
        subprocess.run(["cc", "-O2", "-c", "-I" + harness.ROOT] + sources, cwd=objects, check=True)
        subprocess.run(["ar", "rc", os.path.join(self.checkout, "build", "checkpoint-api",
                                                 "libsublet_checkpoint.a")] +
                       glob.glob(os.path.join(objects, "*.o")), check=True)

    def play(self, blocks, own_pool):
        """Runs them in one shell. Returns the block that failed and what was printed."""
        script = os.path.join(self.pool.folder, "script")
        with open(script, "w") as f:
            f.write("set -e\n")
            for block in blocks:
                if block.language == "sh":
                    f.write("echo %s >&3\n%s" % (block.place, self.patient(block.text)))
                else:
                    f.write("cat >%s <<'END OF FILE'\n%sEND OF FILE\n" %
                            (block.file_name(), block.text))
            f.write("echo done >&3\n")
        environment = {**self.pool.environment(), "HOME": self.home,
                       "PATH": harness.BIN + ":" + os.environ["PATH"]}
        environment.pop("XDG_STATE_HOME", None)
        if own_pool:
            del environment["SUBLET_SERVER"]
        paths = [os.path.join(self.pool.folder, name) for name in ("output", "progress")]
        with open(paths[0], "w") as output, open(paths[1], "w") as progress:
            shell = subprocess.Popen(["bash", "-c", "exec 3>&%d; . %s" % (progress.fileno(), script)],
                                     cwd=self.checkout, env=environment, stdin=subprocess.DEVNULL,
                                     stdout=output, stderr=output, pass_fds=[progress.fileno()])
            try:
                shell.wait(4 * harness.PATIENCE)
            except subprocess.TimeoutExpired:
                shell.kill()
                shell.wait()
        texts = []
        for path in paths:
            with open(path, errors="replace") as f:
                texts.append(f.read())
        return texts[1].split()[-1], texts[0]

    def logs(self):
        """What the daemons that README.md starts have logged."""
        texts = []
        for path in glob.glob(os.path.join(self.home, "*.log")):
            with open(path, errors="replace") as f:
                texts.append(f.read())
        return "".join(texts)

    @staticmethod
    def patient(text):
        """Inserts a wait after the start of a server, as a typing user would wait. Root's client
        gets a folder of its own: the default is the machine's."""
        if not harness.has_walls():
            text = re.sub(r"(sublet-client .*)(--monitor-control)", r"\1--set weak=true \2", text)
        if os.geteuid() == 0:
            text = re.sub(r"(sublet-client .*)(--monitor-control)", r"\1--state ~/workstation \2",
                          text)
            text = re.sub(r"(bin/sublet owner history)", r"\1 --state ~/workstation", text)
        return re.sub(r"(?m)^(.*sublet-server .*--socket (\S+).* &)$",
                      r"\1\nuntil sublet about --server \2 >/dev/null 2>&1; do :; done", text)


class Docs(unittest.TestCase):
    def test_every_block_says_what_it_is(self):
        for page in PAGES:
            for block in blocks(page):
                self.assertIn(block.language, LANGUAGES,
                              "%s: a block in fences names its language: %s" %
                              (block.place, ", ".join(LANGUAGES)))
                if block.language != "sh":
                    self.assertNotRegex(block.text.split("\n")[0], "^" + OUR_COMMAND, block.place)
        shell = [b for page in PAGES for b in blocks(page) if b.language == "sh"]
        self.assertGreater(sum(b.not_run is None for b in shell), 10)

    def test_commands_run(self):
        for page in PAGES:
            played = [b for b in blocks(page) if not b.not_run and
                      (b.language == "sh" or b.file_name())]
            if not any(b.language == "sh" for b in played):
                continue
            with self.subTest(page), harness.Pool() as pool:
                scene = Scene(pool)
                scene.make_library()
                if page != "README.md":
                    pool.start_server()
                    pool.client("curly", slots=2).start()
                    pool.wait_machines(1)
                last, output = scene.play(played, page == "README.md")
                self.assertEqual(last, "done", output[-4000:] + scene.logs() + pool.all_logs())
                if page == "README.md":
                    self.check_readme(scene, output)

    def check_readme(self, scene, output):
        self.assertIn("hello from " + os.uname().nodename, output)
        for index in range(10):
            with open(os.path.join(scene.checkout, "squares", "square-%d" % index)) as f:
                self.assertEqual(int(f.read()), index * index)
        self.assertEqual(output.count("pi is about 3.1415926"), 2)
        self.check_eviction(output)
        # The daemons run in the background of the user's terminal.
        self.assertNotRegex(output, r"(?m)^\d{4}-\d\d-\d\dT\S+ \w+ (server|client|loadmon): ")
        for daemon in ("server", "client", "loadmon"):
            self.assertIn(" info %s: " % daemon, scene.logs())

    def check_eviction(self, output):
        """The show-piece printed that its job was evicted once, and resumed where it was."""
        told = output[output.rindex("attempt 1 on "):]
        machine = re.escape(os.uname().nodename)
        self.assertRegex(told, r"attempt 1 on %s\nstarting at term 0\n" % machine)
        self.assertRegex(told, r"(?m)^job \d+ pi: waiting .*, used by its owner$")
        self.assertRegex(told, r"(?m)^attempt 1 ended: owner came back")
        self.assertRegex(told, r"attempt 2 on %s\nstarting at term [1-9]\d*\npi is about " % machine)
        self.assertRegex(told, r"(?m)^WHEN .*\n\S+ +\d+\.1 +simulated owner( +\S+ ms){4}$")
        self.assertNotIn("attempt 3", told)

    def test_the_first_example_is_the_listing(self):
        listing = [b for b in blocks("README.md") if b.language == "c"][0]
        self.assertEqual(listing.text, read("examples/pi/pi.c"))

    def test_batch_files_of_the_examples(self):
        """Everything that they name exists."""
        seen = 0
        for path in glob.glob(os.path.join(harness.ROOT, "examples", "*", "*.toml")):
            if os.path.basename(path) == "heat.toml" and \
                    not os.path.exists(os.path.join(harness.BIN, "heat")):
                continue  # no Fortran compiler
            done = subprocess.run([os.path.join(harness.BIN, "sublet"), "submit", "--dry-run", path],
                                  text=True, capture_output=True, timeout=harness.PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)
            seen += 1
        self.assertGreater(seen, 8)

    def test_listing_saves_itself(self):
        """The program of README.md, when asked to leave, resumes where it was."""
        listing = [b for b in blocks("README.md") if b.language == "c"][0]
        self.assertLessEqual(len(listing.text.split("\n")), 25)
        with harness.Pool() as pool:
            scene = Scene(pool)
            scene.make_library()
            with open(os.path.join(scene.checkout, listing.file_name()), "w") as f:
                f.write(listing.text)
            subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-I.", "-o", "pi", "pi.c",
                            "build/checkpoint-api/libsublet_checkpoint.a"], cwd=scene.checkout,
                           check=True)
            whole = subprocess.run(["./pi"], cwd=scene.checkout, check=True, text=True,
                                   capture_output=True).stdout
            environment = {**os.environ, "SUBLET_CHECKPOINT_DIR": scene.home}
            status = os.path.join(scene.home, "status")

            def start():
                with open(status, "wb") as f:
                    f.write(bytes(4096))
                return subprocess.Popen(["./pi"], cwd=scene.checkout, stdout=subprocess.PIPE,
                                        text=True, env={**environment, "SUBLET_STATUS": status})

            def field(layout, offset):
                with open(status, "rb") as f:
                    return struct.unpack_from(layout, f.read(), offset)[0]

            first = start()
            harness.wait_for(lambda: field("I", 8) == 1, "the listing to answer signals")
            first.send_signal(signal.SIGTERM)
            self.assertEqual(first.communicate(timeout=harness.PATIENCE)[0],
                             "starting at term 0\n")
            self.assertEqual((first.returncode, field("I", 12)), (75, 1))
            second = start()
            resumed = second.communicate(timeout=harness.PATIENCE)[0].split("\n", 1)
            self.assertRegex(resumed[0], r"^starting at term [1-9]\d*$")
            self.assertEqual(resumed[1], whole.split("\n", 1)[1])
            self.assertEqual((second.returncode, field("Q", 64)), (0, 1))

    def test_listings_compile(self):
        for page in PAGES:
            for block in blocks(page):
                if block.language == "c":
                    done = subprocess.run(["cc", "-Wall", "-Werror", "-I" + harness.ROOT, "-x", "c",
                                           "-fsyntax-only", "-"], input=block.text, text=True,
                                          capture_output=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), block.place)

    def test_python_listings_run(self):
        environment = {**os.environ, "PYTHONPATH": os.path.join(harness.ROOT, "python"),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        for page in PAGES:
            for block in (b for b in blocks(page) if b.language == "python"):
                with tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run([sys.executable, "-"], input=block.text, text=True,
                                          capture_output=True, cwd=folder, env=environment,
                                          timeout=harness.PATIENCE)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), block.place)
                    self.assertEqual(os.listdir(folder), [], block.place)

    def test_headings_of_samples(self):
        """The columns in samples of output are among those that the command prints."""
        printed = set()
        for folder, _, names in os.walk(os.path.join(harness.ROOT, "cli")):
            for name in names:
                if name.endswith(".cc") and not name.endswith("_test.cc"):
                    printed.update(re.findall(r'"([A-Z][A-Z ]+)"', read(os.path.join(folder, name))))
        seen = 0
        for page in PAGES:
            for block in (b for b in blocks(page) if b.language == "text"):
                for line in block.text.split("\n"):
                    if re.fullmatch(r" *[A-Z]+( +[A-Z]+)+(  …)?", line):
                        self.assertEqual(set(re.split("  +", line.strip(" …"))) - printed, set(),
                                         block.place)
                        seen += 1
        self.assertGreater(seen, 5)

    def test_batch_files(self):
        """Checks each batch file, with files of the names that it uses."""
        seen = 0
        for page in PAGES:
            for block in blocks(page):
                if block.language != "toml":
                    continue
                described = tomllib.loads(block.text)
                if "job" not in described:
                    continue
                with harness.Pool() as pool:
                    path = os.path.join(pool.folder, "batch.toml")
                    with open(path, "w") as f:
                        f.write(block.text)
                    for name in re.findall(r'"\./([^"]+)"|inputs = \["([^"]+)"\]', block.text):
                        file = os.path.join(pool.folder, "".join(name))
                        os.makedirs(os.path.dirname(file), exist_ok=True)
                        open(file, "w").close()
                        os.chmod(file, 0o755)
                    status, out, err = pool.run("submit", "--dry-run", path)
                    self.assertEqual((status, err), (0, ""), block.place)
                    seen += 1
        self.assertGreater(seen, 3)

    def test_options_exist(self):
        """The commands and options of our programs in blocks and in `code` exist."""
        texts = {}
        for page in PAGES:
            spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", read(page)))
            shell = [b.text for b in blocks(page) if b.language == "sh"]
            for name, words in (c for text in spans + shell for c in commands_in(text)):
                first = next((w for w in words if not w.startswith("-")), "")
                key = (name,) + tuple(w for w in words if re.fullmatch(r"[a-z]+", w))
                if key not in texts:
                    texts[key] = help_of(name, words)
                if name == "sublet" and re.fullmatch(r"[a-z]+", first) and words[0] == first:
                    self.assertGreater(len(texts[key]), 1, "%s: sublet %s" % (page, first))
                for word in words:
                    option = re.match(r"--[a-z][a-z-]*", word)
                    if option:
                        self.assertTrue(any(re.search(r"(?m)^  (-.,)?%s\b" % option.group(), text)
                                            for text in texts[key]),
                                        "%s: %s %s has no %s" % (page, name, first, option.group()))
        self.assertGreater(len(texts), 10)

    def test_settings_exist(self):
        """Each `table.key = value` in the text is a setting in a file of etc/; a statement of
        C++ has a semicolon."""
        known = set()
        for path in glob.glob(os.path.join(harness.ROOT, "etc", "*.toml")):
            table = ""
            with open(path) as f:
                for line in f:
                    if head := re.match(r"\[(\w+)\]", line):
                        table = head.group(1) + "."
                    if key := re.match(r"#?(\w+) = ", line):
                        known.add(table + key.group(1))
        seen = 0
        for page in PAGES:
            for setting in re.findall(r"`([a-z_]+\.[a-z_0-9]+) = [^`;]+`", read(page)):
                self.assertIn(setting, known, page)
                seen += 1
        self.assertGreater(seen, 5)

    @staticmethod
    def sources():
        """The programs' sources, below the repository's root, without tests."""
        for folder, below, names in os.walk(harness.ROOT):
            if folder == harness.ROOT:
                below[:] = [name for name in below if name != "build" and name[0] != "."]
            for name in names:
                if name.endswith((".cc", ".h")) and not name.endswith("_test.cc"):
                    yield os.path.relpath(os.path.join(folder, name), harness.ROOT)

    def test_codes_of_errors(self):
        """docs/errors.md lists exactly the error codes in the sources."""
        raised, literals = set(), set()
        for path in self.sources():
            text = read(path)
            literals.update(re.findall(r'"([a-z_]+\.[a-z_]+)"', text))
            if path.startswith("server/"):
                raised.update(re.findall(r'Refusal\b[^;"]{0,80}"([a-z_]+\.[a-z_]+)"', text))
        documented = set()
        for line in read("docs/errors.md").split("\n"):
            codes = re.findall(r"`([a-z_]*\.[a-z_]+)`", line.split("|")[1] if "|" in line else "")
            documented.update(code if code[0] != "." else codes[0].split(".")[0] + code
                              for code in codes)
        self.assertGreater(len(raised), 40)
        self.assertEqual(raised - documented, set())
        self.assertEqual(documented - literals, set())

    def test_what_a_job_cannot_do_is_tested(self):
        """Each line of that table names tests that there are."""
        sources = {}
        for path in [path for folder in ("attempt", "client/shepherd", "client/machine",
                                         "test/security", "test/owner")
                     for path in glob.glob(os.path.join(harness.ROOT, folder, "*_test.*"))]:
            with open(path) as f:
                name = os.path.basename(path).rpartition("_test.")[0]
                sources[name] = sources.get(name, "") + f.read()
        table = read("docs/guide-owner.md").split("| a job | with walls")[1].split("\n\n")[0]
        rows = table.split("\n")[2:]
        self.assertGreater(len(rows), 15)
        for row in rows:
            shown = row.rstrip("| ").rpartition("|")[2]
            self.assertRegex(shown, "`", row)
            for suite, names in re.findall(r"`(\w+)`([^`]*)", shown):
                text = sources.get(suite) or next(
                    (one for one in sources.values() if "class %s " % suite in one), "")
                self.assertNotEqual(text, "", suite)
                for name in re.findall(r"\w+", names):
                    self.assertRegex(text, r"\b%s\(" % name, row)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            folder = os.path.dirname(os.path.join(harness.ROOT, page))
            for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", read(page)):
                if target and "://" not in target:
                    self.assertTrue(os.path.exists(os.path.join(folder, target)),
                                    "%s: %s" % (page, target))

    def picture(self, name):
        """What docs/pictures.py draws now."""
        return subprocess.run([sys.executable, "-B", os.path.join(harness.ROOT, "docs", "pictures.py"),
                               name], check=True, capture_output=True, text=True,
                              timeout=harness.PATIENCE).stdout

    def test_latency_plot(self):
        drawn = self.picture("latency")
        self.assertTrue(read("docs/latency.svg") == drawn,
                        "stale; made anew by: python3 docs/pictures.py latency > docs/latency.svg")
        for what in ("evicted → running on another idle machine", "submit → running"):
            self.assertIn(what, drawn)
        xml.etree.ElementTree.fromstring(drawn)

    def test_picture_of_top(self):
        """The picture in README.md has the headings that `sublet top` has today."""
        texts = {}
        for which, svg in (("kept", read("docs/top.svg")), ("now", self.picture("top"))):
            texts[which] = ["".join(element.itertext()) for element in
                            xml.etree.ElementTree.fromstring(svg).iter() if element.tag[-4:] == "text"]
            self.assertTrue(any(re.search(r"waiting +1 +owner came back", t) for t in texts[which]))
        headings = [[text.split() for text in texts[which] if re.match("(NAME|USER|AGO) ", text)]
                    for which in ("kept", "now")]
        self.assertEqual(len(headings[0]), 3)
        self.assertEqual(headings[0], headings[1],
                         "stale; made anew by: python3 docs/pictures.py top > docs/top.svg")

    def test_reference_of_the_contract(self):
        done = subprocess.run([sys.executable, os.path.join(harness.ROOT, "docs",
                                                            "idl_reference.py")],
                              check=True, capture_output=True, text=True)
        self.assertTrue(read("docs/idl.md") == done.stdout,
                        "stale; made anew by: python3 docs/idl_reference.py > docs/idl.md")


if __name__ == "__main__":
    unittest.main()

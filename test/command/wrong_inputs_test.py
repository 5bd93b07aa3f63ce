"""Wrong command lines and batch files: each is answered by one sentence that says what is
wrong, mostly what to do, and by the exit status of its kind (docs/command.md). Nothing is
submitted."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

USAGE, INVALID, NOT_FOUND, NOT_PERMITTED, CONFLICT, UNAVAILABLE = 2, 3, 4, 5, 6, 8

IDS = "; write ids as 17, 17-20 or 17,19"
RUN = ("sublet: nothing to run; write `sublet submit FILE.toml` or `sublet submit -- PROGRAM "
       "ARGS`")
WHICH = "sublet: which jobs?; give ids such as 17-20, or --batch 7"
WHICH_OR_MINE = "sublet: which jobs?; give ids such as 17-20, --batch 7, or --mine for all your own"
DURATION = " is not a duration above 0; write it as 30 or \"2 min\""
TIME = (" is neither a time nor a duration; write 2026-11-20, \"2026-11-20 14:00\" (UTC), or how "
        "long ago: \"7 d\"")



def parser(command, what):
    """What is said of a line that the command's syntax does not allow."""
    command = "sublet" + (command and " " + command)
    return '%s: %s\nTry "%s --help".' % (command, what, command)


# Arguments, exit status, and what is said.
COMMAND_LINES = [
    ("", USAGE, parser("", "a command is missing")),
    ("submitt", USAGE, parser("", 'unknown command "submitt"; did you mean "submit"?')),
    ("--jsn ls", USAGE, parser("ls", 'unknown option "--jsn"; did you mean "--json"?')),
    ("--timeout 0 ls", USAGE, "sublet: --timeout: '0'" + DURATION),
    ("--timeout x ls", USAGE, "sublet: --timeout: 'x'" + DURATION),
    ("--server /nowhere/s.sock ls", UNAVAILABLE,
     "sublet: no server at /nowhere/s.sock (from --server): no such socket; start sublet-server "
     "there, or name another socket with --server or $SUBLET_SERVER"),
    ("--server http://x ls", USAGE,
     "sublet: 'http://x' is not the path of a socket that can be called (from --server); write "
     "--server /PATH/OF/SOCKET, without ':' or ',', or tls://HOST:PORT"),
    ("--server tls://nowhere ls", USAGE,
     "sublet: 'tls://nowhere' is not an address; write it as tls://HOST:PORT"),
    ("--server tls://127.0.0.1:1 ls", NOT_PERMITTED,
     "sublet: you are not a member of the pool at tls://127.0.0.1:1; ask its administrator for a "
     "token, then run `sublet join TOKEN`"),
    ("ls 7", USAGE, parser("ls", 'unexpected argument "7"')),
    ("ls --limit -1", USAGE,
     "sublet: --limit must not be negative; give a number, or 0 for no limit"),
    ("ls --limit x", USAGE, parser("ls", '--limit: "x" is not a whole number, or too large')),
    ("ls --state runing", USAGE, "sublet: 'runing' is not a job state; did you mean running?"),
    ("ls --sort colour", USAGE,
     "sublet: --sort: 'colour' is unknown; one of id, submitted, changed, name, user, state, "
     "machine, cpu, lost, evictions"),
    ("ls --since once", USAGE, "sublet: --since: 'once'" + TIME),
    ("ls --name", USAGE, parser("ls", "--name: 1 required PATTERN missing")),
    ("ls --name [bad", USAGE, "sublet: --name: '[bad': a [ has no ] after it; write a backslash "
     "before a character that stands for itself"),
    ("ls --batch 99", NOT_FOUND, "sublet: there is no batch 99; see `sublet ls --all`"),
    ("ls --batch x", USAGE, "sublet: 'x' is not a batch id; write a whole number, 1 or more"),
    ("show", USAGE, WHICH),
    ("show 0", USAGE, "sublet: '0' is not a job id" + IDS),
    ("show 3-1", USAGE, "sublet: '3-1' is not a job id" + IDS),
    ("show 1-99999999999999999999", USAGE,
     "sublet: '1-99999999999999999999' is not a job id" + IDS),
    ("show 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("why 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("logs", USAGE, parser("logs", "JOB is required")),
    ("logs --batch 99", USAGE, parser("logs", 'unknown option "--batch"')),
    ("logs 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("logs 1 --attempt 7", NOT_FOUND,
     "sublet: there is no attempt 7 of job 1; see `sublet show 1`"),
    ("logs 1 --attempt x", USAGE,
     parser("logs", '--attempt: "x" is not a whole number, or too large')),
    ("wait", USAGE, WHICH),
    ("wait 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("wait 1 --timeout 5x", USAGE, "sublet: --timeout: '5x'" + DURATION),
    ("fetch", USAGE, WHICH),
    ("fetch 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("hold", USAGE, WHICH_OR_MINE),
    ("hold 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("release 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("priority", USAGE, parser("priority", "PRIORITY is required")),
    ("priority 5", USAGE, WHICH_OR_MINE),
    ("priority 17-20 5", USAGE, "sublet: '17-20' is not a priority from -1000000 to 1000000; write "
     "it before the jobs: `sublet priority 10 17-20`"),
    ("priority -1000001 1", USAGE, "sublet: '-1000001' is not a priority from -1000000 to 1000000; "
     "write it before the jobs: `sublet priority 10 17-20`"),
    ("priority -5 99", NOT_FOUND, "sublet: there is no job 99; see `sublet ls --all`"),
    ("rm", USAGE, WHICH_OR_MINE),
    ("rm all", USAGE, "sublet: 'all' is not a job id" + IDS),
    ("rm --batch 99", NOT_FOUND, "sublet: there is no batch 99; see `sublet ls --all`"),
    ("machines moe", NOT_FOUND, "sublet: there is no machine 'moe'; see `sublet machines`"),
    ("top --interval 1", USAGE, parser("top", 'unknown option "--interval"')),
    ("report --since once", USAGE, "sublet: --since: 'once'" + TIME),
    ("report --by colour", USAGE,
     "sublet: --by: 'colour' is unknown; one of user, machine, batch, day, week, job"),
    ("report --since 2021-01-01 --until 2020-01-01", USAGE,
     "sublet: --until is not after --since; give the earlier time to --since"),
    ("join nonsense", USAGE, "sublet: this is not a join token; an administrator creates one with "
     "`sublet admin invite NAME --user`"),
    ("admin", USAGE, parser("admin", "a command is missing")),
    ("admin nonsense", USAGE, parser("admin", 'unknown command "nonsense"')),
    ("admin drain", USAGE, parser("admin drain", "MACHINE is required")),
    ("admin drain curley", NOT_FOUND, "sublet: there is no machine 'curley'; did you mean 'curly'?"),
    ("admin evict nosuch", NOT_FOUND, "sublet: there is no machine 'nosuch'; see `sublet machines`"),
    ("admin policy nearest", INVALID, 'sublet: setting "scheduling.jobs=nearest": "scheduling.jobs" '
     'must be one of "fair-share" "fair-share-1998" "up-down" "fifo" "round-robin" "random" "umol"; '
     "nothing was changed"),
    ("admin policy --set lease=60", INVALID, "sublet: `lease` cannot be changed while the server "
     "runs; what can: jobs, machines, victims, candidates, half_life, floor, cost, "
     "initial_priority, turns, charge, drift, throttle, wide_wait, licences, "
     "most_per_user, most_per_machine; the others are set in server.toml, for the next start of the server"),
    ("admin policy --set floor", USAGE, "sublet: --set: 'floor' has no =; write it as NAME=VALUE, "
     "such as floor=0.25; `sublet admin policy` lists the names"),
    ("admin policy fifo --reset", USAGE, "sublet: --reset cannot be used with a policy or --set; "
     "reset first, then change what is to be different"),
    ("admin shares ann none", USAGE, "sublet: 'none' is not a number of shares from 0.000001 to "
     "1000000; write a number such as 3 or 0.5, or `default` for what the settings say"),
    ("admin shares ann 0", USAGE, "sublet: '0' is not a number of shares from 0.000001 to "
     "1000000; write a number such as 3 or 0.5, or `default` for what the settings say"),
    ("admin quota ann much", USAGE, "sublet: 'much' is not a size of at most 1 PiB; write it as "
     "10GiB or \"500 MiB\", or `default` for what the settings say"),
    ("owner", USAGE, parser("owner", "a command is missing")),
    ("owner pause soon", USAGE, "sublet: 'soon' is not a duration above 0 and up to 366 d; write it "
     "as 2h or \"30 min\", or leave it out to pause until `sublet owner resume`"),
    ("owner status --state /nowhere", UNAVAILABLE,
     "sublet: no load monitor answers in /nowhere (No such file or directory); start "
     "sublet-client; if it has another state folder, name that with --state"),
    ("completion tcsh", USAGE,
     "sublet: 'tcsh' is not a supported shell; one of bash, fish, zsh"),
    ("submit", USAGE, RUN),
    ("submit --", USAGE, RUN),
    ("submit true", USAGE, "sublet: 'true' is not a batch file (FILE.toml); to run a program, put "
     "-- before it: `sublet submit -- PROGRAM ARGS`"),
    ("submit none.toml", INVALID, "sublet: cannot open none.toml: No such file or directory"),
    ("submit one.toml two.toml", USAGE, parser("submit", 'unexpected argument "two.toml"; a '
                                               'program and its arguments follow after "--"')),
    ("submit echo hello", USAGE, parser("submit", 'unexpected argument "hello"; a program and its '
                                        'arguments follow after "--"')),
    ("submit --count 3 one.toml", USAGE,
     "sublet: job options cannot be used with a batch file; write them into one.toml"),
    ("submit -- ./none", INVALID,
     "sublet: the input file ./none does not exist; nothing was submitted"),
    ("submit -- /etc", INVALID, "sublet: the input /etc is not an ordinary file; send a folder's "
     "files one by one or as an archive"),
    ("submit --input none -- true", INVALID,
     "sublet: the input file none does not exist; nothing was submitted"),
    ("submit --stdin none -- true", INVALID,
     "sublet: the input file none does not exist; nothing was submitted"),
    ("submit --output ../x -- true", USAGE, "sublet: --output: output name '../x': '..' leaves "
     "the job's folder; see `sublet submit --help`"),
    ("submit --output /x -- true", USAGE, "sublet: --output: output name '/x': an absolute name "
     "leaves the job's folder; see `sublet submit --help`"),
    ("submit --output stdout -- true", USAGE, "sublet: --output: output name 'stdout': this is "
     "the name of a stream of the job, which is always kept; see `sublet submit --help`"),
    ("submit --output a --output a -- true", USAGE,
     "sublet: --output: two outputs are called 'a'; see `sublet submit --help`"),
    ("submit --env NONE_SUCH -- true", USAGE,
     "sublet: --env: 'NONE_SUCH' is not set; give a value: --env NONE_SUCH="),
    ("submit --env =x -- true", USAGE, "sublet: --env: an environment variable needs a name; see "
     "`sublet submit --help`"),
    ("submit --memory lots -- true", USAGE,
     "sublet: --memory: 'lots' is not a size above 0 and below 9000 TB; write it as \"2 GiB\" or "
     "500MiB"),
    ("submit --disk 9999TiB -- true", USAGE,
     "sublet: --disk: '9999TiB' is not a size above 0 and below 9000 TB; write it as \"2 GiB\" or "
     "500MiB"),
    ("submit --disk 1EiB -- true", USAGE,
     "sublet: --disk: '1EiB' is not a size above 0 and below 9000 TB; write it as \"2 GiB\" or "
     "500MiB"),
    ("submit --cores 0 -- true", USAGE, "sublet: --cores must be between 1 and 100000"),
    ("submit --processes-limit 0 -- true", USAGE,
     "sublet: --processes-limit must be between 1 and 100000"),
    ("submit --cores x -- true", USAGE,
     parser("submit", '--cores: "x" is not a whole number, or too large')),
    ("submit --os plan9 -- true", CONFLICT,
     "sublet: job 'true' could never run in this pool: no machine runs plan9; ask for less, or say "
     "--even-so (even_so = true) to wait for such a machine"),
    ("submit --cpu-limit 3y -- true", USAGE,
     "sublet: --cpu-limit: '3y' is not a duration above 0; write it as 90, 2h or \"1 h 30 min\""),
    ("submit --retries 1001 -- true", USAGE, "sublet: --retries must be between 0 and 1000"),
    ("submit --save-deadline 20min -- true", USAGE,
     "sublet: --save-deadline may be at most 10 min; save less data, or more often"),
    ("submit --count 0 -- true", USAGE, "sublet: --count must be between 1 and 1000000"),
    ("submit --into out -- true", USAGE, "sublet: --into and --by-job need --wait; `sublet fetch "
     "--into FOLDER` fetches outputs later"),
    ("submit --wait --into /proc/x -- true", INVALID,
     "sublet: cannot make the folder /proc/x: No such file or directory; nothing was submitted"),
    ("submit --each -- true", INVALID, "sublet: standard input has no lines; write one item per "
     "line: `seq 100 | sublet submit --each -- ./prog {}`"),
]

JOB = "[[job]]\nprogram = 'true'\n"
# A batch file, and what is said of it after its name.
BATCH_FILES = [
    ("", ":1:1: no [[job]] in the batch file"),
    ("[[job]\n", ":1:7: the header of a table is not closed; write [NAME] or [[NAME]]"),
    ("[[job]]\nprogram = true.sh\n", ":2:15: 'true.sh' is not a value; write true or false, or "
     "put a string in quotes"),
    ("[[job]]\nprogram = ./x\n", ":2:11: './x' is not a number; a string needs quotes"),
    ("[[job]]\nprogram = 'x\ncount = 2\n", ":2:13: the closing quote of a string is missing"),
    (JOB + "save_deadline = 5 min\n",
     ":3:19: 'min' follows a value; begin a new line, or put a string in quotes"),
    (JOB + "arguments = [1, 2\ncount = 2\n", ":4:1: ',' or ']' is missing before 'count' in a list"),
    ("[job]\nprogram = 'true'\n",
     ":1:1: write [[job]] instead of [job]: a batch has a list of jobs"),
    ("program = 'true'\n",
     ":1:1: unknown key 'program' in the batch file; known are batch, defaults, job"),
    ("[[job]]\nname = 'x'\n", ":1:1: a job needs a program"),
    (JOB + "argumnts = ['x']\n",
     ":3:1: unknown key 'argumnts' in [[job]]; did you mean 'arguments'?"),
    ("[batch]\nnmae = 'x'\n" + JOB,
     ":2:1: unknown key 'nmae' in [batch]; did you mean 'name'?"),
    (JOB + "arguments = 'x'\n", ":3:13: arguments must be a list, not a string"),
    (JOB + "program = 'false'\n", ":3:11: 'program' is defined twice"),
    (JOB + "needs = { memory = '2 GX' }\n",
     ":3:20: memory must be a size such as \"2 GiB\" or \"500 MiB\", above 0 and below 9000 TB"),
    (JOB + "needs = { colour = 'red' }\n", ":3:11: unknown key 'colour' in needs; known are os, "
     "architecture, cores, memory, disk, require, prefer, resources"),
    (JOB + "needs = { resources = { gpu = 0 } }\n",
     ":3:31: gpu must be between 1 and 1000000"),
    (JOB + "needs = { resources = { GPU = 1 } }\n",
     ":3:23: resources: 'GPU' is not a name: it must begin with a letter a to z, and have at most "
     "32 of a to z, 0 to 9, _ and -"),
    (JOB + "arguments = ['{ratte}']\nparameters.rate = [1, 2]\n",
     ":3:14: there is no parameter {ratte}; did you mean {rate}?"),
    (JOB + "parameters.rate = []\n", ":3:19: the values of 'rate' must be a list such as [1, 2] "
     "or a range { from = 1, to = 100 }"),
    (JOB + "table = 'none.csv'\n", ":3:9: cannot open none.csv: No such file or directory"),
    (JOB + "outputs = ['a', 'a']\n", ":3:17: two outputs are called 'a'"),
    (JOB + "inputs = ['none']\n", ":3:11: the input file none does not exist"),
    (JOB + "inputs = [{ file = 'one.toml', name = '../x' }]\n",
     ":3:11: input name '../x': '..' leaves the job's folder"),
    (JOB + "environment = { 'A=B' = 'x' }\n",
     ":3:25: 'A=B' is not a name of an environment variable"),
    (JOB + "count = -3\n", ":3:9: count must be between 1 and 1000000"),
    (JOB + "retries = 1.5\n", ":3:11: retries must be a whole number, not a number with a point"),
    (JOB + "retries = 2020-01-01\n",
     ":3:11: retries must be a whole number, not a date or time"),
    (JOB + "priority = 99999999999\n", ":3:12: priority must be between -1000000 and 1000000"),
    (JOB + "save_deadline = '20 min'\n", ":3:17: save_deadline may be at most 10 min"),
    ("[[job]]\nprogram = { linux = './x' }\n", ":2:21: 'linux' is not a platform such as "
     "\"linux/x86_64\": what `uname -s`, in lower case, and `uname -m` print"),
    ("[batch]\nstop_when = { output = 'key' }\n" + JOB,
     ":2:24: no job describes an output 'key'"),
    ("[batch]\nstop_when = { done = 5 }\n" + JOB, ":2:22: the batch has only 1 job"),
    (b"[[job]]\nprogram = 'tr\xfce'\n", ":2:13: the text is not UTF-8"),
    (b"[[job]]\nprogram = 'tr\0ue'\n", ":2:14: a control character stands in a string; write "
     "it as an escape in \"...\""),
]


class WrongInputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = harness.pool_of_class(cls)
        cls.job = cls.pool.submit("--", "true")[0]
        cls.pool.wait_state(cls.job, "done")
        for name in ("one.toml", "two.toml"):
            with open(os.path.join(cls.pool.folder, name), "w") as f:
                f.write(JOB)

    def run_command(self, *words):
        done = subprocess.run([os.path.join(harness.BIN, "sublet"), *words], text=True,
                              cwd=self.pool.folder, env=self.pool.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=harness.PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def test_command_lines(self):
        for line, status, said in COMMAND_LINES:
            with self.subTest(line):
                self.assertEqual(self.run_command(*line.split()), (status, "", said + "\n"))

    def test_batch_files(self):
        wrong = os.path.join(self.pool.folder, "wrong.toml")
        for text, said in BATCH_FILES:
            with self.subTest(text):
                with open(wrong, "wb") as f:
                    f.write(text if isinstance(text, bytes) else text.encode())
                self.assertEqual(self.run_command("submit", "wrong.toml"),
                                 (INVALID, "", "sublet: wrong.toml%s; nothing was submitted\n" %
                                  said))

    def tearDown(self):
        # Nothing has been submitted.
        self.assertEqual([one["id"] for one in self.pool.sublet("ls", "--all")["jobs"]],
                         [self.job])


if __name__ == "__main__":
    unittest.main()

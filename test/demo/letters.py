"""The first pool of ./demo: eight training jobs and a search for a key on four
workstations, owners who come back, a server and a client that are killed."""

import os
import random
import shutil
import subprocess
import time

import source
import tables as demo_tables
import harness

EPOCHS = list(source.T4_1)
MACHINES = ["larry", "curly", "moe", "shemp"]
PROGRAM = os.path.join(harness.BIN, "back-propagation")
DATA = os.path.join(harness.ROOT, "examples", "back-propagation", "letter-recognition.data")
SEED = "1"

BATCH_HEAD = """[defaults]
program = "%s"
inputs = ["letter-recognition.data"]
"""
BATCH_JOB = """
[[job]]
name = "epochs-%(e)d"
arguments = ["--data", "letter-recognition.data", "--epochs", "%(e)d", "--weights", "weights.bin", "--seed", "%(s)s"]
outputs = ["weights.bin"]
"""

# A search for the 40-bit key of RSA's practice contest: part 8 of 16 has it.
CODE_BREAKING = os.path.join(harness.BIN, "code-breaking")
KEY = 0x27d86dd243
KEYS_PER_PART = 1 << 26
PARTS = 16
CODE_BATCH = """[batch]
stop_when = { output = "key.txt" }

[[job]]
program = "%(program)s"
arguments = [
  "--plaintext", "54686520756e6b6e6f776e206d6573736167652069733a20",
  "--ciphertext", "b40a5388b13882ad930da8b61e51a3b1ffaee1d814a5fa15400b663d58138a33",
  "--iv", "f675171a59b7ead0", "--first-key", "%(first)010x", "--last-key", "%(last)010x",
  "--part", "{part}", "--of", "%(parts)d", "--found", "key.txt"]
parameters = { part = { from = 0, to = %(to)d } }
outputs = [{ name = "key.txt", required = false }]
"""


def undisturbed(folder, screen):
    """Runs every job once without a pool, two at a time; returns their outputs."""
    results = []
    for i in range(0, len(EPOCHS), 2):
        screen.progress("training undisturbed, for comparison: %d of %d" % (i, len(EPOCHS)))
        running = []
        for epochs in EPOCHS[i:i + 2]:
            weights = os.path.join(folder, "alone-%d.bin" % epochs)
            running.append((weights, subprocess.Popen(
                [PROGRAM, "--data", DATA, "--epochs", "%d" % epochs, "--weights", weights,
                 "--seed", SEED], stdout=subprocess.PIPE, text=True)))
        for weights, process in running:
            out, _ = process.communicate()
            if process.returncode != 0:
                raise SystemExit("demo: an undisturbed run failed")
            with open(weights, "rb") as f:
                results.append((out, f.read()))
    return results


class Owners:
    """Scripted owners: each comes back to a machine whose job has worked for a
    while, and leaves again soon after the job has left. A job is interrupted as
    often as planned and then no more, so that the demonstration ends."""

    STAY_S = 0.3

    def __init__(self, pool, plan, seed):
        """`plan`: job -> (interruptions, seconds between them)."""
        self.pool = pool
        self.plan = plan
        self.random = random.Random(seed)
        self.working_since = {}
        self.here_until = {}
        self.returns = 0

    def patience(self, attempt):
        """Seconds that this attempt may run; None: no limit."""
        job, number = map(int, attempt.split("."))
        interruptions, pause = self.plan.get(job, (0, 0))
        return pause * self.random.uniform(0.6, 1.1) if number <= interruptions else None

    def step(self):
        now = time.monotonic()
        for name, client in self.pool.clients.items():
            attempt = client.running()
            if name in self.here_until:
                if now >= self.here_until[name] and not attempt:
                    client.owner("away")
                    del self.here_until[name]
                continue
            since = self.working_since.get(name)
            if not attempt:
                self.working_since.pop(name, None)
            elif not since or since[0] != attempt:
                self.working_since[name] = (attempt, now, self.patience(attempt))
            elif since[2] is not None and now - since[1] > since[2]:
                client.owner("active")
                self.returns += 1
                self.working_since.pop(name)
                self.here_until[name] = now + self.STAY_S

    def leave(self):
        for client in self.pool.clients.values():
            client.owner("away")


def write_batches(folder):
    shutil.copy(DATA, folder)
    batch = os.path.join(folder, "letters.toml")
    with open(batch, "w") as f:
        f.write(BATCH_HEAD % PROGRAM)
        for epochs in EPOCHS:
            f.write(BATCH_JOB % {"e": epochs, "s": SEED})
    code = os.path.join(folder, "code-breaking.toml")
    first = KEY - 8 * KEYS_PER_PART - KEYS_PER_PART // 3
    with open(code, "w") as f:
        f.write(CODE_BATCH % {"program": CODE_BREAKING, "first": first, "parts": PARTS,
                              "last": first + PARTS * KEYS_PER_PART - 1, "to": PARTS - 1})
    return batch, code


def run(pool, screen, seconds_an_epoch):
    """Returns the training jobs as in `sublet show --json`, the search's batch id, and
    the folder with the results. Each job is interrupted as often as in the source, if
    it runs long enough."""
    folder = os.path.join(pool.folder, "desk")
    os.makedirs(folder)
    batch, code = write_batches(folder)
    pool.start_server()
    for name in MACHINES:
        pool.client(name).start()
    pool.wait_machines(len(MACHINES))
    jobs = pool.submit(batch)
    searched = pool.sublet("submit", code)
    parts = range(searched["jobs"]["first"], searched["jobs"]["first"] + PARTS)
    screen.say("%d training jobs and a search for a key in %d parts submitted to %d machines; "
               "their owners come and go" % (len(jobs), PARTS, len(MACHINES)))
    plan = {part: (1, 0.3) for part in parts}
    for job, epochs in zip(jobs, EPOCHS):
        times = source.T4_3[epochs].interruptions
        # A job gets half a core here, and most of one when others have ended.
        plan[job] = (times, max(0.25, 1.5 * epochs * seconds_an_epoch / (times + 1)))
    disturb(pool, screen, Owners(pool, plan, seed=7), len(jobs) + PARTS)
    pool.run("fetch", "%d-%d" % (jobs[0], jobs[-1]), "--into", folder, "--by-job",
             deadline=harness.PATIENCE)
    pool.run("fetch", "--batch", searched["batch"], "--into", folder,
             deadline=harness.PATIENCE)
    return [pool.job(job) for job in jobs], searched["batch"], folder


def disturb(pool, screen, owners, total):
    """Simulates owners, and kills the server and a client once, until all jobs are done."""
    started = time.monotonic()
    server_killed = client_killed = False
    asked = 0
    while True:
        owners.step()
        time.sleep(0.01)
        now = time.monotonic()
        if not server_killed and owners.returns >= 8:
            screen.say("  the server is killed (SIGKILL)")
            pool.kill_server()
            server_killed = True
        if server_killed and not client_killed and owners.returns >= 14:
            client = next((c for c in pool.clients.values() if c.running()), None)
            if client:
                screen.say("  the client of %s is killed (SIGKILL) and started again" %
                           client.name)
                client.kill()
                client.start()
                client_killed = True
        if now - asked < 0.5:
            continue
        asked = now
        try:
            states = pool.sublet("ls", "--all")["jobs"]
        except harness.Failed:
            continue  # the server is restarting
        done = sum(s["state"] in ("done", "failed", "removed") for s in states)
        screen.progress("  %3.0f s: %d of %d done, %d evictions" % (
            now - started, done, total, sum(s["evictions"] for s in states)))
        if done == total:
            break
        if now - started > 900:
            raise SystemExit("demo: not done after 15 minutes\n" + pool.all_logs())
    owners.leave()
    if not server_killed or not client_killed:
        raise SystemExit("demo: the jobs were done before server and client could be killed")


def results_of(job, folder):
    """stdout and weights as fetched into the user's folder."""
    own = os.path.join(folder, str(job["id"]))
    out = weights = None
    for name in os.listdir(own) if os.path.isdir(own) else []:
        with open(os.path.join(own, name), "rb") as f:
            contents = f.read()
        if name.endswith(".out"):
            out = contents.decode()
        elif name == "weights.bin":
            weights = contents
    return out, weights


def trainings(alone, details, folder):
    return [demo_tables.Training(epochs, alone[i], results_of(details[i], folder),
                                 details[i]["attempt_list"])
            for i, epochs in enumerate(EPOCHS)]


def found_key(folder):
    """The key in the submitting folder, or None."""
    try:
        with open(os.path.join(folder, "key.txt")) as f:
            return f.read().strip()
    except FileNotFoundError:
        return None

"""The demonstration behind ./demo: see its head. Exit status 0 only when every
result is identical, at least 20 jobs were evicted in mid-work and none lost, and
the array beside them has found its key."""

import os
import random
import re
import shutil
import subprocess
import sys
import time

import harness

EPOCHS = [7, 8, 10, 12, 18, 20, 22, 24]
FAST_EPOCHS = [7, 7, 8, 8, 9, 9, 10, 10]
WANTED_EVICTIONS = 20
MACHINES = ["larry", "curly", "moe", "shemp"]
PROGRAM = os.path.join(harness.BIN, "back-propagation")
DATA = os.path.join(harness.ROOT, "examples", "back-propagation", "letter-recognition.data")

BATCH_HEAD = """[defaults]
program = "%s"
inputs = ["letter-recognition.data"]
"""
BATCH_JOB = """
[[job]]
name = "epochs-%(e)d-%(i)d"
arguments = ["--data", "letter-recognition.data", "--epochs", "%(e)d", "--weights", "weights.bin", "--seed", "%(s)d"]
outputs = ["weights.bin"]
"""

# A search for the key of RSA's practice contest with 40 bits: part 8 of 16 has it.
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


def say(text):
    print(text, flush=True)


def seed_of(index):
    return 1 + index


def undisturbed(epochs, folder):
    """Runs every job once without a pool, two at a time; returns their outputs."""
    results = []
    running = []
    for index, count in enumerate(epochs):
        weights = os.path.join(folder, "alone-%d.bin" % index)
        process = subprocess.Popen([PROGRAM, "--data", DATA, "--epochs", str(count), "--weights",
                                    weights, "--seed", str(seed_of(index))],
                                   stdout=subprocess.PIPE, text=True)
        running.append((process, weights))
        if len(running) == 2 or index == len(epochs) - 1:
            for process, weights in running:
                out, _ = process.communicate()
                if process.returncode != 0:
                    raise SystemExit("demo: an undisturbed run failed")
                with open(weights, "rb") as f:
                    results.append((out, f.read()))
            running = []
    return results


class Owners:
    """Scripted owners: each comes back to a machine whose job has worked for a
    while, and leaves again a moment after it has gone. A job that was disturbed
    often enough is left in peace, so that the demonstration ends."""

    PER_JOB = 5

    def __init__(self, pool, seed, pause):
        self.pool = pool
        self.random = random.Random(seed)
        self.pause = pause
        self.working_since = {}
        self.here_until = {}
        self.returns = 0

    def attempt(self, client):
        """The attempt whose program runs on this machine, like 7.2, or None."""
        for attempt in client.attempts():
            folder = os.path.join(client.state, "attempts", attempt)
            if os.path.exists(folder + "/record") and not os.path.exists(folder + "/exit"):
                return attempt
        return None

    def step(self):
        now = time.monotonic()
        for name, client in self.pool.clients.items():
            attempt = self.attempt(client)
            if name in self.here_until:
                if now >= self.here_until[name] and not attempt:
                    client.owner("away")
                    del self.here_until[name]
                continue
            since = self.working_since.get(name)
            if not attempt or int(attempt.split(".")[1]) > self.PER_JOB:
                self.working_since.pop(name, None)
            elif not since or since[0] != attempt:
                patience = self.pause * self.random.uniform(0.7, 1.5)
                self.working_since[name] = (attempt, now, patience)
            elif now - since[1] > since[2]:
                client.owner("active")
                self.returns += 1
                self.working_since.pop(name)
                self.here_until[name] = now + 0.3

    def leave(self):
        for client in self.pool.clients.values():
            client.owner("away")


def run_pool(pool, epochs, pause):
    folder = os.path.join(pool.folder, "desk")
    os.makedirs(folder)
    shutil.copy(DATA, folder)
    batch = os.path.join(folder, "letters.toml")
    with open(batch, "w") as f:
        f.write(BATCH_HEAD % PROGRAM)
        for index, count in enumerate(epochs):
            f.write(BATCH_JOB % {"e": count, "i": index, "s": seed_of(index)})
    code = os.path.join(folder, "code-breaking.toml")
    first = KEY - 8 * KEYS_PER_PART - KEYS_PER_PART // 3
    with open(code, "w") as f:
        f.write(CODE_BATCH % {"program": CODE_BREAKING, "first": first, "parts": PARTS,
                              "last": first + PARTS * KEYS_PER_PART - 1, "to": PARTS - 1})
    pool.start_server()
    for name in MACHINES:
        pool.client(name).start()
    pool.wait_machines(len(MACHINES))
    jobs = pool.submit(batch)
    search = pool.sublet("submit", code)
    say("%d jobs and a search for a key in %d parts submitted to %d machines; their owners come "
        "and go" % (len(jobs), PARTS, len(MACHINES)))
    disturb(pool, len(jobs) + PARTS, pause)
    pool.run("fetch", "%d-%d" % (jobs[0], jobs[-1]), "--into", folder, "--by-job",
             deadline=60)
    pool.run("fetch", "--batch", search["batch"], "--into", folder, deadline=60)
    return [pool.job(job) for job in jobs], search["batch"], folder


def disturb(pool, total, pause):
    """Plays owners, kills the server and a client once, until all is done."""
    owners = Owners(pool, 7, pause)
    started = time.monotonic()
    server_killed = client_killed = False
    told = 0
    while True:
        owners.step()
        time.sleep(0.01)
        now = time.monotonic()
        if not server_killed and owners.returns >= 8:
            say("  the server is killed (SIGKILL)")
            pool.kill_server()
            server_killed = True
        if server_killed and not client_killed and owners.returns >= 14:
            client = next((c for c in pool.clients.values() if owners.attempt(c)), None)
            if client:
                say("  the client of %s is killed (SIGKILL) and started again" % client.name)
                client.kill()
                client.start()
                client_killed = True
        if now - told < 1:
            continue
        told = now
        states = summary(pool)
        if states is None:
            continue
        done = sum(s["state"] in ("done", "failed", "removed") for s in states)
        evictions = sum(s["evictions"] for s in states)
        say("  %4.0f s: %d of %d done, %d evictions" % (now - started, done, total, evictions))
        if done == total:
            break
        if now - started > 900:
            raise SystemExit("demo: not done after 15 minutes\n" + pool.all_logs())
    owners.leave()
    if not server_killed or not client_killed:
        raise SystemExit("demo: the jobs were done before server and client could be killed")


def summary(pool):
    try:
        return pool.sublet("ls", "--all")["jobs"]
    except harness.Failed:
        return None  # the server is on its way back


def results_of(job, folder):
    """stdout and weights that the user's own process has fetched."""
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


def correctness(out):
    return "/".join(re.findall(r"correctness (\d\.\d{3})", out or "")) or "-"


def mid_work(attempts):
    """Evictions after which the next attempt started from a checkpoint between
    0 and 100 %."""
    evicted = [i for i, a in enumerate(attempts[:-1]) if a["ended"] == "owner came back"]
    return sum(0 < attempts[i + 1]["resumed_ppm"] < 1000000 for i in evicted)


def report(epochs, alone, details, folder):
    say("")
    say("%-8s %-12s %-12s %-9s %13s %11s  %s" %
        ("epochs", "alone", "in the pool", "identical", "interruptions", "checkpoint", "quiesce ms"))
    identical = evictions = lost = 0
    for index, job in enumerate(details):
        out, weights = results_of(job, folder)
        same = out == alone[index][0] and weights == alone[index][1]
        attempts = job["attempt_list"]
        count = mid_work(attempts)
        identical += same
        evictions += count
        lost += job["state"] != "done"
        quiesce = [a["quiesce_us"] / 1000 for a in attempts if a["quiesce_us"] >= 0]
        size = max([a["checkpoint_bytes"] for a in attempts] or [0])
        say("%-8d %-12s %-12s %-9s %13d %9d B  %s" %
            (epochs[index], correctness(alone[index][0]), correctness(out),
             "yes" if same else "NO", count, size, " ".join("%.0f" % q for q in quiesce)))
    say("")
    return identical, evictions, lost


def report_search(pool, batch, folder):
    """Whether the key has arrived in the submitting folder, and is right."""
    try:
        with open(os.path.join(folder, "key.txt")) as f:
            key = f.read().strip()
    except FileNotFoundError:
        key = None
    parts = pool.sublet("ls", "--batch", batch)["jobs"]
    removed = [p for p in parts if p["state"] == "removed"]
    say("search: key %s in the submitting folder; %d parts tried, %d removed%s, %d evictions" %
        (key, sum(p["state"] == "done" for p in parts), len(removed),
         " (%s)" % removed[0]["reason"] if removed else "", sum(p["evictions"] for p in parts)))
    return key == "%010x" % KEY


def main():
    fast = "--fast" in sys.argv[1:]
    epochs = FAST_EPOCHS if fast else EPOCHS
    with harness.Pool(server_sets=["scheduling.lease=6 s"]) as pool:
        started = time.monotonic()
        say("Training %d networks undisturbed, to compare with ..." % len(epochs))
        alone = undisturbed(epochs, pool.folder)
        seconds = time.monotonic() - started
        say("  %.1f s" % seconds)
        # Owners leave a job about one epoch's time; it has half a core there.
        pause = max(0.1, 5 * seconds / sum(epochs))
        details, search, folder = run_pool(pool, epochs, pause)
        identical, evictions, lost = report(epochs, alone, details, folder)
        found = report_search(pool, search, folder)
        say("\n" + pool.run("report")[1])
    say("took %.0f s" % (time.monotonic() - started))
    ok = identical == len(epochs) and evictions >= WANTED_EVICTIONS and lost == 0 and found
    if not ok:
        say("demo: FAILED (wanted all identical, at least %d evictions in mid-work, none lost, "
            "the key found)" % WANTED_EVICTIONS)
    say("demo: %d of %d results identical, %d evictions, %d lost" %
        (identical, len(epochs), evictions, lost))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

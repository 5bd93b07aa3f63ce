"""A large file through the spool, with connections cut ten times; and a plain copy.

The copy uses the same transport: a Unix socket, through the same proxy, from a file to
a file that is synced at the end, on the same disk and in the same run. It is the limit,
although it hashes nothing and cannot resume after a cut.

The connection is cut ten times while `submit` sends the file, and ten times while `fetch`
returns it. Each figure is from the time of the whole command. $SUBLET_TRANSFER_BYTES sets the
size; the default is 1 GiB."""

import multiprocessing
import os
import socket
import sys
import time

import harness
import measure

sys.path.insert(0, os.path.join(harness.ROOT, "test", "network"))
import cutter  # noqa: E402
import transfer_test as transfer  # noqa: E402

BYTES = int(os.environ.get("SUBLET_TRANSFER_BYTES", 1 << 30))
QUICK_BYTES = 1 << 20
RUNS = 3
PART = 1 << 20


def receive(listener, path, done):
    connection, _ = listener.accept()
    part = bytearray(PART)
    view = memoryview(part)
    with open(path, "wb", buffering=0) as out:
        while count := connection.recv_into(part):
            out.write(view[:count])
        os.fsync(out.fileno())
    done.put(os.path.getsize(path))


def plain_copy(folder, source):
    """Seconds from the first byte read until the last one is on disk."""
    target, near = os.path.join(folder, "plain"), os.path.join(folder, "plain-near", "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(folder, "plain-far"))
    listener.listen(1)
    proxy = cutter.Cutter(near, os.path.join(folder, "plain-far"))
    done = multiprocessing.Queue()
    process = multiprocessing.Process(target=receive, args=(listener, target, done))
    process.start()
    began = time.monotonic()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(near)
    with open(source, "rb", buffering=0) as f:
        while part := f.read(PART):
            connection.sendall(part)
    connection.shutdown(socket.SHUT_WR)
    arrived = done.get()
    took = time.monotonic() - began
    process.join()
    proxy.close()
    listener.close()
    for name in (target, os.path.join(folder, "plain-far"), near):
        os.unlink(name)
    if arrived != os.path.getsize(source):
        raise measure.Unmeasurable("the plain copy is not complete")
    return took


def timed(call):
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result


def one_run(pool, users, size, sent, times):
    data = os.path.join(pool.folder, "data")
    times["copy"].append(plain_copy(pool.folder, data))
    users.plan(transfer.spread(size))
    took, jobs = timed(lambda: pool.submit("--input", "data", "--output", "copy", "--", "ln",
                                           "data", "copy"))
    times["submit"].append(took)
    cuts = users.made
    details = pool.wait_state(jobs[0], ["done", "failed"], deadline=1200)
    if details["state"] != "done":
        raise measure.Unmeasurable("the job failed: " + details["reason"])
    users.plan(transfer.spread(size))
    took, _ = timed(lambda: pool.sublet("fetch", str(jobs[0]), "--into", "home"))
    times["fetch"].append(took)
    copy = os.path.join(pool.folder, "home", "copy")
    if transfer.digest_of(copy) != sent or cuts + users.made != 2 * transfer.CUTS:
        raise measure.Unmeasurable("not identical, or not cut")
    os.unlink(copy)


def run(report, quick):
    size, runs = (QUICK_BYTES, 1) if quick else (BYTES, RUNS)
    times = {name: [] for name in ("copy", "submit", "fetch")}
    with harness.Pool() as pool:
        pool.start_server()
        users = cutter.Cutter(os.path.join(pool.folder, "user", "s"), pool.socket)
        pool.client("curly").start()
        pool.socket = os.path.join(pool.folder, "user", "s")
        pool.wait_machines(1)
        sent = transfer.write_random(os.path.join(pool.folder, "data"), size)
        for _ in range(runs):
            one_run(pool, users, size, sent, times)
        users.close()
    speed = {name: size / measure.percentile(all_, 50) / 1e6 for name, all_ in times.items()}
    for name, value in speed.items():
        report.add(name, value, "MB/s",
                   None if name == "copy" else speed["copy"])

"""Each benchmark with --quick: it runs, and prints each of its figures once, in the documented
form. Their values are not checked, except that they are positive, and that a workstation at rest,
and the processes of one slot, use no more than their budgets."""

import json
import math
import os
import subprocess
import sys
import unittest

import decide
import measure
import neighbours
import owner
from idle import slots
from owner import kinds

BENCH = os.path.dirname(os.path.abspath(__file__))
QUEUES = ["200_queued", "with_output", "with_input", "with_checkpoint"]
CPU = ["cpu_server", "cpu_client", "cpu_monitor", "cpu_all", "cpu_shepherds_and_jobs"]
# Of each sense for which everything is installed, each kind of job, and the two surroundings.
EVICTIONS = [hand.NAME for hand in owner.installed(owner.MANY)] + [
    "control", *kinds.KINDS, "alone", "beside_programs"]
FEW = [hand.NAME for hand in owner.installed(owner.FEW)]
BESIDE = ["spinners", "memory", "output", "staging", "delivery", "eviction", "removal"]
SLOTS = ["slot_" + way for way in slots.POSSIBLE]
METRICS = {
    "throughput": ["limit_afterwards"] + [
        figure + "_" + queue for figure in ["jobs_per_second"] + CPU for queue in QUEUES],
    "latency": ["submit_to_running_p50", "submit_to_running_p99", "submit_to_answer_p50",
                "submit_to_answer_p99", "evicted_to_running_p50", "evicted_to_running_p99",
                "owner_to_running_elsewhere_p50", "owner_to_running_elsewhere_p99",
                "submit_to_running_beside_stopped_p50", "submit_to_running_beside_stopped_p99"],
    "neighbours": [part + figure for part in neighbours.PARTS for figure in ("_p50", "_p99", "_max")] +
                  [part + "_calls" for part in neighbours.PARTS
                   if part not in ("alone", "stopped", "join")],
    "submit": ["bare_commits", "bare_rows_1000_a_commit", "singles_1_callers",
               "single_1_callers_p50", "single_1_callers_p99", "singles_8_callers",
               "single_8_callers_p50", "single_8_callers_p99", "batch_100_a_call",
               "batch_1000_a_call", "two_kinds_1000_a_call", "array_of_1000"],
    "dispatch": ["brain_events_1000_queued", "jobs_per_second_5_machines_50_jobs",
                 "cpu_5_machines_50_jobs", "submitted_5_machines_50_jobs"],
    "decide": ["%s_%s_%s" % (policy, setting, metric)
               for policy in decide.POLICIES for setting in ("10_users_1_groups", "10_users_4_groups")
               for metric in decide.METRICS],
    "machines": [name + "_10_machines" for name in (
        "joins", "memory_each", "threads", "cpu", "renewal_p50", "renewal_p99", "ping_p50", "ping_p99")],
    "restart": ["restart_100_queued", "restart_100_queued_worst", "server_memory_100_queued"],
    "idle": [who + what for who in ("monitor", "client", "workstation", "server")
             for what in ("_cpu", "_wakeups", "_private_memory")] +
            [who + what for who in ("mouse_agent", "mouse_workstation", "mouse_all")
             for what in ("_cpu", "_wakeups")] + ["mouse_events", "agent_private_memory"] +
            [way + what for way in SLOTS for what in (
                "_kernel", "_shepherd_private", "_shepherd_shared", "_job_private")] +
            [way + what for way in SLOTS if way != "slot_bare"
             for what in ("_init_private", "_fork_server_private")],
    "owner": [metric + part for metric in [
        group + way for group in EVICTIONS for way in ("_stopped", "_sensed", "_left", "_gone")] +
              ["save_took"]
              for part in ("_p50", "_p99", "_max")] +
             [name + way + part for name in FEW for way in ("_stopped", "_left")
              for part in ("_p50", "_p99", "_max")] +
             [metric + part for metric in ("event_to_told", "event_to_gone", "orphan_gone")
              for part in ("_p50", "_p99")] + ["light_unnoticed", "saves_missing"],
    "interference": [beside + "_" + loop + part for beside in BESIDE
                     for loop in ("compute", "wake", "memory")
                     for part in ("_p50", "_p99", "_max")] +
                    [beside + "_wake_late_p99" for beside in BESIDE] +
                    ["spinners_each_core" + part for part in ("_p50", "_p99", "_max")],
    "checkpoint": ["letters_size", "letters_image", "letters_gone_p50", "save_p50", "save_p99",
                   "save_1mb", "restore_1mb", "idle_point", "idle_point_called",
                   "python_idle_point"],
    "goodput": [what + save for save in ("2ms", "100ms", "5s")
                for what in ("lost_", "saves_")] + ["lost_every_5min", "lost_hourly"],
    "transfer": ["copy", "submit", "fetch"],
}
# Only printed if the rival is installed.
OPTIONAL = {"rival_xargs", "rival_parallel", "rival_tsp"}
# Measured over a short time, in clock ticks or above noise: may be zero. The desktop's agent may
# sleep all the while. The last instant at which a job runs after the event may be zero, too: it may
# not run any more. A slot need not have a fork server.
MAY_BE_ZERO = {"saves_missing", "cpu_10_machines", "mouse_agent_cpu", "mouse_agent_wakeups",
               "idle_point", "idle_point_called",
               *(way + what for way in SLOTS for what in ("_kernel", "_fork_server_private")),
               *(cpu + "_" + queue for cpu in ("cpu_all", "cpu_shepherds_and_jobs", "cpu_monitor")
                 for queue in QUEUES),
               *(group + way + part for group in (*EVICTIONS, *FEW)
                 for way in ("_stopped", "_left")
                 for part in ("_p50", "_p99", "_max"))}

# Of the budgets, those that hold also in a short run beside other load.
AT_MOST = {"workstation_private_memory": 4.0, "workstation_wakeups": 4.0,
           "slot_walls_shepherd_private": 100, "slot_walls_init_private": 100,
           "slot_walls_fork_server_private": 100,
           "slot_bare_shepherd_private": 150}


def bench(*words):
    done = subprocess.run([sys.executable, "-B", os.path.join(BENCH, "main.py")] + list(words),
                          env={**os.environ, "SUBLET_BIN": measure.harness.BIN},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


class Quick(unittest.TestCase):
    def check(self, name):
        status, out, err = bench(name, "--quick", "--json")
        self.assertEqual(status, 0, err)
        lines = [json.loads(line) for line in out.splitlines()]
        told = [line["metric"] for line in lines if line["metric"] not in OPTIONAL]
        self.assertEqual(sorted(told), sorted(METRICS[name]))
        for line in lines:
            self.assertEqual(line["bench"], name)
            self.assertLessEqual(set(line), {"bench", "metric", "value", "unit", "limit", "budget"})
            self.assertTrue(line["unit"], line)
            self.assertGreater(line.get("limit", 1), 0, line)
            if line["metric"] not in MAY_BE_ZERO:
                self.assertGreater(line["value"], 0, line)
            self.assertLessEqual(line["value"], AT_MOST.get(line["metric"], math.inf), line)

    def test_the_list_has_every_name(self):
        status, out, err = bench("--list")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([line.split()[0] for line in out.splitlines()], list(METRICS))

    def test_wrong_parts_are_refused_before_anything_runs(self):
        for name, part in ("owner", "ky"), ("interference", "spin"), ("idle", "key"):
            status, out, err = bench(name, "--only", part)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("has no part '%s'" % part, err)

    def test_wrong_names_are_refused_before_anything_runs(self):
        status, out, err = bench("idle", "throughptu", "--json")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("did you mean 'throughput'?", err)


for _name in METRICS:
    setattr(Quick, "test_" + _name, lambda self, name=_name: self.check(name))

if __name__ == "__main__":
    unittest.main()

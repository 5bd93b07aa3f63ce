"""Evicts jobs of all kinds by each sense, half of the time beside busy programs of the owner's.

stopped: from the instant just before the event until a process of the job ran for the last time,
less the job's own save. sensed: until the monitor knew of it; what of `stopped` comes before is the
time of the owner's own programs, such as the one that reads the terminal. left: from then until the
job ran for the last time, less its save. gone: from the event until the last of its processes is
gone."""

import collections
import contextlib
import os
import sys
import time

import harness
import measure
from owner import kinds, senses
from owner.programs import OwnersPrograms

BUDGET_MS = 10  # of stopped, and of left
EVERY = 100  # rounds between two lines that tell how far it is

Eviction = collections.namedtuple("Eviction", "sense kind busy stopped sensed left gone save")


class Workstation:
    """A pool of one workstation, whose jobs are evicted again and again."""

    def __init__(self, pool, stack, **options):
        pool.start_server()
        self.client = pool.client("curly", **options).start()
        pool.wait_machines(1)
        self.caller = stack.enter_context(measure.Caller(pool))
        self.tenants = kinds.Tenants(pool, self.caller, self.client)
        stack.callback(self.tenants.told.close)
        self.used = collections.defaultdict(time.monotonic)  # a sense that is new has been heard

    def evict(self, sense, kind, programs, busy):
        pid = self.tenants.start(kind)
        cgroup = kinds.cgroup_of(self.client, "unified")
        time.sleep(max(0, self.used[sense] + sense.REST - time.monotonic()))
        if not harness.alive(pid):  # another sense has heard something
            self.settle()
            return self.evict(sense, kind, programs, busy)
        with programs.running(busy):
            event = sense.act()
            gone = kinds.until_all_gone(pid, cgroup)
        save = self.tenants.saved_since(event)
        # Beside busy programs it may have run for the last time before the event.
        last_ran = self.tenants.last_ran() - save
        self.settle()
        sensed = self.sensed()
        if sensed < event:  # another sense had already made the job leave
            sense.over()  # while the owner's word is `pause`, no job starts
            self.used[sense] = time.monotonic()
            return self.evict(sense, kind, programs, busy)
        return Eviction(sense.NAME, kind, busy, stopped=max(0, last_ran - event),
                        sensed=sensed - event, left=max(0, last_ran - sensed), gone=gone - event,
                        save=save)

    def sensed(self):
        """When the cause of the last eviction was sensed (CLOCK_MONOTONIC), as the client noted it."""
        with open(os.path.join(self.client.state, "evictions")) as f:
            at_us = int(f.readlines()[-1].split()[0])
        return at_us / 1e6 + time.monotonic() - time.time()

    def settle(self):
        self.tenants.end()
        harness.wait_for(lambda: not self.client.attempts(), "the attempt's end")
        self.tenants.told.forget()  # it may have started again

    def evict_all(self, hands, programs, rounds):
        """So many evictions by each; kinds take turns, and so do quiet and busy cores."""
        found = []
        for turn in range(rounds):
            for place, hand in enumerate(hands):
                kind = kinds.KINDS[(2 * place + turn) % len(kinds.KINDS)]
                busy = (turn + turn // len(kinds.KINDS)) % 2 == 1
                found.append(self.evict(hand, kind, programs, busy))
                hand.over()
                self.used[hand] = time.monotonic()
            if (turn + 1) % EVERY == 0:
                print("%d evictions by each of: %s" % (
                    turn + 1, ", ".join(hand.NAME for hand in hands)), file=sys.stderr)
        return found


def by_senses(rounds, chosen):
    """`chosen`: classes of hands."""
    with harness.Pool() as pool, OwnersPrograms() as programs, senses.Room(pool) as room:
        for kind in chosen:
            kind.prepare(room)
        here = Workstation(pool, room, scripted=False,
                           monitor_sets=senses.SETTINGS + ["root=" + room.root],
                           extra=room.client_options)
        hands = [kind(room, here.client) for kind in chosen]
        senses.real_time()
        return here.evict_all(hands, programs, rounds)


def by_control(rounds):
    with harness.Pool() as pool, OwnersPrograms() as programs, contextlib.ExitStack() as stack:
        here = Workstation(pool, stack)
        senses.real_time()
        return here.evict_all([senses.Control(here.client)], programs, rounds)


def tell_few(report, hand, evictions):
    report.add_spread(hand.NAME + "_stopped", [e.stopped for e in evictions],
                      hand.STOPPED_BUDGET_MS)
    report.add_spread(hand.NAME + "_left", [e.left for e in evictions], BUDGET_MS)


def tell(report, evictions):
    """Figures of each sense, of each kind of job, and of quiet and of busy cores."""
    groups = [(name, [e for e in evictions if e.sense == name])
              for name in dict.fromkeys(e.sense for e in evictions)]
    groups += [(kind, [e for e in evictions if e.kind == kind]) for kind in kinds.KINDS]
    groups += [(name, [e for e in evictions if e.busy == busy])
               for name, busy in (("alone", False), ("beside_programs", True))]
    for name, some in groups:
        if not some:
            continue
        report.add_spread(name + "_stopped", [e.stopped for e in some], BUDGET_MS)
        report.add_spread(name + "_sensed", [e.sensed for e in some])
        report.add_spread(name + "_left", [e.left for e in some], BUDGET_MS)
        report.add_spread(name + "_gone", [e.gone for e in some])
    saves = [e.save for e in evictions if e.kind == kinds.SAVER]
    if saves:
        report.add_spread("save_took", saves)
        report.add("saves_missing", saves.count(0), "of %d" % len(saves), budget=0)

// "umol-score" and "umol-beta": the machine with the largest index, the sum of one of its free
// memory and one of its load, as DMW's umpire apportions hosts (DMW, 4.4.2 and 4.5.3). Of each, 100
// is satisfactory.
//
// A machine that has just got a job does not report that job's load and memory yet, so it is under
// an embargo: for 90 s, or until an attempt ends there. The umpire grants nothing under an embargo
// or beyond its thresholds, unless somebody would have no place at all. Here such machines come
// last instead, the least loaded first: no machine stays idle beside a job that fits it.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_UMOL_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_UMOL_H_

#include <algorithm>
#include <string>

#include "scheduling/books/machine_book.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class Umpire : public MachinePolicy {
 public:
  static constexpr Micros kEmbargo = 90'000'000;

  MachineScore score(const Job&, const Machine& machine, Micros now) const override {
    if (embargoed(machine, now) || !within_thresholds(machine)) return {0, -expected_load(machine)};
    return {1, index(machine)};
  }
  Sentence reason(const Job&, const Machine& machine, Micros now) const override {
    return [index = index(machine), load = machine.load, free = free_kib(machine) * 1024,
            under_embargo = embargoed(machine, now), since_grant = now - machine.granted,
            is_within = within_thresholds(machine)] {
      const std::string state = "index " + number_text(index) + ", load " + number_text(load) +
                                ", " + bytes_text(free) + " of memory free";
      if (under_embargo)
        return ", the least loaded, although it got a job " + span_text(since_grant) +
               " ago: " + state;
      if (!is_within)
        return ", the least loaded, although it does not meet the thresholds: " + state;
      return ", which has the best " + state;
    };
  }

 private:
  virtual bool within_thresholds(const Machine& machine) const = 0;
  virtual double load_index(const Machine& machine) const = 0;

  static bool embargoed(const Machine& machine, Micros now) {
    return machine.granted != 0 && now - machine.granted < kEmbargo;
  }
  double index(const Machine& machine) const { return memory_index(machine) + load_index(machine); }
  static double memory_index(const Machine& machine) {
    const auto kib = static_cast<double>(free_kib(machine));
    if (kib > 200'000) return 120;
    return kib < 5000 ? kib / 50 : 100 + kib / 10'000;
  }
  // What was reported, or what the jobs hold, which may be too new to be reported.
  static double expected_load(const Machine& machine) {
    return std::max(machine.load, static_cast<double>(machine.reserved.cores)) / weight(machine);
  }

 protected:
  static uint64_t free_kib(const Machine& machine) {
    return (machine.memory_free > 0 ? machine.memory_free : machine.record.memory) / 1024;
  }
  static double weight(const Machine& machine) {
    return machine.record.speed > 0 ? machine.record.speed : 1;
  }
};

class UmolScore : public Umpire {
  static double weighted_load(const Machine& machine) { return machine.load / weight(machine); }
  bool within_thresholds(const Machine& machine) const override {
    return weighted_load(machine) < 0.6 && free_kib(machine) > 5000;
  }
  double load_index(const Machine& machine) const override {
    const double load = weighted_load(machine);
    if (load > 4.9) return 0;
    return load < 0.6 ? 121 - 35 * load : 112 - 20 * load;
  }
};

// With the basic performance instead of a weighted load; 100 for an idle machine of speed 1.
class UmolBeta : public Umpire {
  bool within_thresholds(const Machine& machine) const override {
    return free_kib(machine) > 20'000;
  }
  double load_index(const Machine& machine) const override {
    const double cores = machine.record.cores;
    return 100 * machine.record.speed * cores / std::max(cores, machine.load + 1);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_UMOL_H_

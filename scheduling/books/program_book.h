// The program book: how much CPU time the runs of a program took, on which kind of machine. It
// owns those records: as many programs as have run last, and of each the kinds of machine on which
// it has run last.
//
// What a program takes is learnt from its runs, of which few say little: what is expected on a kind
// of machine lies between the mean of the runs there and what the machine's speed predicts from all
// runs, which counts like a few runs more. Means are of logarithms, so that a single odd run does
// little.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_PROGRAM_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_PROGRAM_BOOK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "scheduling/books/changes.h"

namespace sublet::scheduling {

class ProgramBook {
 public:
  static constexpr size_t kMostPrograms = 1000;
  static constexpr size_t kMostKinds = 16;
  static constexpr double kPriorRuns = 4;         // that the prediction by speed counts like
  static constexpr Micros kLeastCpu = 1'000'000;  // of a run that says something

  explicit ProgramBook(Changes& changes) : changes_(changes) {}

  // A whole run of the program (JobRecord::program) on that machine. Nothing is learnt if it was
  // too short, or either is not known.
  void note_run(uint64_t program, const MachineRecord& machine, Micros cpu);

  struct Expected {
    double log_seconds = 0;  // the logarithm of its CPU time
    uint64_t here = 0;       // runs on machines of this kind
    uint64_t elsewhere = 0;  // and on others
  };
  // None: no run of it is known, or not the machine's speed.
  std::optional<Expected> expected(uint64_t program, const MachineRecord& machine) const;

  // Takes over a stored row. False: it is not valid.
  bool restore(const ProgramRecord& row);

 private:
  // The architecture and the speed of a kind of machine, as in ProgramRecord.
  using Kind = std::pair<std::string, int32_t>;
  struct Program {
    std::map<Kind, ProgramRecord> kinds;
    Micros last = 0;  // its newest run
  };

  static Kind kind_of(const MachineRecord& machine);
  // Makes room for it if there is none.
  ProgramRecord& record_of(uint64_t id, const Kind& kind);
  void note_last(uint64_t id, Program& program, Micros last);
  void forget(ProgramRecord record);
  void forget_oldest_program();
  void forget_oldest_kind(Program& program);

  Changes& changes_;
  std::unordered_map<uint64_t, Program> programs_;
  std::set<std::pair<Micros, uint64_t>> by_last_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_PROGRAM_BOOK_H_

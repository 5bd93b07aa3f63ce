#include "scheduling/books/program_book.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace sublet::scheduling {
namespace {

// Speeds within about 9 % are of one kind.
constexpr double kStepsToDouble = 8;

// Bounds of a stored row. What is beyond them is damage.
constexpr uint64_t kMostRuns = 1ull << 40;
constexpr double kMostLog = 50;

double log_speed(int32_t step) { return step * std::log(2.0) / kStepsToDouble; }

}  // namespace

ProgramBook::Kind ProgramBook::kind_of(const MachineRecord& machine) {
  return {machine.architecture,
          static_cast<int32_t>(std::lround(kStepsToDouble * std::log2(machine.speed)))};
}

void ProgramBook::note_run(uint64_t id, const MachineRecord& machine, Micros cpu) {
  if (id == 0 || machine.speed <= 0 || cpu < kLeastCpu) return;
  ProgramRecord& record = record_of(id, kind_of(machine));
  ++record.runs;
  const double seconds = static_cast<double>(cpu) / 1'000'000;
  record.log_cpu += (std::log(seconds) - record.log_cpu) / static_cast<double>(record.runs);
  record.last = changes_.now();
  changes_.add(record);
  note_last(id, programs_[id], record.last);
}

ProgramRecord& ProgramBook::record_of(uint64_t id, const Kind& kind) {
  while (!programs_.contains(id) && programs_.size() >= kMostPrograms) forget_oldest_program();
  Program& program = programs_[id];
  while (!program.kinds.contains(kind) && program.kinds.size() >= kMostKinds)
    forget_oldest_kind(program);
  ProgramRecord& record = program.kinds[kind];
  record.program = id;
  std::tie(record.architecture, record.speed) = kind;
  return record;
}

void ProgramBook::note_last(uint64_t id, Program& program, Micros last) {
  by_last_.erase({program.last, id});
  program.last = std::max(program.last, last);
  by_last_.insert({program.last, id});
}

void ProgramBook::forget(ProgramRecord record) {
  record.forgotten = true;
  changes_.add(std::move(record));
}

void ProgramBook::forget_oldest_kind(Program& program) {
  const auto oldest =
      std::min_element(program.kinds.begin(), program.kinds.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
  forget(oldest->second);
  program.kinds.erase(oldest);
}

void ProgramBook::forget_oldest_program() {
  const auto oldest = programs_.find(by_last_.begin()->second);
  for (const auto& [kind, record] : oldest->second.kinds) forget(record);
  by_last_.erase(by_last_.begin());
  programs_.erase(oldest);
}

std::optional<ProgramBook::Expected> ProgramBook::expected(uint64_t id,
                                                           const MachineRecord& machine) const {
  const auto found = programs_.find(id);
  if (found == programs_.end() || machine.speed <= 0) return std::nullopt;
  const auto& kinds = found->second.kinds;
  double runs = 0, work = 0;  // of all runs; CPU time at speed 1
  for (const auto& [kind, record] : kinds) {
    const auto count = static_cast<double>(record.runs);
    runs += count;
    work += count * (record.log_cpu + log_speed(record.speed));
  }
  const double predicted = work / runs - std::log(machine.speed);
  const auto here = kinds.find(kind_of(machine));
  if (here == kinds.end()) return Expected{predicted, 0, static_cast<uint64_t>(runs)};
  const ProgramRecord& record = here->second;
  const auto count = static_cast<double>(record.runs);
  return Expected{(count * record.log_cpu + kPriorRuns * predicted) / (count + kPriorRuns),
                  record.runs, static_cast<uint64_t>(runs) - record.runs};
}

bool ProgramBook::restore(const ProgramRecord& row) {
  const bool may_be = row.runs > 0 && row.runs <= kMostRuns && std::abs(row.log_cpu) <= kMostLog;
  if (row.program == 0 || row.forgotten || !may_be) return false;
  Program& program = programs_[row.program];
  if (!program.kinds.try_emplace({row.architecture, row.speed}, row).second) return false;
  note_last(row.program, program, row.last);
  return true;
}

}  // namespace sublet::scheduling

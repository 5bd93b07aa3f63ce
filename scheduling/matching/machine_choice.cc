#include "scheduling/matching/machine_choice.h"

#include <algorithm>
#include <vector>

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/hashed.h"

namespace sublet::scheduling {
namespace {

// The parts of IDLE that may have machines that fit, the smallest first: what it leaves of the
// sample falls to the larger ones.
std::vector<const IdleLine*> suiting_lines(const Suitability& suitability, const Job& job,
                                           const Amounts& needs) {
  std::vector<const IdleLine*> lines;
  for (const auto& kind : suitability.kinds()) {
    const IdleLine& idle = kind->idle;
    if (!job.demand->group->suits[kind->index] || idle.empty()) continue;
    if (needs.within(idle.bound().room)) lines.push_back(&idle);
  }
  const auto rank = [](const IdleLine* line) {
    return std::pair(line->bound().members, line->front()->place.number);
  };
  std::sort(lines.begin(), lines.end(),
            [&](const IdleLine* a, const IdleLine* b) { return rank(a) < rank(b); });
  return lines;
}

// About `count` of the machines with room for `needs`, evenly distributed; one at least, if there
// is one. 0 < count <= members.
template <typename Visit>
void sample(const IdleLine& idle, const Amounts& needs, uint64_t count, uint64_t draw,
            Visit visit) {
  const auto first_after = [&](uint64_t skipped) {
    return idle.first_after(
        skipped, [&](const IdleBound& bound) { return needs.within(bound.room); },
        [&](const Machine& m) { return needs.within(m.place.room); });
  };
  const uint64_t members = idle.bound().members;
  uint64_t last = 0;  // the place of the last one
  for (uint64_t i = 0; i < count; ++i) {
    Machine* m = first_after((i * members + draw % members) / count);
    const bool at_end = m == nullptr;
    if (at_end) m = first_after(0);
    if (m != nullptr && m->place.number != last) visit(*m);
    if (at_end) return;
    last = m->place.number;
  }
}

}  // namespace

Machine& choose_machine(const Policies& policies, const Suitability& suitability, const Job& job,
                        Machine& first) {
  if (policies.machine->takes_first()) return first;
  Machine* best = &first;
  MachineScore best_score = policies.machine->score(job, first);
  const auto compare = [&](Machine& m) {
    const MachineScore score = policies.machine->score(job, m);
    const bool nearer = m.place.number < best->place.number;
    if (score < best_score || (!nearer && !(best_score < score))) return;
    best = &m;
    best_score = score;
  };
  const Amounts needs = amounts_of(job.record.needs);
  const uint64_t draw = hashed(hashed(job.record.id) + job.record.attempts);
  const std::vector<const IdleLine*> lines = suiting_lines(suitability, job, needs);
  uint64_t left = policies.candidates;
  for (size_t i = 0; i < lines.size() && left > 0; ++i) {
    const uint64_t others = lines.size() - i - 1;
    const uint64_t part = (left + others) / (others + 1);  // rounded up
    const uint64_t count = std::min(part, lines[i]->bound().members);
    sample(*lines[i], needs, count, draw, compare);
    left -= count;
  }
  return *best;
}

}  // namespace sublet::scheduling

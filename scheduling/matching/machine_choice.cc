#include "scheduling/matching/machine_choice.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/hashed.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {
namespace {

// One kind's part of IDLE, and how much a job prefers the kind.
struct Line {
  const IdleLine* idle = nullptr;
  double preference = 0;
};

// The parts of IDLE that may have machines that fit, the most preferred first. Of equal ones the
// smallest first: what it leaves of the sample falls to the larger ones.
std::vector<Line> suiting_lines(const Suitability& suitability, const Job& job, const Ask& needs) {
  const std::vector<double>& preferences = suitability.preferences(*job.demand);
  std::vector<Line> lines;
  for (const auto& kind : suitability.kinds()) {
    const IdleLine& idle = kind->idle;
    if (!job.demand->group->suits[kind->index] || idle.empty()) continue;
    if (needs.within(idle.bound())) lines.push_back({&idle, preferences[kind->index]});
  }
  const auto rank = [](const Line& line) {
    return std::tuple(-line.preference, line.idle->bound().members,
                      line.idle->front()->place.number);
  };
  std::sort(lines.begin(), lines.end(),
            [&](const Line& a, const Line& b) { return rank(a) < rank(b); });
  return lines;
}

// About `count` of the machines with room for `needs`, evenly distributed; one at least, if there
// is one. 0 < count <= members.
template <typename Visit>
void sample(const IdleLine& idle, const Ask& needs, uint64_t count, uint64_t draw, Visit visit) {
  const auto first_after = [&](uint64_t skipped) {
    return idle.first_after(
        skipped, [&](const IdleBound& bound) { return needs.within(bound); },
        [&](const Machine& m) { return needs.within(m.place); });
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

// The best by the policy of those in lines that are preferred alike. Null: none fits.
Machine* best_in(std::span<const Line> lines, const Policies& policies, const Job& job,
                 const Ask& needs, Micros now) {
  const MachinePolicy& policy = *policies.machine;
  Machine* best = nullptr;
  MachineScore best_score;
  const auto compare = [&](Machine& m) {
    const MachineScore score = policy.score(job, m, now);
    const bool nearer = best == nullptr || m.place.number < best->place.number;
    if (best != nullptr && (score < best_score || (!nearer && !(best_score < score)))) return;
    best = &m;
    best_score = score;
  };
  const uint64_t draw = hashed(hashed(job.record.id) + job.record.attempts);
  uint64_t left = policies.candidates;
  for (size_t i = 0; i < lines.size() && (left > 0 || best == nullptr); ++i) {
    const IdleLine& idle = *lines[i].idle;
    if (policy.takes_first()) {
      sample(idle, needs, 1, 0, compare);
      continue;
    }
    const uint64_t others = lines.size() - i - 1;
    const uint64_t part = std::max<uint64_t>((left + others) / (others + 1), 1);  // rounded up
    const uint64_t count = std::min(part, idle.bound().members);
    sample(idle, needs, count, draw, compare);
    left -= std::min(left, count);
  }
  return best;
}

}  // namespace

Machine& choose_machine(const Policies& policies, const Suitability& suitability, const Job& job,
                        Machine& first, Micros now) {
  if (policies.machine->takes_first() && !job.demand->prefer) return first;
  const Ask needs{amounts_of(job.record.needs), job.demand->group->of_machine};
  const std::vector<Line> lines = suiting_lines(suitability, job, needs);
  for (size_t begin = 0; begin < lines.size();) {
    size_t end = begin + 1;
    while (end < lines.size() && lines[end].preference == lines[begin].preference) ++end;
    Machine* best =
        best_in(std::span(lines).subspan(begin, end - begin), policies, job, needs, now);
    if (best != nullptr) return *best;
    begin = end;
  }
  return first;
}

std::string preference_text(const Suitability& suitability, const Job& job,
                            const Machine& machine) {
  if (!job.demand->prefer) return "";
  const double preference = suitability.preferences(*job.demand)[machine.kind->index];
  const bool known = preference > std::numeric_limits<double>::lowest();
  return " (preferred: " + (known ? number_text(preference) : "not known") + ")";
}

}  // namespace sublet::scheduling

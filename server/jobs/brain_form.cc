#include "server/jobs/brain_form.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "job/check.h"
#include "job/state.h"
#include "scheduling/matching/machine_words.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

constexpr bool same(JobState ours, scheduling::JobState brains) {
  return uint32_t{ours} == static_cast<uint32_t>(brains);
}
static_assert(same(kWaiting, scheduling::JobState::kWaiting) &&
              same(kPlaced, scheduling::JobState::kPlaced) &&
              same(kRunning, scheduling::JobState::kRunning) &&
              same(kHeld, scheduling::JobState::kHeld) &&
              same(kDone, scheduling::JobState::kDone) &&
              same(kFailed, scheduling::JobState::kFailed) &&
              same(kRemoved, scheduling::JobState::kRemoved) &&
              same(kSuspended, scheduling::JobState::kSuspended) &&
              same(kDelivering, scheduling::JobState::kDelivering));

std::string platforms_of(const JobDescription& job) {
  std::set<std::string> platforms;
  for (const auto& [platform, program] : job.programs) platforms.insert(platform);
  std::string text;
  for (const auto& platform : platforms) text += (text.empty() ? "" : " ") + platform;
  return text;
}

std::vector<scheduling::Dependence> brain_form(const Dependences& waits_for) {
  using scheduling::After;
  std::vector<scheduling::Dependence> dependences;
  const auto add = [&](const JobReferences& list, After condition) {
    for (const JobReference& jobs : list)
      dependences.push_back({{jobs.first, jobs.count}, condition});
  };
  add(waits_for.after, After::kDone);
  add(waits_for.after_any, After::kEnded);
  add(waits_for.after_start, After::kStarted);
  return dependences;
}

}  // namespace

// From the first octets of a digest. The database stores numbers below 2^63.
uint64_t program_of(const JobDescription& job, const std::string& user) {
  Hasher hasher;
  const auto add = [&](const std::string& text) { hasher.update(text.c_str(), text.size() + 1); };
  add(user);
  add(job.program);
  for (const auto& [platform, program] : std::set(job.programs.begin(), job.programs.end())) {
    add(platform);
    add(program);
  }
  const Digest digest = hasher.finish();
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number = number << 8 | digest[i];
  return std::max<uint64_t>(number >> 1, 1);
}

scheduling::Submitted::Job brain_job(const JobDescription& job) {
  scheduling::Submitted::Job out;
  out.needs.os = job.needs.os;
  out.needs.architecture = job.needs.architecture;
  out.needs.cores = job.needs.cores;
  // A job may use memory up to its bound, so it needs that much.
  out.needs.memory = std::max(job.needs.memory, job.bounds.memory);
  out.needs.disk = job.needs.disk;
  out.needs.platforms = platforms_of(job);
  out.needs.require = job.needs.require;
  out.needs.prefer = job.needs.prefer;
  out.needs.resources = job.needs.resources.text();
  out.needs.hours = job.hours;
  out.earliest = job.not_before_us;
  out.priority = job.priority;
  out.retries = job.retries;
  out.after = brain_form(job.waits_for);
  return out;
}

namespace {
template <typename Parse>
void check_expression(Parse parse, const std::string& text, const std::string& key,
                      const std::string& subject) {
  if (text.empty()) return;
  try {
    parse(text);
  } catch (const rules::RuleError& e) {
    std::string names;
    for (const rules::Word& word : scheduling::machine_vocabulary().words())
      names += (names.empty() ? "" : ", ") + word.name;
    throw Refusal(Refusal::Kind::kInvalid, "needs." + key, subject + ": `" + key + "`: " + e.what(),
                  "Correct it; it may use " + names + ".", subject);
  }
}
}  // namespace

void check_expressions(const JobDescription& job, const std::string& subject) {
  check_expression(scheduling::parse_requirement, job.needs.require, "require", subject);
  check_expression(scheduling::parse_preference, job.needs.prefer, "prefer", subject);
}

scheduling::OnNever brain_form(OnNever on_never) {
  return on_never == OnNever::kRemove ? scheduling::OnNever::kRemove : scheduling::OnNever::kHold;
}

scheduling::StopWhen brain_form(const StopWhen& when) {
  return {when.done, when.failed, when.output};
}

}  // namespace sublet::server

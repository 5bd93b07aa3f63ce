#include "server/commit/replay.h"

#include <optional>
#include <set>

#include "protocol/codec.h"
#include "scheduling/events/event_codec.h"
#include "scheduling/pool.h"
#include "server/store/archive/event_files.h"

namespace sublet::server {

using namespace scheduling;

namespace {

const std::optional<Parameters>* parameters_of(const Event& event) {
  const auto* started = std::get_if<ServerStarted>(&event);
  return started == nullptr ? nullptr : &started->parameters;
}

// The first event says with which policies the brain ran.
Parameters first_parameters(const Event& event) {
  if (const auto* anchored = std::get_if<Anchored>(&event)) return anchored->parameters;
  const auto* started = parameters_of(event);
  return started != nullptr ? started->value_or(Parameters()) : Parameters();
}

// Applies the events of a file, one after the other.
class Player {
 public:
  Player(Snapshot head, Replay& result) : head_(std::move(head)), result_(result) {
    result_.end = Books(head_);
  }

  // False: this event cannot be replayed.
  bool play(const EventRow& row) {
    const Event event = decode_event(row.kind, row.body);
    if (!pool_) {
      parameters_ = first_parameters(event);
      pool_.emplace(parameters_);
      pool_->restore(std::move(head_));
      result_.from = row.at;
    }
    const auto* started = parameters_of(event);
    // Another policy takes over; the rest is fixed while a brain runs.
    if (started != nullptr && *started && !same_when_fixed(**started, parameters_)) return false;
    result_.end.write(pool_->apply(event, row.at));
    result_.until = row.at;
    ++result_.events;
    return true;
  }

 private:
  Snapshot head_;
  Replay& result_;
  Parameters parameters_;
  std::optional<Pool> pool_;
};

// Names the first key whose values differ, or that only one of them has.
template <typename Key, typename Row, typename Name>
std::string differing(const std::map<Key, Row>& a, const std::map<Key, Row>& b, Name name) {
  for (const auto& [key, row] : a) {
    const auto other = b.find(key);
    if (other == b.end() || !(other->second == row)) return name(key);
  }
  for (const auto& [key, row] : b)
    if (!a.contains(key)) return name(key);
  return "";
}

}  // namespace

Books::Books(const Snapshot& snapshot) : pool(snapshot.pool), policy(snapshot.policy) {
  for (const auto& row : snapshot.users) users[row.name] = row;
  for (const auto& row : snapshot.machines) machines[row.id] = row;
  for (const auto& row : snapshot.absences) absences[row.machine] = row;
  for (const auto& row : snapshot.jobs) jobs[row.id] = row;
  for (const auto& row : snapshot.attempts) attempts[row.key] = row;
  for (const auto& row : snapshot.batches) batches[row.id] = row;
  for (const auto& row : snapshot.relations) relations[row.jobs.first] = row;
  for (const auto& row : snapshot.programs)
    programs[{row.program, row.architecture, row.speed}] = row;
}

void Books::write(const Outcome& outcome) {
  std::set<JobId> touched;
  for (const Record& record : outcome.records) {
    std::visit(
        [&](const auto& r) {
          using T = std::decay_t<decltype(r)>;
          if constexpr (std::is_same_v<T, UserRecord>) users[r.name] = r;
          if constexpr (std::is_same_v<T, MachineRecord>) machines[r.id] = r;
          if constexpr (std::is_same_v<T, AbsenceRecord>) absences[r.machine] = r;
          if constexpr (std::is_same_v<T, PoolRecord>) pool = r;
          if constexpr (std::is_same_v<T, PolicyRecord>) policy = r;
          if constexpr (std::is_same_v<T, BatchRecord>) batches[r.id] = r;
          if constexpr (std::is_same_v<T, RelationRecord>) {
            if (r.over)
              relations.erase(r.jobs.first);
            else
              relations[r.jobs.first] = r;
          }
          if constexpr (std::is_same_v<T, ProgramRecord>) {
            if (r.forgotten)
              programs.erase({r.program, r.architecture, r.speed});
            else
              programs[{r.program, r.architecture, r.speed}] = r;
          }
          if constexpr (std::is_same_v<T, JobRecord>) {
            jobs[r.id] = r;
            touched.insert(r.id);
          }
          if constexpr (std::is_same_v<T, AttemptRecord>) {
            attempts[r.key] = r;
            touched.insert(r.key.job);
          }
        },
        record);
  }
  // Only what a brain is restored from: live jobs, live attempts with their jobs, and the newest
  // attempt of each live job.
  for (const JobId id : touched) {
    const auto job = jobs.find(id);
    if (job == jobs.end()) continue;
    const auto newest = attempts.find({id, job->second.attempts});
    const bool at_work = newest != attempts.end() && newest->second.state != AttemptState::kEnded;
    const bool over = is_final(job->second.state) && !at_work;
    const uint32_t last = over ? UINT32_MAX : job->second.attempts;
    attempts.erase(attempts.lower_bound({id, 0}), attempts.lower_bound({id, last}));
    if (over) jobs.erase(job);
  }
}

std::string Books::difference(const Books& other) const {
  const auto numbered = [](const char* what) {
    return [what](uint64_t id) { return what + std::to_string(id); };
  };
  PoolRecord ours = pool, theirs = other.pool;
  ours.now = theirs.now = 0;  // stored with the other counters only
  if (!(ours == theirs)) return "the pool's counters";
  if (!(policy == other.policy)) return "the policies";
  std::string name = differing(machines, other.machines, numbered("machine "));
  if (name.empty())
    name = differing(absences, other.absences, numbered("the absences of the owner of machine "));
  if (name.empty())
    name = differing(users, other.users, [](const std::string& user) { return "user " + user; });
  if (name.empty()) name = differing(jobs, other.jobs, numbered("job "));
  if (name.empty())
    name = differing(attempts, other.attempts, [](const AttemptKey& key) {
      return "attempt " + std::to_string(key.job) + "." + std::to_string(key.attempt);
    });
  if (name.empty())
    name = differing(relations, other.relations, numbered("what waits for others from job "));
  if (name.empty())
    name = differing(programs, other.programs, [](const auto& key) {
      return "the runs of program " + std::to_string(std::get<0>(key));
    });
  for (const auto& [id, row] : other.batches) {
    const auto own = batches.find(id);
    if (name.empty() && (own == batches.end() || !(own->second == row)))
      name = "batch " + std::to_string(id);
  }
  return name;
}

Books books_at_head(const std::string& path) { return Books(EventFileReader(path).head()); }

Replay replay(const std::string& path) {
  Replay result;
  EventFileReader file(path);
  Player player(file.head(), result);
  uint64_t before = 0;
  try {
    while (const EventFileReader::Event* event = file.next()) {
      if (before != 0 && event->number != before + 1)
        result.stopped = "events are missing after number " + std::to_string(before);
      else if (!player.play(event->row))
        result.stopped =
            "at event " + std::to_string(event->number) +
            " the server was started with a different lease, tick, pause, default_shares or "
            "accounts";
      if (!result.stopped.empty()) break;
      before = event->number;
    }
  } catch (const protocol::Damaged& e) {
    result.stopped = "an event is damaged: " + std::string(e.what());
  }
  return result;
}

}  // namespace sublet::server

// The relation book: which live jobs wait for others, and what becomes of them when those
// start, end, or turn out never to run.
//
// Jobs that wait for the same are one entry, and what they wait for is a range of jobs, so that
// an array that waits for an array is one dependent with one dependence. Equal dependences share
// one count. Nothing here changes a job: next() says what must be done.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_RELATION_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_RELATION_BOOK_H_

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduling/books/changes.h"

namespace sublet::scheduling {

// Jobs that wait for others; they have not been queued yet.
struct Dependent {
  RelationRecord record;
  uint64_t live = 0;   // of its jobs
  uint64_t unmet = 0;  // of its dependences
  bool touched = false;
  bool is_lost() const { return record.lost_by != 0; }
};

// "job 17, which it waits for, has failed": why the jobs can never run.
std::string loss_text(const RelationRecord& lost);

class RelationBook {
 public:
  explicit RelationBook(Changes& changes) : changes_(changes) {}

  // ---- adding ----
  // From now on of() finds it; begin() follows once all the jobs that it names are in the job
  // book. Null: there is one for its first job already.
  Dependent* add(RelationRecord record);
  // What there is of a dependence's jobs.
  struct Seen {
    uint64_t unmet = 0;  // of them, those for which it is yet to be met
    JobId lost_by = 0;   // because of this one it can never be met; 0: it can
    JobState lost_as = JobState::kRemoved;
  };
  // `live`: of its jobs. `look` is asked once for equal dependences. From now on it is behind its
  // gate, if its batch has one.
  void begin(Dependent& dependent, uint64_t live,
             const std::function<Seen(const Dependence&)>& look);
  // Its batch has no gate any more.
  void open(Dependent& dependent);
  void touch(Dependent& dependent) { touched_.add(dependent); }

  // ---- what happens to jobs ----
  void note_started(JobId job) { note({job, 1}, News::kStarted, true); }
  // The record's jobs are final; `dependent`: the one that they belong to, if any.
  void note_end(const JobRecord& job, Dependent* dependent);
  // These jobs can never run, though they are not final.
  void note_stuck(const JobRange& jobs) { news_.push_back({jobs, News::kStuck, false}); }

  // ---- what follows ----
  // What must be done with the live jobs of a range.
  struct Consequence {
    JobRange jobs;
    std::optional<OnNever> never;  // they can never run; none: they wait no longer
  };
  // The next one, in the order in which they came about; none: nothing is left to be done.
  std::optional<Consequence> next();

  // ---- questions ----
  // The dependent that this job belongs to; null: it waits for no other.
  Dependent* of(JobId job);
  // Those whose first job is one of these and whose gate is not open, until there are so many of
  // them and their dependences, and where the next one may be; 0: there are no more.
  std::pair<std::vector<Dependent*>, JobId> gated(const JobRange& jobs, uint64_t most);
  const std::map<JobId, Dependent>& all() const { return dependents_; }
  // Whether somebody waits for just this already.
  bool is_awaited(const Dependence& dependence) const {
    return awaited_.contains(key_of(dependence));
  }
  // "waits until job 17 is done; 3 more".
  std::string why(const Dependent& dependent) const;

  // Adds the records of the apply and forgets what is not needed any more.
  void emit();

 private:
  struct News {
    enum What { kStarted, kDone, kFailed, kRemoved, kStuck };
    JobRange jobs;
    What what = kStarted;
    bool had_started = false;
  };
  // Ordered by the size of the range (as a power of two) and then by its first job, so that the
  // ranges that overlap another one are found without looking at many that do not.
  struct Key {
    uint32_t size = 0;
    Dependence dependence;
    auto operator<=>(const Key&) const = default;
  };
  // What dependents wait for: how many of the jobs are yet to start or end.
  struct Awaited {
    uint64_t unmet = 0;
    uint64_t wanted = 0;            // by so many dependents that are neither lost nor over
    std::vector<JobId> dependents;  // by their first jobs; some may be lost or over
  };
  enum class Effect { kNone, kMet, kLost };

  static Key key_of(const Dependence& dependence);
  static Effect effect_of(const News& news, After condition);
  void note(const JobRange& jobs, News::What what, bool had_started);
  std::vector<Key> overlapping(const JobRange& jobs) const;
  void await(Dependent& dependent, const Key& key);
  // All that it waited for has happened: its jobs are queued, unless it is behind its gate.
  void release(Dependent& dependent);
  void settle(const News& news);
  void settle(const Key& key, const News& news);
  void meet(const Awaited& awaited);
  static JobId lost_by(const Dependent& dependent, const News& news);
  void lose(const Awaited& awaited, const News& news);
  void lose(Dependent& dependent, JobId by, JobState as);
  // It waits for nothing any more.
  void release_awaited(Dependent& dependent);
  void end(Dependent& dependent);
  Dependent* waiting(JobId first);

  Changes& changes_;
  std::map<JobId, Dependent> dependents_;  // by their first job
  std::map<Key, Awaited> awaited_;
  std::array<uint64_t, 65> sizes_ = {};  // number of keys of each size
  std::map<Key, Seen> seen_;  // what nobody waits for yet, until what has happened is settled
  std::deque<News> news_;
  std::deque<Consequence> consequences_;
  Touched<Dependent> touched_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_RELATION_BOOK_H_

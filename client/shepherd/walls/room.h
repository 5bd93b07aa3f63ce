// The namespaces of a slot's jobs, and the first process in them, kept from attempt to attempt:
// making and removing them costs more than a short job. The next attempt gets them only if it is of
// the same user and account and on the same terms, and if nothing was left in them: no process, no
// file in the places that begin empty, no pseudo-terminal, no System V object, no message queue.
// Otherwise they are made anew. With root only, who can enter them from outside. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_ROOM_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_ROOM_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attempt/format.h"
#include "client/shepherd/cgroups.h"
#include "client/shepherd/walls/places.h"

namespace sublet::shepherd {

class Room {
 public:
  // Uses the descriptors from this number on.
  explicit Room(int first_descriptor) : first_(first_descriptor) {}
  static constexpr int kDescriptors = 5;
  // Takes their numbers. False with errno.
  bool reserve() const;

  // Prepares it for an attempt, in whose folder this process is: the present one if it fits, else a
  // new one. False: the attempt needs namespaces of its own. `kept`: where the folder of its
  // temporary files is while it is empty.
  bool prepare(const sublet_order& order, const char* kept);
  // Like Cgroups::fork(), but the child is to call enter() before it becomes the job.
  pid_t fork(Cgroups& cgroups) const;
  // In the child: the namespaces, and the attempt's folder in them. Null, or the step that failed,
  // with errno.
  const char* enter() const;
  // In the child, when it has joined its control groups, which are `new_ones` or those of the
  // attempt before: hides the others, unless they are hidden already. The same.
  const char* hide_cgroups(const sublet_order& order, bool new_ones) const;

  // 0: there is none, or it is not used by the attempt.
  pid_t init() const { return used_ ? init_ : 0; }
  // The program has ended: have the first process say when no other is left. Does nothing the
  // second time: another answer would be taken for that of the next attempt.
  void ask();
  // Readable when it says so, or has ended; -1: there is nothing to wait for.
  int poll_fd() const { return question_ == Question::kAsked ? first_ + kReport : -1; }
  // Whether it says so.
  bool is_empty();
  // Processes were left nevertheless: it is not kept.
  void spoil() { clean_ = false; }
  // It has ended, and was waited for.
  void lose();
  // Between attempts: notices if it has.
  void look();

  // The attempt is over, in whose folder this process is. Keeps the room if it is as at the
  // beginning, else removes it.
  void leave(const char* kept);
  // And what was kept of it.
  void remove(const char* kept);

 private:
  // Of control groups. A process may end while it makes it.
  enum class Cover { kNone, kHalf, kMade };
  // What its processes tell each other.
  struct Notes {
    FreshPlaces fresh;
    bool covers_own;      // folders of attempts have to be shown
    bool covers_cgroups;  // they have to be hidden
    Cover cover;
    // Of the present attempt: its folder, and whether that is shown.
    char folder[PATH_MAX];
    bool shown;
  };
  enum class Question { kNone, kAsked, kAnswered };
  // Descriptors, from first_ on.
  enum { kReport, kOwnProcesses, kProcesses, kMounts, kMessages };

  bool fits(const sublet_order& order);
  bool make(const sublet_order& order);
  bool open_namespaces() const;
  bool can_be_entered() const;
  bool is_silent() const;
  void forget();
  void note_terms(const sublet_order& order);
  pid_t start(const sublet_order& order, int ours, int report) const;
  [[noreturn]] void be_starter(const sublet_order& order, int report, int told) const;
  [[noreturn]] void be_first(int report, Walls& walls) const;
  bool tidy() const;
  bool is_clean(int queues) const;
  void end_first();

  const int first_;
  Notes* notes_ = nullptr;
  int failures_ = 0;   // to make one, in a row
  bool used_ = false;  // by the present attempt
  Question question_ = Question::kNone;
  bool clean_ = false;
  pid_t init_ = 0;
  char user_[SUBLET_USER_MAX_BYTES + 1] = {};
  int64_t uid_ = -1;
  int64_t gid_ = -1;
  int64_t memory_ = 0;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_ROOM_H_

// The namespaces of a slot's jobs, and the first process in them, kept from attempt to attempt:
// making and removing them costs more than a short job. The next attempt gets them only if it is of
// the same user and account and on the same terms, and if nothing was left in them: no process, no
// file in the places that begin empty, no pseudo-terminal, no System V object, no message queue.
// Otherwise they are made anew. With root only, who can enter them from outside. From the second
// attempt on a fork server starts the jobs, if that is as good. To lie in memory that is shared
// with this process's children. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_ROOM_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_ROOM_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "attempt/format.h"
#include "client/shepherd/cgroups.h"
#include "client/shepherd/walls/fork_server.h"
#include "client/shepherd/walls/places.h"

namespace sublet::shepherd {

// How a job of a room begins. See ForkServer for the first two.
struct Beginning {
  ForkServer::Prepare prepare;  // its argument is the room
  ForkServer::Run run;
  void* argument;
};

class Room {
 public:
  // Uses the descriptors from this number on.
  explicit Room(int first_descriptor);
  static constexpr int kDescriptors = 8 + FreshPlaces::kMost;
  // Takes their numbers. False with errno.
  bool reserve() const;

  // Prepares it for an attempt, in whose folder this process is: the present one if it fits, else a
  // new one. False: the attempt needs namespaces of its own. `kept`: where the folder of its
  // temporary files is while it is empty. `may_share`: the folders of attempts are closed but while
  // they run, so that an attempt may see those of others.
  bool prepare(const sublet_order& order, const char* kept, bool may_share);
  // Notes where this process is: the attempt's folder. False with errno.
  bool note_folder();
  // Creates the job's process in these control groups, which does run() and is to call enter() and
  // hide_cgroups(). -1 with errno.
  pid_t fork(const sublet_order& order, Cgroups& cgroups, const Beginning& beginning);
  // In the fork server that prepares itself: the namespaces. False with errno.
  bool enter_for_all() const;
  // In the job's process: whether prepare() has been done.
  bool is_prepared() const { return served_; }
  // The namespaces, in which it is already if it is prepared, and the attempt's folder. Null, or
  // the step that failed, with errno.
  const char* enter() const;
  // When it has joined its control groups, which are `new_ones` or those of the attempt before:
  // hides the others, unless they are hidden already. The same.
  const char* hide_cgroups(const sublet_order& order, bool new_ones);

  // 0: there is none, or it is not used by the attempt.
  pid_t init() const { return used_ ? init_ : 0; }
  // The program has ended: have the first process say when no other is left. Does nothing the
  // second time: another answer would be taken for that of the next attempt.
  void ask();
  // Instead of that, of a program that never had another process or thread, and has been waited
  // for: whether this process can see that nothing is left. It does not disturb the first process.
  bool is_left_clean();
  // Readable when it says so, or has ended; -1: there is nothing to wait for.
  int poll_fd() const { return question_ == Question::kAsked ? first_ + kReport : -1; }
  // Whether it says so.
  bool is_empty();
  // Processes were left nevertheless: it is not kept.
  void spoil() { clean_ = false; }
  // It has ended, and was waited for.
  void lose();
  // The same of a child that may be the fork server. False: it is another.
  bool lose_server(pid_t ended) { return server_.forget(ended); }
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
    bool covers_cgroups;  // they have to be hidden
    Cover cover;
    char folder[PATH_MAX];  // of the present attempt
  };
  enum class Question { kNone, kAsked, kAnswered };
  // Descriptors, from first_ on.
  enum {
    kReport,
    kOwnProcesses,
    kOwnMounts,
    kOwnMessages,
    kProcesses,
    kMounts,
    kMessages,
    kQueues,
    kFresh,  // one for each place
  };

  bool fits(const sublet_order& order);
  static bool find_attempts(struct stat* folder);
  bool make(const sublet_order& order);
  bool open_namespaces() const;
  bool open_places();
  template <typename Work>
  bool in_its_mounts(Work work) const;
  bool can_be_entered();
  bool go_back(int root, int folder) const;
  bool can_be_served(const sublet_order& order, const Cgroups& cgroups) const;
  bool are_cgroups_hidden(const sublet_order& order, bool new_ones) const;
  pid_t fork_directly(Cgroups& cgroups, const Beginning& beginning) const;
  bool is_silent() const;
  void forget();
  void note_terms(const sublet_order& order);
  pid_t start(const sublet_order& order, int ours, int report);
  [[noreturn]] void be_starter(const sublet_order& order, int report, int told);
  [[noreturn]] void be_first(int report, Walls& walls);
  bool is_clean(int queues) const;
  bool has_messages() const;
  void end_first();

  const int first_;
  const bool filters_calls_;  // the kernel
  Notes notes_;
  ForkServer server_;
  bool served_ = false;      // the present attempt
  bool was_used_ = false;    // by another attempt before
  int server_failures_ = 0;  // in a row, in this room
  int failures_ = 0;         // to make a room, in a row
  bool used_ = false;        // by the present attempt
  Question question_ = Question::kNone;
  bool clean_ = false;
  bool can_look_ = false;    // the places are open
  bool has_queues_ = false;  // and that of the message queues
  pid_t init_ = 0;
  struct stat attempts_ = {};  // the folder of all of them, as it is shown
  char user_[SUBLET_USER_MAX_BYTES + 1] = {};
  int64_t uid_ = -1;
  int64_t gid_ = -1;
  int64_t memory_ = 0;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_ROOM_H_

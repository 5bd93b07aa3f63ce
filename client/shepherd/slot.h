// What a shepherd keeps from one attempt to the next: the link to its client, the connection to
// the monitor, signals and a timer, namespaces and cgroups; and the loop that runs the attempts,
// one at a time. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_SLOT_H_
#define SUBLET_CLIENT_SHEPHERD_SLOT_H_

#include "attempt/format.h"
#include "client/shepherd/cgroups.h"
#include "client/shepherd/links.h"
#include "client/shepherd/system.h"
#include "client/shepherd/walls/room.h"
#include "protocol/frame.h"

namespace sublet::shepherd {

class Slot {
 public:
  // In memory that this process shares with its children. Null with errno.
  static Slot* make();
  // Runs the attempts that the client names, until it hangs up, somebody ends this process, or an
  // attempt could not be run or recorded: then another process is to run the next one. Descriptor
  // 3 is the link to the client. Returns the exit status, that of the last attempt.
  int run(const char* state_folder);

  const BootId& boot_id() const { return boot_id_; }
  // Of this process, field 22 of /proc/PID/stat.
  int64_t start_time();
  int signals() const { return kSignals; }
  int timer() const { return kTimer; }
  // -1: there is no connection.
  int monitor() const { return connected_ ? kMonitor : -1; }
  // Says who runs now. Connects if need be, and forgets what the monitor has sent until now. False
  // with errno.
  bool meet_monitor(const char* path, const sublet_frame& hello);
  void lose_monitor();
  // The same of an attempt that has ended. If it may, and the next one waits, what that says is
  // enough. False: there is no connection.
  bool tell_end(const sublet_frame& ended, bool may_wait);
  // Now, if it has not been said yet.
  void say_owed_end();
  // /proc; -1 with errno.
  int proc();
  Room& room() { return room_; }
  Cgroups& cgroups() { return cgroups_; }
  // Where the folder of the room's temporary files is between two attempts.
  const char* kept() const { return kept_; }
  // Listens on `control` in the attempt's folder. False with errno.
  bool listen();
  int listener() const { return kListener; }
  // The attempt has ended, in whose folder this process is.
  void stop_listening();
  // Whether the client has taken it back, or is gone: an order that has waited here for the end of
  // another one then starts no more. The client may have given it to another shepherd.
  static bool is_taken_back(const sublet_frame& order, int connection) {
    return is_behind(order) && is_hung_up(connection);
  }
  void note_end(bool had_to_leave) { had_to_leave_ = had_to_leave; }
  // The link, if the next order may still come; else -1.
  int link() const { return next_connection_ < 0 && !link_lost_ ? kLink : -1; }
  // The connection of the next order if the client may take that back: it then hangs up
  // (POLLRDHUP). Else -1.
  int next_connection() const { return is_behind(next_) ? next_connection_ : -1; }
  // Takes the next order from the link. It waits here and not there: as long as a descriptor is in
  // any Unix socket of the machine, the kernel looks for lost ones whenever one is closed.
  void take_order();
  // If the client has taken the next order back: another one may come.
  void drop_order();
  // To end after this attempt.
  void stop() { stopped_ = true; }

 private:
  Slot() { kept_[0] = kept_control_[0] = 0; }

  // Descriptors. What an attempt opens gets higher numbers, and is closed after it.
  enum {
    kLink = 3,
    kSignals,
    kTimer,
    kMonitor,
    kListener,
    kProc,
    kRoom,
    kCgroups = kRoom + Room::kDescriptors,
    kFirstOfAttempt = kCgroups + Cgroups::kDescriptors
  };

  static bool is_behind(const sublet_frame& order) { return order.arg[0] != 0; }
  bool has_next() const { return next_connection_ >= 0; }
  // Null, or what failed, with errno.
  const char* prepare();
  void wait();
  int run_next();
  bool say_end(const sublet_frame& ended);
  int run_attempt(const char* folder, const sublet_frame& order, int connection);
  // What the attempt has opened; not the connection of the next one.
  bool close_attempts() const;

  const char* state_folder_ = "";
  // Only what is written of these is memory that every slot has.
  char kept_[SUBLET_PATH_MAX_BYTES + 1];
  BootId boot_id_;
  Room room_{kRoom};
  Cgroups cgroups_{kCgroups};
  bool connected_ = false;
  bool owes_end_ = false;  // the monitor has not heard yet of this one
  sublet_frame end_ = {};
  bool owed_ = false;  // the same of the attempt before the present one
  bool has_proc_ = false;
  int64_t start_time_ = -1;
  // The socket of `control` is kept, and its name goes from folder to folder.
  bool listens_ = false;
  char kept_control_[SUBLET_PATH_MAX_BYTES + 16];
  // The order that is next, and its connection; -1: there is none yet.
  sublet_frame next_ = {};
  int next_connection_ = -1;
  bool link_lost_ = false;
  bool had_to_leave_ = false;  // the last attempt
  bool stopped_ = false;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_SLOT_H_

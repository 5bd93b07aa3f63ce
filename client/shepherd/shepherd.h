// One attempt from its order to its exit record: the loop around the pure state machine
// of protocol/shepherd.h. After the program has started, nothing on the path from a
// frame of the monitor to the end of the job allocates, logs, syncs or waits for a disk. What it
// opens is closed by the slot, and what it leaves uninitialised is set by its first phase.
#ifndef SUBLET_CLIENT_SHEPHERD_SHEPHERD_H_
#define SUBLET_CLIENT_SHEPHERD_SHEPHERD_H_

#include <poll.h>
#include <stdint.h>
#include <sys/resource.h>

#include "attempt/format.h"
#include "attempt/processes.h"
#include "checkpoint-api/sublet_status.h"
#include "client/shepherd/bounds.h"
#include "client/shepherd/launch.h"
#include "client/shepherd/links.h"
#include "client/shepherd/output.h"
#include "client/shepherd/walls/places.h"
#include "client/shepherd/weight.h"
#include "client/shepherd/whole_files.h"
#include "protocol/shepherd.h"

namespace sublet::shepherd {

class Slot;

class Shepherd {
 public:
  explicit Shepherd(Slot& slot) : slot_(slot) {}
  // Runs the attempt of the current folder, which is the one that the client asked for; returns
  // the exit status. `connection`: its control connection.
  int run(const sublet_frame& asked, int connection);

  // Exit statuses.
  static constexpr int kDone = 0;  // the exit record is written, or there was nothing to run
  static constexpr int kUsage = 64;
  static constexpr int kBadOrder = 65;  // the order is missing or invalid
  static constexpr int kRefused = 73;   // this attempt was started before
  static constexpr int kNoRecord = 74;  // the exit record could not be written

 private:
  // Start. Each returns null, or the step that failed, with errno.
  const char* load_order(const sublet_frame& asked);
  const char* prepare();
  bool open_folder();
  const char* make_status_page();
  bool clear_status_page(int64_t size);
  bool watch_traffic();
  const char* start_process();
  const char* write_record();
  bool add_environment();

  // The loop.
  void loop();
  void wait_for_news(pollfd* fds, int count);
  void set_timer();
  void read_monitor();
  void read_control(int i);
  void read_launch();
  void read_signals();
  void reap();
  bool has_left_nothing();
  void look_who_is_left();
  void forget_init();
  void identify();
  void look_after(int64_t now);
  void measure();
  void give_room();
  bool has_too_many_processes() const;
  bool has_own_account() const;
  void check_limits(int64_t now);
  int64_t refresh_interval_ns() const;
  void look_at_status();
  void tell_message(int socket);
  void look_for_handlers(int64_t now);

  void act(uint32_t actions, int64_t now);
  void note_leave(int64_t now);
  protocol::TermAnswer term_answer();
  bool ask_to_leave();
  void look_at_files();
  int leave_signal() const;
  bool killed_by_others() const;
  uint32_t requests_seen() const;
  void answer(int socket, const sublet_frame& asked, uint32_t actions);
  sublet_frame new_frame(sublet_frame_kind kind) const;
  sublet_frame status_frame();

  // The end.
  int finish();
  int end_before_start(const char* step, int error);
  int conclude(const sublet_exit& end);
  void fill_outcome(sublet_exit* end) const;
  int64_t limit_of_its_death(const sublet_exit& end) const;
  int64_t bound_of(int64_t limit) const;
  void fill_usage(sublet_exit* end);
  void fill_checkpoint(sublet_exit* end);
  void fill_steps(sublet_exit* end) const;
  bool write_exit(const sublet_exit& end);

  Slot& slot_;
  sublet_order order_;
  protocol::ShepherdMachine machine_{protocol::ShepherdTerms{}, 0};
  AttemptProcesses processes_;
  Weight weight_;
  Bounds bounds_;
  Output output_;
  Launch launch_;
  TemporaryFolders temporary_folders_;
  LaunchFailure failure_ = {};
  Control control_;
  int folder_ = -1;
  int status_ = -1;
  int exit_file_ = -1;      // with room for the exit record; -1: there was none
  int64_t job_start_ = -1;  // as in the record; -1: to be looked up
  int64_t timer_set_ns_ = -1;

  bool main_gone_ = false;
  bool term_handled_ = false;   // by a process of the job, when it was asked to leave
  bool handler_found_ = false;  // the same, as of the last look; see look_for_handlers()
  bool all_gone_ = false;
  bool room_is_empty_ = false;  // says its first process
  bool more_to_reap_ = false;
  int64_t empty_by_ns_ = INT64_MAX;  // what is then left of its processes is killed:
  uint32_t kill_left_ = 0;           // by these actions
  int rounds_ = 0;                   // of killing them
  int main_status_ = 0;
  int64_t ended_ns_ = 0;
  // Of its leaving, in CLOCK_BOOTTIME; 0: not yet.
  struct Steps {
    int64_t sensed = 0;
    int64_t told = 0;
    int64_t demoted = 0;
    int64_t save_asked = 0;
  };
  Steps steps_;
  uint32_t sensed_ = 0;  // enum sublet_presence_reason
  int64_t limit_ = SUBLET_LIMIT_NONE;
  int64_t next_refresh_ns_ = 0;
  bool lift_refused_ = false;  // for now
  bool looked_at_files_ = false;
  bool rations_ = false;     // what it uses of its ration is being counted
  bool was_closed_ = false;  // the folder, before this began
  bool start_told_ = false;
  int64_t next_look_ns_ = 0;  // for handlers
  int64_t look_interval_ns_ = 0;
  int64_t next_room_ns_ = INT64_MAX;  // while it grows fast; see Bounds::give_room()
  bool awaits_growth_ = false;        // wants to be told when its room is used up
  uint32_t requests_before_ = 0;      // seen, and the newest generation, when asked to leave
  uint64_t generation_before_ = 0;
  int64_t cpu_us_ = 0;  // as of the client's last query
  AttemptUse use_;      // when it was last measured
  AttemptUse peak_;
  int counts_over_ = 0;  // in a row, with more processes than it may have
  struct rusage usage_ = {};
  sublet_status seen_ = {};
  // The working folder, the order, and two variables for the job, one behind the other: each page
  // that is written to is memory that every slot has.
  static constexpr size_t kNameBytes = SUBLET_PATH_MAX_BYTES + 64;
  char text_[SUBLET_ORDER_MAX_BYTES + 1 + 3 * kNameBytes];
  size_t text_used_ = 0;
  char out_[SUBLET_RECORD_MAX_BYTES];
  WholeFiles whole_{out_, sizeof out_};  // between record and exit record
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_SHEPHERD_H_

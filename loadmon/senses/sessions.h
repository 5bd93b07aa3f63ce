// Who is logged in, by logind's word on the system bus: a login, also over ssh, a screen that is
// unlocked and a session that comes to the front are the owner. A graphical session whose input
// no other sense sees is the owner all the time, and so is a program that asks logind not to take
// the machine for idle (a film), or one that fills the screen of a session in front that is not
// locked. Before the machine sleeps, jobs save and leave; logind is asked to
// wait for that (it does for 5 s, unless it is set otherwise).
//
// Nothing here waits for the bus: questions are sent, and answers are read when they come. One
// thread.
#ifndef SUBLET_LOADMON_SENSES_SESSIONS_H_
#define SUBLET_LOADMON_SENSES_SESSIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/senses/sense.h"
#include "loadmon/senses/shown_sessions.h"

struct sd_bus;
struct sd_bus_message;

namespace sublet::loadmon {

class Sessions : public Sense {
 public:
  // What other senses know, and the jobs.
  struct Others {
    std::function<std::vector<WatchedDesktop>()> desktops;
    std::function<bool()> devices_see;  // input of sessions at this machine
    std::function<bool()> jobs_run;     // whether there are attempts here
  };

  // `film_ms`: how long after the last input a full-screen program counts as a film. Uses the bus
  // of $DBUS_SYSTEM_BUS_ADDRESS if that is set. Throws OsError only if there are no descriptors
  // left.
  Sessions(Others others, int64_t film_ms);
  ~Sessions() override;

  std::string name() const override { return "sessions"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  int handle() const override { return events_.get(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;
  std::string problem() const override { return missing_; }
  std::string absence() const override;

 private:
  static constexpr int64_t kUnseen = std::numeric_limits<int64_t>::min();
  // The functions that the bus calls.
  struct Callbacks;
  struct Unref {
    void operator()(sd_bus* bus) const;
  };
  // A question to logind, until its answer has been handled.
  struct Question {
    Sessions* asker;
    std::string path;  // of the object that was asked
    void (Sessions::*handle)(sd_bus_message* answer, const std::string& path);
  };
  using Handle = decltype(Question::handle);

  // Of the library for the bus, on another thread.
  void begin_to_load();
  // Whether the library is there; begins to load it when there is a bus.
  bool can_connect(int64_t now);
  void connect(int64_t now);
  // Begins to ask, when logind is new to this connection.
  void begin();
  // The bus is not there, or not any more.
  void lose(const std::string& why, int64_t now);
  void process(int64_t now);
  // To wake up for what the bus waits for.
  void update_events();
  bool watch_signals();
  // `types` and what follows: the arguments, as for sd_bus_message_append.
  void ask(const std::string& path, const char* interface, const char* member, Handle handle,
           const char* types, ...);

  void list();
  void examine(const std::string& path);
  void inhibit_sleep();
  void ask_who_inhibits();
  void listed(sd_bus_message* answer, const std::string& path);
  void idle_inhibited(sd_bus_message* answer, const std::string& path);
  void examined(sd_bus_message* answer, const std::string& path);
  void inhibited(sd_bus_message* answer, const std::string& path);

  void fill(int64_t now, protocol::PresenceSample* sample) const;
  // The graphical sessions, and what is known of them from others.
  void look_at_desktops(int64_t now, protocol::PresenceSample* sample) const;
  bool is_film(const WatchedDesktop& desktop, int64_t now, int64_t input_age_ms) const;

  const Others others_;
  const int64_t film_ms_;
  std::shared_future<std::string> library_;  // why it could not be loaded
  UniqueFd events_;                          // epoll: the bus
  std::unique_ptr<sd_bus, Unref> bus_;
  int watched_ = -1;        // the bus's descriptor in events_
  bool was_there_ = false;  // logind has answered
  std::string missing_;     // why it does not; "": it does, or has not yet
  int64_t missed_at_ = 0;   // since when, if it was there; CLOCK_BOOTTIME, ns
  int64_t retry_at_ = 0;    // CLOCK_BOOTTIME, ns
  std::string failure_;     // of the connection, while it is being used
  int64_t now_ = 0;         // of the call that is being carried out
  std::map<const Question*, std::unique_ptr<Question>> questions_;
  std::map<std::string, Session> sessions_;  // by path
  std::set<std::string> arriving_;           // paths of logins that are being examined
  UniqueFd delay_;                           // while it is open, logind delays the sleep
  bool sleeps_ = false;
  bool attends_ = false;       // a program asks that the machine does not count as idle
  int64_t seen_at_ = kUnseen;  // CLOCK_BOOTTIME, ns
  protocol::Place seen_in_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_SESSIONS_H_

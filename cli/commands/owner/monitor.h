// What is said at the load monitor's owner.sock, and its answers. Needs no server.
#ifndef SUBLET_CLI_COMMANDS_OWNER_MONITOR_H_
#define SUBLET_CLI_COMMANDS_OWNER_MONITOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "protocol/frame.h"

namespace sublet::cli {

// How long an answer is waited for, unless --timeout says otherwise.
constexpr int64_t kOwnerPatienceMs = 5'000;

struct SeenBySense {
  std::string sense, value;
  bool keeps_jobs_away = false;
};

// A job that is here or leaving, and what it uses; -1: not known.
struct JobHere {
  uint64_t job = 0;
  uint32_t attempt = 0;
  int64_t cpu_ms = -1;  // since it started
  int64_t memory = -1;  // bytes
  int64_t processes = -1;
  int64_t network = -1;  // bytes sent and received since it started
};

// Rules of one user, or of everybody.
struct OwnersPair {
  bool fixed = false;     // the administrator's
  std::string user;       // it counts only while this one is logged in there, "": always,
  bool anywhere = false;  // or anywhere in the pool
  std::string idle_when, evict_when;
};

struct OwnerAnswer {
  sublet_frame status = {};
  std::vector<JobHere> attempts;
  std::vector<SeenBySense> senses;  // in answer to STATUS
  std::vector<OwnersPair> rules;    // in answer to RULES
  std::string complaint;            // why it was refused, if the monitor says so in words
};

struct OwnerWord {
  sublet_owner_word word = SUBLET_OWNER_STATUS;
  int64_t length_ms = 0;  // of PAUSE and LEND; 0: without end
  std::string text = {};  // of RULES: the pair to set; empty: none
};

// Says the word to the monitor of the first of these state folders that has one. Throws PoolError:
// none answers within the patience, or it refuses the word.
OwnerAnswer say_to_monitor(const std::vector<std::string>& folders, const OwnerWord& word,
                           int64_t patience_ms);

// "input"; as idl/types.idl, PRESENCE_...
std::string presence_name(uint32_t reason);
// The name of an account, as well as it is known here.
std::string user_name(int64_t uid);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_OWNER_MONITOR_H_

// How a program that does not know Sublet keeps its work: the files in which it saves its state
// itself (OwnCheckpoint of idl/types.idl). Values; pure functions; any thread.
#ifndef SUBLET_JOB_OWN_CHECKPOINT_H_
#define SUBLET_JOB_OWN_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sublet {

struct OwnCheckpoint {
  std::vector<std::string> files{};    // job/output_name.h; empty: it saves none
  int64_t every_ms = 0;                // between copies while it runs; 0: as the machine chooses
  uint32_t signal = 0;                 // that asks it to save and end; 0: SIGTERM
  std::vector<uint32_t> exit_codes{};  // that say "saved, go on with me"; empty: 75 and 85

  bool is_set() const { return !files.empty(); }
  // Whether a program that ended by itself with this status asks to be run again. 75 is
  // EX_TEMPFAIL, with which programs that use the checkpoint API leave; 85 is that of Condor's
  // self-checkpointing programs.
  bool says_saved(int64_t exit_status) const;
  bool operator==(const OwnCheckpoint&) const = default;
};

inline constexpr size_t kCheckpointFiles = 64;              // names and patterns
inline constexpr size_t kCheckpointNameOctets = 64 * 1024;  // together
inline constexpr size_t kCheckpointCodes = 16;              // exit codes
inline constexpr int64_t kLeastEveryMs = 1'000;
inline constexpr int64_t kMostEveryMs = int64_t{30} * 24 * 3600 * 1000;

// What is wrong with it, as "the checkpoint file `a//` ..."; "": nothing.
std::string wrong_with(const OwnCheckpoint& own);

// The signals with which a program may be asked to save, by the names that kill(1) knows without
// SIG: HUP, INT, QUIT, USR1, USR2, TERM.
std::string signal_name(uint32_t signal);                     // of another: ""
std::optional<uint32_t> signal_named(std::string_view name);  // with or without SIG, any case
std::vector<std::string> signal_names();

}  // namespace sublet

#endif  // SUBLET_JOB_OWN_CHECKPOINT_H_

// Moves the contents of files for one task of an attempt. What is little is done here. From
// kMostHere bytes on a process of its own does it with the weight of a job, because checksums and
// copies of gigabytes would cost the owner a core: not threads, because one that hardly runs could
// hold the lock of the heap while the rest of the client waits for it.
//
// For one worker's thread, by which also the process is ended: at the latest by the destructor.
// Every operation throws TaskStopped soon after AttemptWork::stop, and ServerError (kAway) if the
// process dies; the attempt's later tasks then move everything here.
#ifndef SUBLET_CLIENT_MOVER_MOVER_H_
#define SUBLET_CLIENT_MOVER_MOVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attempt/cgroup.h"
#include "base/process.h"
#include "client/attempts/work.h"
#include "client/mover/contents.h"
#include "client/mover/messages.h"
#include "client/staging/pace.h"

namespace sublet::client {

struct TaskStopped {};

struct MoverSettings {
  std::vector<std::string> command;  // of the process: see process.h; empty: no process
  std::string shepherd_program;
  AttemptCgroups cgroups;
};

class Mover {
 public:
  // What costs nobody more than a few milliseconds.
  static constexpr uint64_t kMostHere = 4 << 20;

  Mover(AttemptWork& work, ServerCalls& server, Pace& pace, const MoverSettings& settings);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // From now on it moves a checkpoint, for which the server waits a minute: not by the process
  // while the owner is here, who may leave it no CPU time, but by the pace. If he comes back
  // meanwhile, this throws ServerError (kAway).
  void move_checkpoint(bool is_checkpoint) { is_checkpoint_ = is_checkpoint; }

  // Is told the bytes of every chunk that has been read or sent.
  void on_progress(std::function<void(uint64_t)> passed) { passed_ = std::move(passed); }

  // As in contents.h.
  ReceivedContent receive(const WantedContent& wanted, int file, int copy, uint64_t* offset);
  bool copy(int from, int to, uint64_t size, const Digest& digest);
  Digest digest(int file, uint64_t size);
  void send(int file, uint64_t size, uint64_t upload, uint64_t offset);

 private:
  class Turns;
  struct Process {
    UniqueFd socket;
    SpawnedProcess keeper;  // its parent, which removes its cgroup
  };

  // Whether the process is to move so many bytes more. Starts it if it must.
  bool elsewhere(uint64_t bytes);
  void start();
  void end();
  MoverReport ask(const MoverTask& task, const std::vector<int>& files);
  MoverReport hear();
  bool must_end() const;
  [[noreturn]] void give_up();
  [[noreturn]] void died();

  AttemptWork& work_;
  ServerCalls& server_;
  Pace& pace_;
  const MoverSettings& settings_;
  std::function<void(uint64_t)> passed_ = [](uint64_t) {};
  bool is_checkpoint_ = false;
  uint64_t moved_here_ = 0;
  std::optional<Process> process_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MOVER_MOVER_H_

// Servers and clients of echo.idl in separate processes, because a process can start
// the ORB only once. The test process itself never starts it.
#ifndef SUBLET_TRANSPORT_TESTING_ECHO_WORLD_H_
#define SUBLET_TRANSPORT_TESTING_ECHO_WORLD_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "echo.hh"
#include "transport/orb.h"

namespace sublet::testing {

// A temporary folder, removed with its contents.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A forked child; killed and reaped by the destructor.
class Process {
 public:
  explicit Process(const std::function<int()>& body);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  pid_t pid() const { return pid_; }
  // The exit code; 128 + the signal that ended it; -1 if it is still running after
  // deadline_ms.
  int wait(int deadline_ms);
  bool alive();

 private:
  pid_t pid_;
  int code_ = -1;
};

// An echo server; it is ready when the constructor returns.
class Server {
 public:
  // prepare runs in the server's process before its ORB starts.
  explicit Server(const std::function<void(OrbSettings&)>& prepare = {});
  const std::string& socket() const { return socket_; }
  pid_t pid() const { return process_->pid(); }
  bool alive() { return process_->alive(); }
  // Asks the server to shut down its ORB; returns its exit code.
  int stop();
  // Of its door for remote members; 0: it has none.
  uint16_t port() const;
  // The lines that the guard has logged so far.
  std::string log() const;

 private:
  Folder folder_;
  std::string socket_;
  std::unique_ptr<Process> process_;
};

// Echo::text over the ORB's own unguarded transport, for comparison.
class PlainServer {
 public:
  PlainServer();
  const std::string& socket() const { return socket_; }
  pid_t pid() const { return process_->pid(); }
  bool alive() { return process_->alive(); }

 private:
  Folder folder_;
  std::string socket_;
  std::unique_ptr<Process> process_;
};

// Runs serve in a child and returns when it is ready, which it signals by writing a
// byte to the given descriptor.
std::unique_ptr<Process> start_server(const std::function<int(int ready)>& serve);

// Serves echo.idl in this process until SIGTERM; writes a byte to `ready` when it is
// ready.
int serve_echo(const OrbSettings& settings, int ready);

// Runs body in a new process with its own ORB; true if body returned true.
// Exceptions are printed and count as false.
bool in_client(const OrbSettings& settings, const std::function<bool(Orb&)>& body,
               int deadline_ms = 60'000);

EchoTest::Echo_ptr find_echo(const Orb& orb, const std::string& socket);

// Attaches an object of this process that the server can call to a new session. False
// if the server refuses.
bool attach_sink(const Orb& orb, EchoTest::Echo_ptr echo);
// The same over the connection to the server at this socket, whatever address the server
// has for itself.
bool attach_sink_over(const Orb& orb, const std::string& socket);

// A plain socket connected to the server; -1 on failure.
int dial(const std::string& socket);
// Waits until the other side has closed; false after deadline_ms.
bool closed_by_peer(int socket, int deadline_ms);
// Writes all; false if the other side has closed.
bool write_all(int socket, std::string_view bytes);

}  // namespace sublet::testing

#endif  // SUBLET_TRANSPORT_TESTING_ECHO_WORLD_H_

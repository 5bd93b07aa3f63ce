// What this machine is, and its identity in the pool. Any thread; the
// identity file has one writer, the session's thread.
#ifndef SUBLET_CLIENT_MACHINE_MACHINE_H_
#define SUBLET_CLIENT_MACHINE_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/link/server_calls.h"

namespace sublet::client {

// Platform, cores and memory as the kernel reports them; name "" is the host's, slots
// 0 the number of cores.
MachineFacts find_facts(const std::string& name, int64_t slots, const std::string& state_folder);
uint64_t memory_free();  // bytes an ordinary program could still get

// state/machine: 0600, atomic. No such file: a new machine. Throws FileError, or
// RecordError when it is damaged (the administrator decides then: a new id must
// not be taken silently).
MachineIdentity read_identity(const Files& files, const std::string& state_folder);
// The same; a machine that has none yet gets a secret of its own, on disk before
// it first shows it, so that a join whose answer is lost can be repeated.
MachineIdentity ensure_identity(Files& files, const std::string& state_folder);
void write_identity(Files& files, const std::string& state_folder, const MachineIdentity& identity);

// Who may be the server behind this socket: the owner of its folder, since only
// that account can put a socket there. Throws std::runtime_error when others may
// write to the folder; our own account when there is no folder yet.
uint32_t expected_server_uid(const std::string& socket_path);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MACHINE_H_

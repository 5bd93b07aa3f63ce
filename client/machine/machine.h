// The properties of this machine, and its identity in the pool. Any thread; only the
// session thread writes the identity file.
#ifndef SUBLET_CLIENT_MACHINE_MACHINE_H_
#define SUBLET_CLIENT_MACHINE_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/link/server_calls.h"

namespace sublet::client {

// Platform, cores and memory as the kernel reports them. name "": the host's name;
// slots 0: the number of cores.
MachineFacts find_facts(const std::string& name, int64_t slots, const std::string& state_folder);
// Adds what the machine offers besides: what its owner says (`named`), and its GPUs, which are
// found below `root` unless he names "gpu".
void add_resources(const rules::NamedAmounts& named, const std::string& root, MachineFacts* facts);
// The owner's part of the memory, in bytes: `reserve`, but half of the memory at most.
uint64_t owners_memory(const MachineFacts& facts, uint64_t reserve);
// A slot's part of the rest.
uint64_t slot_memory(const MachineFacts& facts, uint64_t reserve);
uint64_t memory_free();  // bytes that a program could still allocate

// Reads STATE/machine (mode 0600, written atomically). If there is none, this is a new
// machine. Throws FileError, or RecordError if it is damaged: the administrator must
// decide, since a new id must not be taken silently.
MachineIdentity read_identity(const Files& files, const std::string& state_folder);
// The same, but creates a secret for a new machine. It is on disk before it is first
// sent, so that a join whose answer is lost can be repeated.
MachineIdentity ensure_identity(Files& files, const std::string& state_folder);
void write_identity(Files& files, const std::string& state_folder, const MachineIdentity& identity);

// The account that the server on this socket must have: the owner of its folder, since
// only that account can create a socket there. Throws std::runtime_error if others may
// write to the folder; our own account if the folder does not exist yet.
uint32_t expected_server_uid(const std::string& socket_path);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MACHINE_H_

#include "client/machine/machine.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "base/random.h"
#include "client/attempts/record.h"
#include "client/machine/gpus.h"

namespace sublet::client {
namespace {

constexpr char kTitle[] = "sublet-machine";
constexpr uint64_t kIdentityMaxBytes = 64 << 10;

std::string identity_path(const std::string& state_folder) { return state_folder + "/machine"; }

uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

MachineFacts find_facts(const std::string& name, int64_t slots, const std::string& state_folder) {
  utsname system;
  if (uname(&system) != 0) throw OsError(errno, "ask for", "the name of this machine");
  struct sysinfo memory;
  if (sysinfo(&memory) != 0) throw OsError(errno, "ask for", "the memory of this machine");
  MachineFacts facts;
  facts.name = name.empty() ? system.nodename : name;
  facts.os = system.sysname;
  std::ranges::transform(facts.os, facts.os.begin(), [](unsigned char c) { return tolower(c); });
  facts.architecture = system.machine;
  facts.cores = usable_cores();
  facts.slots = slots > 0 ? static_cast<uint32_t>(slots) : facts.cores;
  facts.memory = uint64_t{memory.totalram} * memory.mem_unit;
  facts.disk = system_files().free_bytes(state_folder);
  facts.version = SUBLET_VERSION;
  return facts;
}

void add_resources(const rules::NamedAmounts& named, const std::string& root, MachineFacts* facts) {
  facts->gpus = find_gpus(root);
  facts->resources = named;
  if (!named.has(kGpu)) facts->resources.set(kGpu, facts->gpus.size());
  const uint64_t offered = facts->resources.of(kGpu);
  // Those that have no device here are called by their numbers.
  for (uint64_t i = facts->gpus.size(); i < offered; ++i) facts->gpus.push_back(std::to_string(i));
  facts->gpus.resize(offered);
  facts->resources.forget_zeros();
}

uint64_t owners_memory(const MachineFacts& facts, uint64_t reserve) {
  return std::min(reserve, facts.memory / 2);
}

uint64_t slot_memory(const MachineFacts& facts, uint64_t reserve) {
  return (facts.memory - owners_memory(facts, reserve)) / std::max(1u, facts.slots);
}

uint64_t memory_free() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  uint64_t kb = 0;
  std::string unit;
  while (in >> key >> kb) {
    std::getline(in, unit);
    if (key == "MemAvailable:") return kb * 1024;
  }
  return 0;
}

MachineIdentity read_identity(const Files& files, const std::string& state_folder) {
  std::string path = identity_path(state_folder);
  if (!files.exists(path)) return {};
  try {
    RecordReader in(kTitle, files.read_file(path, kIdentityMaxBytes));
    return {in.count("machine"), in.text("secret")};
  } catch (const RecordError& error) {
    throw RecordError(path + ": " + error.what() +
                      ". Restore it, or remove it to register as a new machine.");
  }
}

void write_identity(Files& files, const std::string& state_folder,
                    const MachineIdentity& identity) {
  RecordWriter out(kTitle);
  out.add("machine", identity.machine).add("secret", identity.secret);
  files.write_atomic(identity_path(state_folder), out.finish(), 0600);
}

MachineIdentity ensure_identity(Files& files, const std::string& state_folder) {
  MachineIdentity identity = read_identity(files, state_folder);
  if (!identity.secret.empty()) return identity;
  identity.secret = random_bytes(32);
  write_identity(files, state_folder, identity);
  return identity;
}

uint32_t expected_server_uid(const std::string& socket_path) {
  std::string folder = folder_of(socket_path);
  struct stat info;
  if (stat(folder.c_str(), &info) != 0) return geteuid();
  bool others = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (others)
    throw std::runtime_error(folder +
                             " is writable by others, who could impersonate the server: change its "
                             "mode, or set server_uid");
  // In a folder like /tmp anyone may create a socket: its owner must then be us or
  // root.
  if ((info.st_mode & S_IWOTH) != 0) return geteuid();
  return info.st_uid;
}

}  // namespace sublet::client

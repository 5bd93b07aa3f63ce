#include "attempt/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/local_socket.h"

namespace sublet {
namespace {

std::string print(const sublet_format& format, const void* values) {
  std::string text(sublet_format_print(&format, values, nullptr, 0), '\0');
  sublet_format_print(&format, values, text.data(), text.size());
  return text;
}

// `text` keeps the bytes that *out points into.
bool parse(const sublet_format& format, std::string& text, void* out, std::string* error) {
  unsigned line = 0;
  const char* wrong = sublet_format_parse(&format, text.data(), text.size(), out, &line);
  if (wrong) *error = "line " + std::to_string(line) + ": " + wrong;
  return wrong == nullptr;
}

size_t point_at(const std::vector<std::string>& from, char** to, size_t most) {
  size_t count = std::min(from.size(), most);
  for (size_t i = 0; i < count; ++i) to[i] = const_cast<char*>(from[i].c_str());
  return count;
}

bool holds_nul(const AttemptOrder& order) {
  auto bad = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  return bad(order.program) || bad(order.work) || bad(order.user) || bad(order.standard_input) ||
         bad(order.monitor) || bad(order.server) || bad(order.cgroup_unified) ||
         bad(order.cgroup_cpu) || bad(order.cgroup_memory) || bad(order.cgroup_processes) ||
         bad(order.boot_id) || std::ranges::any_of(order.arguments, bad) ||
         std::ranges::any_of(order.environment, bad) || std::ranges::any_of(order.own_files, bad);
}

// The numbers have the same names on both sides.
template <typename From, typename To>
void copy_order_numbers(const From& from, To& to) {
  to.job = from.job;
  to.attempt = from.attempt;
  to.uid = from.uid;
  to.gid = from.gid;
  to.umask = from.umask;
  to.stdout_limit = from.stdout_limit;
  to.stderr_limit = from.stderr_limit;
  to.limit_cpu_s = from.limit_cpu_s;
  to.limit_wall_s = from.limit_wall_s;
  to.limit_memory = from.limit_memory;
  to.slot_memory = from.slot_memory;
  to.limit_file = from.limit_file;
  to.limit_disk = from.limit_disk;
  to.limit_processes = from.limit_processes;
  to.limit_open_files = from.limit_open_files;
  to.walls = from.walls;
  to.no_network = from.no_network;
  to.only_server = from.only_server;
  to.bandwidth = from.bandwidth;
  to.save_deadline_ms = from.save_deadline_ms;
  to.cpu_allowance_ms = from.cpu_allowance_ms;
  to.lease_ns = from.lease_ns;
  to.patience_ms = from.patience_ms;
  to.leaving = from.leaving;
  to.suspend_ms = from.suspend_ms;
  to.save_signal = from.save_signal;
}

std::optional<std::string> read_if_there(const Files& files, const std::string& path,
                                         uint64_t max_bytes, std::string* error) {
  error->clear();
  try {
    return files.read_file(path, max_bytes);
  } catch (const FileError& e) {
    if (e.code() != ENOENT) *error = e.what();
    return std::nullopt;
  }
}

template <typename T>
std::optional<T> read_one(const Files& files, const std::string& path, uint64_t max_bytes,
                          std::optional<T> (*parse_one)(std::string, std::string*),
                          std::string* error) {
  auto text = read_if_there(files, path, max_bytes, error);
  if (!text) return std::nullopt;
  auto value = parse_one(std::move(*text), error);
  if (!value) *error = path + ": " + *error;
  return value;
}

void make_slot_folder(Files& files, const std::string& path, int64_t uid, int64_t gid) {
  files.make_folders(path, 0700, Files::Outlives::kProcess);
  if (uid < 0) return;
  if (lchown(path.c_str(), static_cast<uid_t>(uid), static_cast<gid_t>(gid)) != 0)
    throw FileError(errno, "change the owner of", path);
}

bool parse_name(const std::string& name, AttemptName* out) {
  const char* end = name.data() + name.size();
  auto job = std::from_chars(name.data(), end, out->job);
  if (job.ec != std::errc() || job.ptr == end || *job.ptr != '.') return false;
  auto attempt = std::from_chars(job.ptr + 1, end, out->attempt);
  if (attempt.ec != std::errc() || attempt.ptr != end) return false;
  return name == std::to_string(out->job) + "." + std::to_string(out->attempt);
}

}  // namespace

std::string print_order(const AttemptOrder& order) {
  auto raw = std::make_unique<sublet_order>();
  copy_order_numbers(order, *raw);
  raw->program = order.program.c_str();
  raw->argument_count = point_at(order.arguments, raw->arguments, SUBLET_ORDER_MAX_ARGUMENTS);
  raw->environment_count =
      point_at(order.environment, raw->environment, SUBLET_ORDER_MAX_ENVIRONMENT);
  if (order.arguments.empty()) {
    raw->arguments[0] = const_cast<char*>(order.program.c_str());
    raw->argument_count = 1;
  }
  raw->own_file_count = point_at(order.own_files, raw->own_files, SUBLET_MAX_OWN_FILES);
  raw->work = order.work.c_str();
  raw->standard_input = order.standard_input.c_str();
  raw->user = order.user.c_str();
  raw->monitor = order.monitor.c_str();
  raw->server = order.server.c_str();
  raw->cgroup_unified = order.cgroup_unified.c_str();
  raw->cgroup_cpu = order.cgroup_cpu.c_str();
  raw->cgroup_memory = order.cgroup_memory.c_str();
  raw->cgroup_processes = order.cgroup_processes.c_str();
  raw->boot_id = order.boot_id.c_str();
  return print(sublet_order_format, raw.get());
}

std::optional<AttemptOrder> parse_order(std::string text, std::string* error) {
  auto raw = std::make_unique<sublet_order>();
  if (!parse(sublet_order_format, text, raw.get(), error)) return std::nullopt;
  AttemptOrder order;
  copy_order_numbers(*raw, order);
  order.program = raw->program;
  order.arguments.assign(raw->arguments, raw->arguments + raw->argument_count);
  order.environment.assign(raw->environment, raw->environment + raw->environment_count);
  order.own_files.assign(raw->own_files, raw->own_files + raw->own_file_count);
  order.work = raw->work;
  order.standard_input = raw->standard_input;
  order.user = raw->user;
  order.monitor = raw->monitor;
  order.server = raw->server;
  order.cgroup_unified = raw->cgroup_unified;
  order.cgroup_cpu = raw->cgroup_cpu;
  order.cgroup_memory = raw->cgroup_memory;
  order.cgroup_processes = raw->cgroup_processes;
  order.boot_id = raw->boot_id;
  return order;
}

std::string print_record(const AttemptRecord& record) {
  sublet_record raw = {};
  raw.job = record.job;
  raw.attempt = record.attempt;
  raw.boot_id = record.boot_id.c_str();
  raw.shepherd_pid = record.shepherd.pid;
  raw.shepherd_start = static_cast<int64_t>(record.shepherd.start_time);
  raw.job_pid = record.program.pid;
  raw.job_start = static_cast<int64_t>(record.program.start_time);
  raw.session = record.session;
  raw.uid = record.uid;
  raw.cgroup_unified = record.cgroup_unified.c_str();
  raw.cgroup_cpu = record.cgroup_cpu.c_str();
  raw.cgroup_memory = record.cgroup_memory.c_str();
  raw.cpu_before_us = record.cpu_before_us;
  raw.started_ns = record.started_ns;
  return print(sublet_record_format, &raw);
}

std::optional<AttemptRecord> parse_record(std::string text, std::string* error) {
  sublet_record raw = {};
  if (!parse(sublet_record_format, text, &raw, error)) return std::nullopt;
  AttemptRecord record;
  record.job = raw.job;
  record.attempt = raw.attempt;
  record.boot_id = raw.boot_id;
  record.shepherd = {static_cast<pid_t>(raw.shepherd_pid),
                     static_cast<uint64_t>(raw.shepherd_start)};
  record.program = {static_cast<pid_t>(raw.job_pid), static_cast<uint64_t>(raw.job_start)};
  record.session = raw.session;
  record.uid = raw.uid;
  record.cgroup_unified = raw.cgroup_unified;
  record.cgroup_cpu = raw.cgroup_cpu;
  record.cgroup_memory = raw.cgroup_memory;
  record.cpu_before_us = raw.cpu_before_us;
  record.started_ns = raw.started_ns;
  return record;
}

std::string print_exit(const AttemptExit& end) {
  sublet_exit raw = end.facts;
  raw.step = end.step.c_str();
  raw.place = end.place.c_str();
  raw.boot_id = end.boot_id.c_str();
  return print(sublet_exit_format, &raw);
}

std::optional<AttemptExit> parse_exit(std::string text, std::string* error) {
  AttemptExit end;
  if (!parse(sublet_exit_format, text, &end.facts, error)) return std::nullopt;
  end.step = end.facts.step;
  end.place = end.facts.place;
  end.boot_id = end.facts.boot_id;
  end.facts.step = end.facts.place = end.facts.boot_id = "";
  return end;
}

std::string print_places(const AttemptPlaces& places) {
  auto raw = std::make_unique<sublet_places>();
  raw->hidden_count = point_at(places.hidden, raw->hidden, SUBLET_MAX_PLACES);
  raw->grant_count = point_at(places.grants, raw->grants, SUBLET_MAX_PLACES);
  return print(sublet_places_format, raw.get());
}

std::optional<AttemptPlaces> parse_places(std::string text, std::string* error) {
  auto raw = std::make_unique<sublet_places>();
  if (!parse(sublet_places_format, text, raw.get(), error)) return std::nullopt;
  AttemptPlaces places;
  places.hidden.assign(raw->hidden, raw->hidden + raw->hidden_count);
  places.grants.assign(raw->grants, raw->grants + raw->grant_count);
  return places;
}

std::string attempt_folder(const std::string& state_folder, const AttemptName& name) {
  return state_folder + "/attempts/" + std::to_string(name.job) + "." +
         std::to_string(name.attempt);
}

std::vector<AttemptName> list_attempts(const Files& files, const std::string& state_folder,
                                       std::vector<std::string>* strange) {
  std::vector<AttemptName> found;
  std::string folder = state_folder + "/attempts";
  if (!files.exists(folder)) return found;
  for (const FolderEntry& entry : files.list(folder)) {
    AttemptName name;
    if (entry.is_folder && parse_name(entry.name, &name))
      found.push_back(name);
    else if (strange)
      strange->push_back(entry.name);
  }
  std::ranges::sort(found);
  return found;
}

void make_attempt_folder(Files& files, const std::string& folder, int64_t uid, int64_t gid) {
  files.make_folders(folder_of(folder), 0711, Files::Outlives::kProcess);
  files.make_folders(folder, 0700, Files::Outlives::kProcess);
  make_slot_folder(files, folder + "/" SUBLET_WORK_FOLDER, uid, gid);
  make_slot_folder(files, folder + "/" SUBLET_CHECKPOINT_FOLDER, uid, gid);
}

void write_order(Files& files, const std::string& folder, const AttemptOrder& order) {
  std::string path = folder + "/" SUBLET_ORDER_FILE;
  if (order.arguments.size() > SUBLET_ORDER_MAX_ARGUMENTS ||
      order.environment.size() > SUBLET_ORDER_MAX_ENVIRONMENT)
    throw FileError(EFBIG, "write", path, "Give the job fewer arguments or variables.");
  std::string text = print_order(order);
  if (text.size() > SUBLET_ORDER_MAX_BYTES)
    throw FileError(EFBIG, "write", path, "Give the job shorter arguments or variables.");
  std::string error = "a value contains a NUL byte";
  if (holds_nul(order) || !parse_order(text, &error)) throw FileError(EINVAL, "write", path, error);
  files.write_over(path, text, Files::Outlives::kProcess);
}

void write_places(Files& files, const std::string& state_folder, const AttemptPlaces& places) {
  const std::string path = state_folder + "/" SUBLET_PLACES_FILE;
  const std::string text = print_places(places);
  if (places.hidden.size() > SUBLET_MAX_PLACES || places.grants.size() > SUBLET_MAX_PLACES ||
      text.size() > SUBLET_RECORD_MAX_BYTES)
    throw FileError(EFBIG, "write", path, "Grant fewer folders, or those that contain them.");
  files.write_atomic(path, text, 0600, Files::Outlives::kProcess);
}

std::optional<AttemptOrder> read_order(const Files& files, const std::string& folder,
                                       std::string* error) {
  return read_one(files, folder + "/" SUBLET_ORDER_FILE, SUBLET_ORDER_MAX_BYTES, parse_order,
                  error);
}

std::optional<AttemptRecord> read_record(const Files& files, const std::string& folder,
                                         std::string* error) {
  return read_one(files, folder + "/" SUBLET_RECORD_FILE, SUBLET_RECORD_MAX_BYTES, parse_record,
                  error);
}

std::optional<AttemptExit> read_exit(const Files& files, const std::string& folder,
                                     std::string* error) {
  return read_one(files, folder + "/" SUBLET_EXIT_FILE, SUBLET_RECORD_MAX_BYTES, parse_exit, error);
}

SpawnedProcess start_demoted(const std::string& shepherd_program, const AttemptOrder& order,
                             const std::vector<std::string>& command, int standard_input) {
  SpawnOptions options;
  options.folder = "/";
  options.new_session = true;
  if (standard_input >= 0) options.fds = {{standard_input, 0}};
  std::vector<std::string> all = {shepherd_program, "--demoted", order.cgroup_unified,
                                  order.cgroup_cpu};
  all.insert(all.end(), command.begin(), command.end());
  return spawn(all, {}, options);
}

SpawnedProcess start_removal(const std::string& shepherd_program, const std::string& folder,
                             const AttemptOrder& order) {
  return start_demoted(shepherd_program, order, {"/bin/rm", "-rf", "--", folder});
}

bool attempt_locked(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.valid() && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// A shepherd holds the lock from before it reads the order until its attempt has ended.
bool take_back_order(const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  for (const char* name : {SUBLET_RECORD_FILE, SUBLET_EXIT_FILE})
    if (faccessat(fd.get(), name, F_OK, 0) == 0) return false;
  return unlinkat(fd.get(), SUBLET_ORDER_FILE, 0) == 0 || errno == ENOENT;
}

bool shepherd_alive(const AttemptRecord& record) {
  return record.boot_id == boot_id() && is_same_process(record.shepherd);
}

UniqueFd connect_control(const std::string& folder) {
  return connect_local(SocketKind::seqpacket, folder + "/" SUBLET_CONTROL_SOCKET, true);
}

}  // namespace sublet

#include "attempt/tenant.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "attempt/folder.h"
#include "base/proc_text.h"

namespace sublet {

std::unique_ptr<Tenant> Tenant::open(const std::string& folder, std::string* error) {
  auto record = read_record(system_files(), folder, error);
  if (!record) {
    if (error->empty()) *error = folder + ": there is no record yet";
    return nullptr;
  }
  if (record->boot_id != boot_id()) {
    *error = folder + ": the record is of an earlier boot";
    return nullptr;
  }
  std::unique_ptr<Tenant> tenant(new Tenant);
  if (!tenant->processes_.open(record->cgroup_unified.c_str())) {
    *error = "/proc cannot be read";
    return nullptr;
  }
  // If the folder is gone, nobody is left in it who has a weight.
  tenant->weight_.open(record->cgroup_cpu.c_str());
  std::unique_ptr<char, decltype(&free)> real(realpath(folder.c_str(), nullptr), &free);
  tenant->status_path_ = std::string(real ? real.get() : folder.c_str()) + "/" SUBLET_STATUS_FILE;
  tenant->shepherd_fd_ = open_process(record->shepherd);
  if (tenant->shepherd_fd_.valid()) {
    std::string stat = "/proc/" + std::to_string(record->shepherd.pid) + "/stat";
    tenant->shepherd_stat_ = UniqueFd(::open(stat.c_str(), O_RDONLY | O_CLOEXEC));
  }
  AttemptIdentity& identity = tenant->identity_;
  // Ids may have been reused: if the shepherd is gone, the session is valid only while
  // the program that created it lives.
  bool program_lives = is_same_process(record->program);
  tenant->program_start_ = static_cast<int64_t>(record->program.start_time);
  if (tenant->shepherd_fd_.valid() || program_lives)
    identity.session = static_cast<pid_t>(record->session);
  if (tenant->shepherd_fd_.valid()) identity.shepherd = record->shepherd.pid;
  // Without root no account is a slot's own, whatever a job may have written there.
  if (geteuid() == 0) identity.uid = record->uid;
  identity.status_path = tenant->status_path_.c_str();
  tenant->processes_.set(identity);
  return tenant;
}

bool Tenant::shepherd_gone() noexcept {
  if (!shepherd_fd_.valid()) return true;
  pollfd ended = {shepherd_fd_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

bool Tenant::shepherd_stopped() noexcept {
  char text[512];
  ssize_t count = pread(shepherd_stat_.get(), text, sizeof text - 1, 0);
  if (count <= 0) return false;
  text[count] = 0;
  const char state = ProcStat(text).state;
  return state == 'T' || state == 't';
}

void Tenant::forget_the_dead() noexcept {
  if (identity_.shepherd > 0 && shepherd_gone()) identity_.shepherd = 0;
  // A session id is reused only when the session is empty, and then by a process that
  // started later than the program.
  if (identity_.session > 0) {
    int64_t start = start_time_of(identity_.session);
    if (start >= 0 && start != program_start_) identity_.session = 0;
  }
  processes_.set(identity_);
}

void Tenant::freeze() noexcept {
  forget_the_dead();
  processes_.freeze();
  frozen_ = true;
}

void Tenant::thaw() noexcept {
  forget_the_dead();
  processes_.thaw();
  frozen_ = false;
}

void Tenant::kill() noexcept {
  if (!frozen_) freeze();
  forget_the_dead();
  // In the idle class a dying process would keep its memory for seconds beside a busy owner.
  weight_.hasten(processes_);
  processes_.kill();
  if (shepherd_gone()) return;
  // A running shepherd without processes is writing the exit record.
  bool in_the_way = shepherd_stopped() || (++rounds_ > kPatientRounds && !processes_.gone());
  if (in_the_way) syscall(SYS_pidfd_send_signal, shepherd_fd_.get(), SIGKILL, nullptr, 0);
}

bool Tenant::gone() noexcept {
  forget_the_dead();
  return processes_.gone();
}

}  // namespace sublet

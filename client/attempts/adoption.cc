#include "client/attempts/adoption.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "attempt/tenant.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "client/attempts/tasks.h"

namespace sublet::client {
namespace {

void end_processes(const std::string& folder) {
  std::string error;
  auto tenant = Tenant::open(folder, &error);
  for (int i = 0; tenant && i < 200 && !tenant->gone(); ++i) {
    tenant->kill();
    timespec pause = {0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
}

void set_aside(Files& files, const std::string& state_folder, const std::string& name,
               const std::string& why) {
  std::string from = state_folder + "/attempts/" + name;
  std::string to =
      state_folder + "/damaged/" + name + "." + std::to_string(system_clock().utc_us());
  files.make_folders(state_folder + "/damaged", 0700);
  files.move(from, to);
  log(Severity::error) << "damaged record of " << name << " set aside as " << to << ": " << why;
}

Adopted replace_damaged(Files& files, const std::string& state_folder, const AttemptName& name,
                        const std::string& why) {
  std::string folder = attempt_folder(state_folder, name);
  end_processes(folder);
  set_aside(files, state_folder, folder.substr(folder.rfind('/') + 1), why);
  Assignment stand_in;
  stand_in.name = name;
  stand_in.slot = -1;
  stand_in.nonce = random_id();
  make_attempt_folder(files, folder, -1, -1);
  write_end(
      files, folder,
      {protocol::kEndLost, "Its records on the machine were damaged.", system_clock().utc_us()});
  write_assignment(files, folder, stand_in);
  Adopted adopted;
  adopted.assignment = std::make_shared<const Assignment>(std::move(stand_in));
  adopted.facts.end_recorded = true;
  return adopted;
}

// An exit record of an earlier boot that nobody has said to be synced may have survived the loss of
// power without the outputs that it names, or be that of an attempt before.
bool is_lost_with_the_power(const Files& files, const std::string& folder) {
  std::string error;
  const auto exit = read_exit(files, folder, &error);
  return exit && exit->boot_id != boot_id() && !files.exists(folder + "/" + kSyncedFile);
}

void record_loss(Files& files, const std::string& folder, protocol::FolderFacts* facts) {
  write_end(files, folder,
            {protocol::kEndLost, "The machine stopped before the end was safe on its disk.",
             system_clock().utc_us()});
  files.remove_file(folder + "/" SUBLET_EXIT_FILE);
  facts->exit_recorded = false;
  facts->end_recorded = true;
}

// Its shepherd may have been killed, and then the client, before one of them had closed it: the
// slot's next job has the same account. One that has not begun is closed, or is about to begin.
void close_if_left(const std::string& folder, const protocol::FolderFacts& facts) {
  const bool has_begun = facts.shepherd_known || facts.exit_recorded || facts.end_recorded;
  if (has_begun && !facts.shepherd_alive && chmod(folder.c_str(), 0700) != 0)
    throw FileError(errno, "close", folder);
}

Adopted adopt_one(Files& files, const std::string& state_folder, const AttemptName& name) {
  std::string folder = attempt_folder(state_folder, name);
  try {
    Assignment assignment = read_assignment(files, folder);
    if (assignment.name != name) throw RecordError("it belongs to another attempt");
    Adopted adopted;
    adopted.facts = AttemptTasks::inspect(files, folder);
    close_if_left(folder, adopted.facts);
    if (adopted.facts.exit_recorded && is_lost_with_the_power(files, folder))
      record_loss(files, folder, &adopted.facts);
    adopted.assignment = std::make_shared<const Assignment>(std::move(assignment));
    return adopted;
  } catch (const std::exception& error) {
    return replace_damaged(files, state_folder, name, error.what());
  }
}

// False if the client died before the assignment was on disk, or power failed just
// after. The server then gives the job to another machine when this one registers
// without the attempt.
bool was_promised(const Files& files, const std::string& folder) {
  const std::string assignment = folder + "/" + kAssignmentFile;
  if (!files.exists(assignment)) return files.exists(folder + "/" SUBLET_ORDER_FILE);
  for (const FolderEntry& entry : files.list(folder))
    if (entry.name == kAssignmentFile) return entry.size > 0;
  return true;
}

bool has_ended(const Adopted& one) { return one.facts.end_recorded || one.facts.exit_recorded; }

// Whose turn would have come after another attempt of its slot. The server learns that it is not
// here, as it does of orders that waited elsewhere.
bool is_next_of(const std::vector<Adopted>& others, const Adopted& one) {
  const int64_t slot = one.assignment->slot;
  return slot >= 0 && !has_ended(one) && !one.facts.shepherd_known &&
         std::ranges::any_of(others, [&](const Adopted& other) {
           return &other != &one && other.assignment->slot == slot && !has_ended(other);
         });
}

void drop_next_ones(Files& files, const std::string& state_folder, std::vector<Adopted>* all) {
  for (auto one = all->begin(); one != all->end();) {
    const std::string folder = attempt_folder(state_folder, one->assignment->name);
    const bool is_next = is_next_of(*all, *one);
    if (is_next && take_back_order(folder)) {
      log(Severity::info) << "attempt " << folder.substr(folder.rfind('/') + 1)
                          << " had not begun, behind another one: discarded";
      try {
        files.remove_tree(folder);
      } catch (const std::exception& error) {
        log(Severity::warning) << error.what();  // without its order nobody starts it
      }
      one = all->erase(one);
      continue;
    }
    if (is_next) one->facts = AttemptTasks::inspect(files, folder);  // it has begun meanwhile
    ++one;
  }
}

}  // namespace

std::string trash_folder(const std::string& state_folder) { return state_folder + "/trash"; }

std::vector<Adopted> adopt_attempts(Files& files, const std::string& state_folder) {
  std::vector<Adopted> all;
  std::vector<std::string> strange;
  for (const AttemptName& name : list_attempts(files, state_folder, &strange)) {
    std::string folder = attempt_folder(state_folder, name);
    files.remove_leftovers(folder);
    if (was_promised(files, folder))
      all.push_back(adopt_one(files, state_folder, name));
    else
      files.remove_tree(folder);
  }
  drop_next_ones(files, state_folder, &all);
  for (const auto& name : strange)
    set_aside(files, state_folder, name, "this is not the name of an attempt");
  return all;
}

}  // namespace sublet::client

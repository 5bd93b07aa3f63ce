#include "cli/checkpoint/shell.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "base/unique_fd.h"
#include "checkpoint-api/disk.h"
#include "checkpoint-api/save_once.h"
#include "cli/checkpoint/file.h"
#include "cli/checkpoint/values.h"
#include "cli/views/output.h"

namespace sublet::cli {

namespace {

constexpr uint64_t kLargestVariables = uint64_t{16} << 20;

using Handle = std::unique_ptr<sublet_checkpoint, decltype(&sublet_checkpoint_close)>;

// The newest generation that is whole.
struct Newest {
  std::optional<CheckpointFile> file;
  bool is_previous = false;     // it is the one before the newest
  bool newest_damaged = false;  // the file NAME is there, and is not whole
};

[[noreturn]] void save_failed(const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw PoolError(full ? ErrorKind::limit_exceeded : ErrorKind::unavailable, "checkpoint.save",
                  what + ": " + strerror(error), "", what);
}

// nullopt if there is no such file, or if it is damaged: says so then.
std::optional<CheckpointFile> open_generation(const std::string& path, bool* is_damaged) {
  try {
    return CheckpointFile(path);
  } catch (const CheckpointFault& fault) {
    if (fault.kind == ErrorKind::not_found) return {};
    // What cannot be read may be whole.
    if (fault.code != "checkpoint.damaged") throw;
    say(error_line(fault));
    *is_damaged = true;
    return {};
  }
}

// Refuses one that belongs to something else: it must not be overwritten.
void check_program(const CheckpointFile& file, const ShellProgram& program) {
  const sublet_header& h = file.header();
  const auto refuse = [&](const std::string& what) {
    throw PoolError(ErrorKind::invalid, "checkpoint.refused", file.path() + what,
                    "name it with --program and --layout, or remove the file", file.path());
  };
  if (program.name != h.program)
    refuse(" was saved by program '" + std::string(h.program) + "', this is '" + program.name +
           "'");
  if (program.layout != h.layout)
    refuse(" has layout " + std::to_string(h.layout) + ", this is layout " +
           std::to_string(program.layout));
}

Newest find_newest(const CheckpointPlace& place, const ShellProgram& program) {
  Newest newest;
  newest.file = open_generation(place.newest(), &newest.newest_damaged);
  if (!newest.file) {
    bool damaged = false;
    newest.file = open_generation(place.previous(), &damaged);
    newest.is_previous = newest.file.has_value();
  }
  if (newest.file) check_program(*newest.file, program);
  return newest;
}

// As the checkpoint API does: the number of a lost generation is not used again.
uint64_t next_generation(const Newest& newest) {
  if (!newest.file) return 1;
  return newest.file->header().generation + (newest.is_previous ? 2 : 1);
}

Handle open_handle(const ShellProgram& program) {
  Handle handle(sublet_checkpoint_open(program.name.c_str(), program.layout),
                sublet_checkpoint_close);
  if (handle == nullptr && errno == EINVAL)
    throw PoolError(
        ErrorKind::usage, "usage.program",
        "--program must have 1 to " + std::to_string(SUBLET_CHECKPOINT_MAX_PROGRAM) + " bytes", "",
        program.name);
  if (handle == nullptr) save_failed("cannot save", errno);
  return handle;
}

int write_value(sublet_checkpoint_stream* stream, void* user) {
  const auto* value = static_cast<const std::string*>(user);
  return sublet_checkpoint_write(stream, value->data(), value->size(), SUBLET_UINT8);
}

int never_restored(sublet_checkpoint_stream*, void*) { return EINVAL; }

void name_sections(sublet_checkpoint* handle, const ShellVariables& variables) {
  for (const auto& [name, value] : variables) {
    const int error = sublet_checkpoint_callbacks(handle, name.c_str(), write_value, never_restored,
                                                  const_cast<std::string*>(&value));
    if (error != 0) save_failed("cannot save " + name, error);
  }
}

std::string value_of(const CheckpointFile& file, const CheckpointSection& section) {
  const auto refuse = [&](const std::string& what) {
    throw PoolError(ErrorKind::invalid, "checkpoint.shell",
                    "section '" + section.name + "' of " + file.path() + what,
                    "see `sublet checkpoint show`", section.name);
  };
  if (!is_shell_name(section.name)) refuse(" is not the name of a shell variable");
  if (section.type != SUBLET_STREAM && section.type != SUBLET_UINT8)
    refuse(std::string(" is an array of ") + checkpoint_type_name(section.type));
  if (section.bytes > kLargestVariables)
    refuse(" has " + format_bytes(section.bytes) + "; the limit is " +
           format_bytes(kLargestVariables));
  std::string value = first_bytes(file, section, section.bytes);
  if (value.find('\0') != std::string::npos)
    refuse(" has a zero byte, which no shell variable can hold");
  return value;
}

}  // namespace

std::optional<CheckpointPlace> checkpoint_place(const std::string& path) {
  const char* pool = getenv("SUBLET_CHECKPOINT_DIR");
  if (pool != nullptr && *pool != '\0') return CheckpointPlace{pool, "checkpoint"};
  if (path.empty()) return {};
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..")
    throw PoolError(ErrorKind::usage, "usage.path", "--path: '" + path + "' is a folder",
                    "name a file in it", path);
  if (slash == std::string::npos) return CheckpointPlace{".", name};
  return CheckpointPlace{slash == 0 ? "/" : path.substr(0, slash), name};
}

// Two saves at a time would write the same unfinished file. Where the file system has no locks, the
// script must not do that. Other saves are short, but in a pool a program that uses the checkpoint
// API holds the lock for as long as it runs.
void wait_for_lock(int folder) {
  constexpr int kTries = 1000;
  const timespec pause = {0, 10'000'000};
  for (int i = 0; flock(folder, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;
    if (i >= kTries) save_failed("another process uses the checkpoint", EBUSY);
    nanosleep(&pause, nullptr);
  }
}

SavedVariables save_variables(const CheckpointPlace& place, const ShellProgram& program,
                              const ShellVariables& variables) {
  const Handle handle = open_handle(program);
  name_sections(handle.get(), variables);
  const UniqueFd folder(open(place.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) save_failed("cannot open the folder " + place.folder, errno);
  wait_for_lock(folder.get());
  const Newest newest = find_newest(place, program);
  if (newest.newest_damaged)
    sublet_system_disk.rename(folder.get(), place.name.c_str(), (place.name + ".damaged").c_str());
  SavedVariables saved = {place.newest(), next_generation(newest), 0};
  const bool newest_is_whole = newest.file && !newest.is_previous;
  const int error = sublet_save_once(handle.get(), folder.get(), place.name.c_str(),
                                     saved.generation, newest_is_whole ? 1 : 0, &saved.bytes);
  if (error != 0) save_failed("cannot save " + place.newest(), error);
  return saved;
}

std::optional<LoadedVariables> load_variables(const CheckpointPlace& place,
                                              const ShellProgram& program,
                                              const std::vector<std::string>& names) {
  const Newest newest = find_newest(place, program);
  if (!newest.file) return {};
  const CheckpointFile& file = *newest.file;
  LoadedVariables loaded = {file.header().generation, {}};
  uint64_t bytes = 0;
  const auto load = [&](const CheckpointSection& section) {
    loaded.variables.emplace_back(section.name, value_of(file, section));
    bytes += section.bytes;
    if (bytes > kLargestVariables)
      throw PoolError(
          ErrorKind::invalid, "checkpoint.shell",
          file.path() + " has more than " + format_bytes(kLargestVariables) + " of variables",
          "name those to load", file.path());
  };
  for (const std::string& name : names) {
    const CheckpointSection* section = file.find(name);
    if (section == nullptr)
      throw PoolError(ErrorKind::not_found, "checkpoint.section",
                      file.path() + " has no section '" + name + "'",
                      "see `sublet checkpoint show`", name);
    load(*section);
  }
  if (names.empty())
    for (const CheckpointSection& section : file.sections()) load(section);
  return loaded;
}

bool is_shell_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= SUBLET_CHECKPOINT_MAX_NAME && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

ShellVariables parse_variables(const std::vector<std::string>& words) {
  ShellVariables variables;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos || !is_shell_name(name))
      throw PoolError(ErrorKind::usage, "usage.variable",
                      "'" + name + "' is not NAME=VALUE with the name of a shell variable",
                      "write it as i=\"$i\"", name);
    for (const auto& [other, value] : variables)
      if (other == name)
        throw PoolError(ErrorKind::usage, "usage.variable", "'" + name + "' is given twice", "",
                        name);
    variables.emplace_back(name, word.substr(equals + 1));
  }
  return variables;
}

std::string shell_assignments(const ShellVariables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += name + "='";
    for (const char c : value) {
      if (c == '\'')
        text += "'\\''";  // ends the quotes, a quote by itself, begins them again
      else
        text += c;
    }
    text += "'\n";
  }
  return text;
}

}  // namespace sublet::cli

#include "job/own_checkpoint.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <stdexcept>
#include <utility>

#include "job/output_name.h"

namespace sublet {
namespace {

constexpr std::pair<const char*, int> kSignals[] = {{"TERM", SIGTERM}, {"HUP", SIGHUP},
                                                    {"INT", SIGINT},   {"QUIT", SIGQUIT},
                                                    {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
constexpr uint32_t kSaved[] = {75, 85};

std::string wrong_with_files(const std::vector<std::string>& files) {
  std::set<std::string> names;
  size_t octets = 0;
  for (const std::string& file : files) {
    octets += file.size() + 1;
    // They are one variable in the job's environment.
    if (octets > kCheckpointNameOctets) return "names of checkpoint files of more than 64 KiB";
    if (file.find('\n') != std::string::npos)
      return "the checkpoint file `" + file + "` has a newline in its name";
    if (!names.insert(file).second) return "the checkpoint file `" + file + "` is named twice";
    try {
      const OutputName name(file);
    } catch (const std::invalid_argument& error) {
      return "the checkpoint file `" + file + "`: " + error.what();
    }
  }
  return "";
}

}  // namespace

bool OwnCheckpoint::says_saved(int64_t exit_status) const {
  if (!is_set()) return false;
  const auto is = [exit_status](uint32_t code) { return code == exit_status; };
  return exit_codes.empty() ? std::any_of(std::begin(kSaved), std::end(kSaved), is)
                            : std::any_of(exit_codes.begin(), exit_codes.end(), is);
}

std::string wrong_with(const OwnCheckpoint& own) {
  if (!own.is_set()) {
    const bool rest = own.every_ms != 0 || own.signal != 0 || !own.exit_codes.empty();
    return rest ? "how a checkpoint is saved, but no checkpoint file" : "";
  }
  if (own.files.size() > kCheckpointFiles) return "more than 64 checkpoint files";
  if (std::string wrong = wrong_with_files(own.files); !wrong.empty()) return wrong;
  if (own.every_ms != 0 && (own.every_ms < kLeastEveryMs || own.every_ms > kMostEveryMs))
    return "copies of checkpoint files every " + std::to_string(own.every_ms) +
           " ms: from 1 s to 30 d are possible";
  if (own.signal != 0 && signal_name(own.signal).empty())
    return "signal " + std::to_string(own.signal) + " does not ask to save";
  if (own.exit_codes.size() > kCheckpointCodes) return "more than 16 exit codes of a checkpoint";
  for (const uint32_t code : own.exit_codes)
    if (code == 0 || code > 255)
      return "the exit code " + std::to_string(code) + " of a checkpoint: use 1 to 255";
  return "";
}

std::string signal_name(uint32_t signal) {
  for (const auto& [name, number] : kSignals)
    if (static_cast<uint32_t>(number) == signal) return name;
  return "";
}

std::optional<uint32_t> signal_named(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (upper.starts_with("SIG")) upper.erase(0, 3);
  for (const auto& [known, number] : kSignals)
    if (upper == known) return static_cast<uint32_t>(number);
  return std::nullopt;
}

std::vector<std::string> signal_names() {
  std::vector<std::string> names;
  for (const auto& [name, number] : kSignals) names.emplace_back(name);
  return names;
}

}  // namespace sublet

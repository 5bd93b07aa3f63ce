#include "cli/checkpoint/check.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/text.h"
#include "cli/checkpoint/file.h"

namespace sublet::cli {

namespace {

bool is_folder(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

CheckedFile check_file(const std::string& path) {
  CheckedFile checked = {.path = path};
  try {
    const CheckpointFile file(path);
    checked.whole = true;
    checked.generation = file.header().generation;
    checked.bytes = file.bytes();
  } catch (const CheckpointFault& fault) {
    checked.problem = (fault.code == "checkpoint.damaged" ? "damaged: " : "") + fault.what_is_wrong;
    checked.at = fault.at;
    checked.checksum = fault.checksum;
  }
  return checked;
}

// A folder whose newest file has no link beside it has only one generation yet.
void check_folder(const std::string& path, std::vector<CheckedFile>& checked) {
  const size_t before = checked.size();
  for (const char* name : {"checkpoint", "checkpoint.previous"}) {
    const std::string file = path + (path.ends_with('/') ? "" : "/") + name;
    struct stat status = {};
    if (lstat(file.c_str(), &status) == 0 || errno != ENOENT) checked.push_back(check_file(file));
  }
  if (checked.size() == before)
    checked.push_back({.path = path, .problem = "there is no checkpoint in this folder"});
}

}  // namespace

std::vector<CheckedFile> check_checkpoints(const std::vector<std::string>& paths) {
  std::vector<CheckedFile> checked;
  for (const std::string& path : paths) {
    if (is_folder(path))
      check_folder(path, checked);
    else
      checked.push_back(check_file(path));
  }
  return checked;
}

std::string check_line(const CheckedFile& file) {
  std::string line = file.path + ": ";
  if (file.whole)
    line +=
        "whole, generation " + std::to_string(file.generation) + ", " + format_bytes(file.bytes);
  else
    line += file.problem + (file.at < 0 ? "" : " (at byte " + std::to_string(file.at) + ")");
  return escape_for_terminal(line);
}

void write_json(JsonWriter& json, const CheckedFile& file) {
  json.begin_object().field("file", file.path).field("whole", file.whole);
  json.field("generation", file.generation).field("bytes", file.bytes);
  json.field("problem", file.problem).field("offset", file.at);
  json.field("checksum", file.checksum).end_object();
}

}  // namespace sublet::cli

#include "server/spool/spool_check.h"

#include <map>
#include <set>

#include "server/refusal.h"
#include "server/spool/content_checker.h"

namespace sublet::server {
namespace {

// The regular files of the folder and their sizes, without unfinished uploads.
std::map<std::string, uint64_t> files_in(Files& files, const std::string& spool) {
  std::map<std::string, uint64_t> found;
  if (!files.exists(spool)) return found;
  for (const FolderEntry& entry : files.list(spool))
    if (!entry.is_folder && !entry.name.ends_with(".part")) found[entry.name] = entry.size;
  return found;
}

// What is wrong with a content; empty: nothing.
std::string finding(const std::string& path, const ContentRow& row, const uint64_t* size,
                    bool bytes, const Files& files) {
  if (size == nullptr) return "is missing";
  if (*size != row.size)
    return "has " + std::to_string(*size) + " bytes instead of " + std::to_string(row.size);
  if (row.damaged) return "differs from what was stored: the server has noticed it";
  try {
    if (bytes && !ContentChecker::reads_as_stored({row.id, path, row.size, row.digest, ""}, files))
      return "differs from what was stored";
  } catch (const Refusal&) {
    return "cannot be read";
  }
  return "";
}

}  // namespace

SpoolFindings check_spool(Files& files, const std::string& spool,
                          const std::function<std::vector<ContentRow>()>& contents, bool bytes) {
  SpoolFindings result;
  std::map<uint64_t, std::string> damage;
  const std::vector<ContentRow> rows = contents();
  std::map<std::string, uint64_t> there = files_in(files, spool);
  std::set<std::string> known;
  for (const ContentRow& row : rows) {
    const std::string name = std::to_string(row.id);
    known.insert(name);
    const auto file = there.find(name);
    const std::string path = spool + "/" + name;
    const std::string what =
        finding(path, row, file == there.end() ? nullptr : &file->second, bytes, files);
    if (!what.empty()) damage[row.id] = path + " " + what;
  }
  for (const auto& [name, size] : there)
    if (!known.count(name)) result.unused.push_back(spool + "/" + name);
  if (damage.empty()) return result;
  for (const ContentRow& row : contents())
    if (const auto found = damage.find(row.id); found != damage.end())
      result.damage.push_back(found->second);
  return result;
}

}  // namespace sublet::server

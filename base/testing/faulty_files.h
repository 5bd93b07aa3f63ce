// For tests: real files on a simulated disk that fails on request and loses unsynced
// data at a loss of power. Files that existed before the first call count as durable.
// Thread-safe, but a test that counts steps should have one thread.
#ifndef SUBLET_BASE_TESTING_FAULTY_FILES_H_
#define SUBLET_BASE_TESTING_FAULTY_FILES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/files.h"

namespace sublet {

class FaultyFiles : public Files {
 public:
  // System calls so far.
  uint64_t steps() const;
  // The nth call from now (0: the next) fails with `code`, later ones succeed.
  void fail_at(uint64_t nth, int code);
  // The nth call and all later ones fail.
  void fail_from(uint64_t nth, int code);
  // Every call of that kind fails until code is 0.
  void fail_step(FileStep step, int code);
  // Syncs report success and do nothing.
  void ignore_syncs(bool ignore);
  // Restores what the disk would contain after a loss of power now. Only files are
  // tracked, not folders.
  void lose_power();

 protected:
  int before(FileStep step, const std::string& path) const override;
  void after(FileStep step, const std::string& path, const std::string& from) override;

 private:
  // Contents of a file; none: no such file.
  using Contents = std::optional<std::string>;
  static Contents contents(const std::string& path);
  void touch(const std::string& path) const;

  mutable std::mutex mutex_;
  mutable uint64_t steps_ = 0;
  std::optional<uint64_t> fail_at_;
  bool fail_onwards_ = false;
  int code_ = 0;
  bool ignore_syncs_ = false;
  std::map<FileStep, int> step_codes_;
  // The contents after a loss of power, for each path that was touched.
  mutable std::map<std::string, Contents> durable_;
  // The synced contents of the file that now has the name; they become durable with
  // the sync of its folder.
  mutable std::map<std::string, Contents> synced_;
};

}  // namespace sublet

#endif  // SUBLET_BASE_TESTING_FAULTY_FILES_H_

// For tests: a new folder, removed with its contents by the destructor.
#ifndef SUBLET_BASE_TESTING_TEMPORARY_FOLDER_H_
#define SUBLET_BASE_TESTING_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "base/files.h"

namespace sublet {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "sublet-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { system_files().remove_tree(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sublet

#endif  // SUBLET_BASE_TESTING_TEMPORARY_FOLDER_H_

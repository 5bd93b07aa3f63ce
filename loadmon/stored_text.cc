#include "loadmon/stored_text.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/os_error.h"

namespace sublet::loadmon {

StoredText::StoredText(std::string path, Files& files)
    : path_(std::move(path)), files_(files), written_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!written_.valid()) throw OsError(errno, "watch", path_);
}

StoredText::~StoredText() {
  if (writer_.joinable()) writer_.join();
}

uint64_t StoredText::change(std::string content) {
  content_ = std::move(content);
  return ++changes_;
}

bool StoredText::begin() {
  if (changes_ == on_its_way_ || writer_.joinable()) return false;
  on_its_way_ = changes_;
  try {
    writer_ = std::thread([this, content = content_] { write(content); });
  } catch (const std::system_error& error) {
    writer_error_ = error.code().value();
    note();
  }
  return true;
}

void StoredText::write(const std::string& content) {
  try {
    if (content.empty()) {
      files_.remove_file(path_);
    } else {
      files_.write_atomic(path_, content);
    }
    writer_error_ = 0;
  } catch (const FileError& error) {
    writer_error_ = error.code();
  }
  const uint64_t once = 1;
  while (::write(written_.get(), &once, sizeof once) < 0 && errno == EINTR) {
  }
}

void StoredText::note() {
  uint64_t times = 0;
  while (read(written_.get(), &times, sizeof times) > 0) {
  }
  if (writer_.joinable()) writer_.join();
  stored_ = on_its_way_;
  error_ = writer_error_;
  if (error_ != 0)
    log(Severity::error) << "this cannot be stored, so a restart of the monitor forgets it: "
                         << path_ << ": " << std::strerror(error_);
}

}  // namespace sublet::loadmon

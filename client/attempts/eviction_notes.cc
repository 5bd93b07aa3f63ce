#include "client/attempts/eviction_notes.h"

#include <algorithm>

#include "base/log.h"

namespace sublet::client {
namespace {

constexpr uint64_t kLargest = 1 << 20;  // bytes; the longest lines would make 200 kB

}  // namespace

// A file that cannot be read, or is of another kind, is replaced.
std::vector<protocol::EvictionNote> EvictionNotes::stored() const {
  if (!files_.exists(path_)) return {};
  try {
    return protocol::notes_in(files_.read_file(path_, kLargest))
        .value_or(std::vector<protocol::EvictionNote>());
  } catch (const FileError& error) {
    log(Severity::warning) << "the past evictions are forgotten: " << error.what();
    return {};
  }
}

void EvictionNotes::note_cause(const sublet_frame& cause) {
  const std::lock_guard lock(causes_mutex_);
  causes_[next_cause_++ % causes_.size()] = {cause.instant, protocol::Place(cause)};
}

std::string EvictionNotes::place_at(int64_t sensed_ns) {
  const std::lock_guard lock(causes_mutex_);
  const auto found = std::find_if(causes_.begin(), causes_.end(), [sensed_ns](const Cause& one) {
    return one.instant == sensed_ns;
  });
  return found == causes_.end() ? "" : found->place.text();
}

void EvictionNotes::add(protocol::EvictionNote note, int64_t sensed_ns) {
  if (sensed_ns != 0) note.place = place_at(sensed_ns);
  const std::lock_guard lock(mutex_);
  if (!notes_) notes_ = stored();
  const bool known = std::any_of(notes_->begin(), notes_->end(), [&](const auto& one) {
    return one.job == note.job && one.attempt == note.attempt;
  });
  if (!known) notes_->push_back(note);
  if (notes_->size() > protocol::kNotedEvictions) notes_->erase(notes_->begin());
  try {
    files_.write_atomic(path_, protocol::printed(*notes_), 0644, Files::Outlives::kProcess);
  } catch (const FileError& error) {
    log(Severity::warning) << "an eviction is missing in `sublet owner history`: " << error.what();
  }
}

}  // namespace sublet::client

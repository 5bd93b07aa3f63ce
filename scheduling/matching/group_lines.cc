#include "scheduling/matching/group_lines.h"

#include <algorithm>
#include <limits>

namespace sublet::scheduling {
namespace {

auto at(auto& sequence, size_t index) {
  return sequence.begin() + static_cast<std::ptrdiff_t>(index);
}

// `all` was the bound of the parts and of one with the bound `gone`, which has left. Mostly another
// needs as little, and one of the first parts says so.
template <typename Part>
void forget(UserBound& all, const UserBound& gone, const Part* begin, const Part* end) {
  const auto unless_its_own = [](auto of_all, auto own) {
    return own > of_all ? of_all : std::numeric_limits<decltype(of_all)>::max();
  };
  UserBound left = {{unless_its_own(all.least.cores, gone.least.cores),
                     unless_its_own(all.least.memory, gone.least.memory),
                     unless_its_own(all.least.disk, gone.least.disk)},
                    unless_its_own(all.since, gone.since),
                    all.licensed && !gone.licensed};
  for (; begin != end && !(left == all); ++begin) left = join(left, begin->bound);
  all = left;
}

}  // namespace

bool GroupLines::before(const Entry& a, const Entry& b) {
  if (a.key != b.key) return a.key < b.key;
  if (a.number != b.number) return a.number < b.number;
  return comes_before(*a.line, *b.line);
}

GroupLines::Chunk GroupLines::chunk_of(std::unique_ptr<Entries> entries) {
  Chunk chunk{{}, 0, entries->front().bound, std::move(entries)};
  for (const Entry& entry : *chunk.entries) chunk.bound = join(chunk.bound, entry.bound);
  note_front(chunk);
  return chunk;
}

void GroupLines::note_front(Chunk& chunk) {
  chunk.key = chunk.entries->front().key;
  chunk.number = chunk.entries->front().number;
}

void GroupLines::Entries::clear() {
  slots_.clear();
  begin_ = 0;
}

void GroupLines::Entries::insert(size_t place, const Entry& entry) {
  const auto begin = at(slots_, begin_);
  if (begin_ > 0 && (place < size() / 2 || slots_.size() == slots_.capacity())) {
    std::copy(begin, at(slots_, begin_ + place), begin - 1);
    slots_[--begin_ + place] = entry;
  } else {
    slots_.insert(at(slots_, begin_ + place), entry);
  }
}

void GroupLines::Entries::erase(size_t place) {
  const auto erased = at(slots_, begin_ + place);
  if (place < size() / 2) {
    std::copy_backward(at(slots_, begin_), erased, erased + 1);
    ++begin_;
  } else {
    slots_.erase(erased);
  }
}

void GroupLines::Entries::take_end(Entries& other, size_t place) {
  slots_.insert(slots_.end(), other.begin() + place, other.end());
  other.slots_.resize(other.begin_ + place);
}

GroupLines::Position GroupLines::find(UserLine& line) const {
  const Entry sought = entry_of(line);
  const auto comes_later = [](const Entry& entry, const Chunk& chunk) {
    if (entry.key != chunk.key) return entry.key < chunk.key;
    if (entry.number != chunk.number) return entry.number < chunk.number;
    return before(entry, chunk.entries->front());
  };
  const auto begin = at(chunks_, first_);
  const auto next = std::upper_bound(begin, chunks_.end(), sought, comes_later);
  const auto chunk = next == begin ? next : next - 1;
  const auto place =
      std::lower_bound(chunk->entries->begin(), chunk->entries->end(), sought, before);
  return {static_cast<size_t>(chunk - chunks_.begin()),
          static_cast<size_t>(place - chunk->entries->begin())};
}

void GroupLines::add(UserLine& line) {
  bound_ = empty() ? line.of_jobs : join(bound_, line.of_jobs);
  if (empty()) return add_first(line);
  const Position place = find(line);
  Chunk& chunk = chunks_[place.chunk];
  chunk.entries->insert(place.entry, entry_of(line));
  chunk.bound = join(chunk.bound, line.of_jobs);
  note_front(chunk);
  if (chunk.entries->size() > kMost) split(place.chunk);
}

void GroupLines::take(UserLine& line) {
  const Position place = find(line);
  Chunk& chunk = chunks_[place.chunk];
  chunk.entries->erase(place.entry);
  if (chunk.entries->empty()) {
    erase(place.chunk);
  } else {
    forget(chunk.bound, line.of_jobs, chunk.entries->begin(), chunk.entries->end());
    note_front(chunk);
    merge_next(place.chunk);
  }
  forget(bound_, line.of_jobs, chunks_.data() + first_, chunks_.data() + chunks_.size());
}

void GroupLines::refresh(UserLine& line) {
  const Position place = find(line);
  Chunk& chunk = chunks_[place.chunk];
  Entry& entry = (*chunk.entries)[place.entry];
  const UserBound before = entry.bound;
  entry.bound = line.of_jobs;
  chunk.bound = join(chunk.bound, entry.bound);
  forget(chunk.bound, before, chunk.entries->begin(), chunk.entries->end());
  bound_ = join(bound_, entry.bound);
  forget(bound_, before, chunks_.data() + first_, chunks_.data() + chunks_.size());
}

// After the last one only what exceeds, so that a sequence that grows at its end is not made of
// chunks that are half empty.
void GroupLines::split(size_t chunk) {
  Entries& entries = *chunks_[chunk].entries;
  const bool last = chunk + 1 == chunks_.size();
  const size_t half = last ? entries.size() - 1 : entries.size() / 2;
  auto second = no_entries();
  second->reserve(kMost + 1);
  second->take_end(entries, half);
  chunks_[chunk] = chunk_of(std::move(chunks_[chunk].entries));
  chunks_.insert(at(chunks_, chunk + 1), chunk_of(std::move(second)));
}

void GroupLines::erase(size_t chunk) {
  // As many as are soon needed again when lines leave at the front and come back.
  constexpr size_t kSpare = 2;
  if (spare_.size() < kSpare) spare_.push_back(std::move(chunks_[chunk].entries));
  if (chunk != first_) {
    chunks_.erase(at(chunks_, chunk));
    return;
  }
  chunks_[first_++].entries.reset();
  if (first_ <= chunks_.size() / 2) return;
  chunks_.erase(chunks_.begin(), at(chunks_, first_));
  first_ = 0;
}

// If both are small: few lines do not stand in many chunks.
void GroupLines::merge_next(size_t chunk) {
  if (chunk + 1 == chunks_.size()) return;
  Entries& entries = *chunks_[chunk].entries;
  const Entries& next = *chunks_[chunk + 1].entries;
  if (entries.size() + next.size() > kMost / 4) return;
  for (const Entry& entry : next) entries.insert(entries.size(), entry);
  chunks_[chunk].bound = join(chunks_[chunk].bound, chunks_[chunk + 1].bound);
  erase(chunk + 1);
}

std::unique_ptr<GroupLines::Entries> GroupLines::no_entries() {
  auto entries = spare_.empty() ? std::make_unique<Entries>() : std::move(spare_.back());
  if (!spare_.empty()) spare_.pop_back();
  entries->clear();
  return entries;
}

// The only one.
void GroupLines::add_first(UserLine& line) {
  auto entries = no_entries();
  entries->push_back(entry_of(line));
  chunks_.push_back(chunk_of(std::move(entries)));
}

}  // namespace sublet::scheduling

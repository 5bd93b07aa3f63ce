// A binary heap whose entries know their position, so that any entry can be removed
// or moved in O(log n) and no stale entries remain.
//
// Traits: `static bool before(const Entry&, const Entry&)` (a strict order) and
// `static void moved(Entry&, size_t position)`, called whenever an entry's
// position changes; kNowhere when it has left.
#ifndef SUBLET_SCHEDULING_INDEXED_HEAP_H_
#define SUBLET_SCHEDULING_INDEXED_HEAP_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace sublet::scheduling {

inline constexpr size_t kNowhere = static_cast<size_t>(-1);

template <typename Entry, typename Traits>
class IndexedHeap {
 public:
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // The first in order; only when not empty.
  const Entry& top() const { return entries_.front(); }
  // In no particular order.
  const std::vector<Entry>& entries() const { return entries_; }

  void push(Entry entry) {
    entries_.push_back(std::move(entry));
    rise(entries_.size() - 1);
  }

  void erase(size_t position) {
    Traits::moved(entries_[position], kNowhere);
    const size_t last = entries_.size() - 1;
    if (position != last) entries_[position] = std::move(entries_[last]);
    entries_.pop_back();
    if (position != last) changed(position);
    give_back();
  }

  // Restores the order after the key of the entry at `position` has changed.
  void changed(size_t position) {
    if (rise(position) == position) sink(position);
  }

 private:
  // A queue that was once long must not keep its memory forever.
  void give_back() {
    if (entries_.capacity() > 64 && entries_.size() < entries_.capacity() / 4) {
      std::vector<Entry> smaller;
      smaller.reserve(entries_.size() * 2);
      for (Entry& e : entries_) smaller.push_back(std::move(e));
      entries_.swap(smaller);
    }
  }

  size_t rise(size_t position) {
    Entry entry = std::move(entries_[position]);
    while (position > 0) {
      const size_t parent = (position - 1) / 2;
      if (!Traits::before(entry, entries_[parent])) break;
      put(position, std::move(entries_[parent]));
      position = parent;
    }
    put(position, std::move(entry));
    return position;
  }

  void sink(size_t position) {
    Entry entry = std::move(entries_[position]);
    for (;;) {
      size_t child = 2 * position + 1;
      if (child >= entries_.size()) break;
      if (child + 1 < entries_.size() && Traits::before(entries_[child + 1], entries_[child])) {
        ++child;
      }
      if (!Traits::before(entries_[child], entry)) break;
      put(position, std::move(entries_[child]));
      position = child;
    }
    put(position, std::move(entry));
  }

  void put(size_t position, Entry entry) {
    entries_[position] = std::move(entry);
    Traits::moved(entries_[position], position);
  }

  std::vector<Entry> entries_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_INDEXED_HEAP_H_

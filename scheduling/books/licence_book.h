// The licence book: how many licences the pool has, and how many the live attempts hold. A licence
// is held from the decision until the attempt has ended or its lease is over, as its cores are.
//
// What a job asks of a name that is no licence is its machine's. Which names are licences may
// change while attempts hold some: so what they hold is counted by name, whosever it is.
//
// Licences may be kept for a job that needs several: as they come back they are left, until it has
// enough. Of one name they are kept for one job at a time.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_LICENCE_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_LICENCE_BOOK_H_

#include <string>

#include "rules/named_amounts.h"

namespace sublet::scheduling {

class LicenceBook {
 public:
  // `licences`: PolicyChoice::licences.
  explicit LicenceBook(const std::string& licences) { set(licences); }
  void set(const std::string& licences) { offered_ = rules::NamedAmounts::stored(licences); }

  const rules::NamedAmounts& offered() const { return offered_; }
  uint64_t held(const std::string& name) const { return held_.of(name); }
  // Those of the amounts that are licences, and the others.
  rules::NamedAmounts licences_in(const rules::NamedAmounts& amounts) const;
  rules::NamedAmounts others_in(const rules::NamedAmounts& amounts) const;
  // Whether so many of these, which all are licences, are neither held nor kept; or for the job
  // that they are kept for, not held.
  bool has_left(const rules::NamedAmounts& licences) const;
  bool has_left_of_kept(const rules::NamedAmounts& licences) const;
  // Whether these are several, the pool has so many, and none is kept of any of these names.
  bool may_keep(const rules::NamedAmounts& licences) const;
  uint64_t kept(const std::string& name) const { return kept_.of(name); }

  void keep(const rules::NamedAmounts& licences) { kept_.add(licences); }
  // They are kept no longer.
  void give_up(const rules::NamedAmounts& licences);

  void reserve(const rules::NamedAmounts& amounts) { held_.add(amounts); }
  void release(const rules::NamedAmounts& amounts);
  // What was released or given up since they were searched for jobs the last time.
  const rules::NamedAmounts& released() const { return released_; }
  void note_searched() { released_ = {}; }

 private:
  rules::NamedAmounts offered_;
  rules::NamedAmounts held_;
  rules::NamedAmounts kept_;
  rules::NamedAmounts released_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_LICENCE_BOOK_H_

#include "scheduling/books/hours_book.h"

namespace sublet::scheduling {

const OpenHours* HoursBook::enter(const std::string& text) {
  if (text.empty()) return nullptr;
  follow_local_time();
  const auto [it, made] = hours_.try_emplace(text);
  OpenHours& hours = it->second;
  ++hours.demands;
  if (!made) return &hours;
  hours.text = text;
  try {
    hours.hours = rules::Hours::parse(text);
  } catch (const rules::HoursError&) {
    return &hours;  // they were checked when the job was submitted
  }
  settle(hours);
  return &hours;
}

void HoursBook::leave(const OpenHours* hours) {
  if (hours == nullptr) return;
  const auto it = hours_.find(hours->text);
  if (--it->second.demands > 0) return;
  due_.set(it->second, 0);
  hours_.erase(it);
}

bool HoursBook::settle(OpenHours& hours) {
  const Micros now = changes_.now();
  const bool was_open = hours.open;
  hours.open = hours.hours->open_at(now, offset());
  due_.set(hours, hours.hours->next_change(now, offset()).value_or(0));
  return hours.open && !was_open;
}

void HoursBook::follow_local_time() {
  if (offset_ == offset()) return;
  offset_ = offset();
  for (auto& [text, hours] : hours_)
    if (hours.hours) opened_ |= settle(hours);
}

void HoursBook::update() {
  follow_local_time();
  while (Timed* timed = due_.reached(changes_.now()))
    opened_ |= settle(*static_cast<OpenHours*>(timed));
}

std::optional<Micros> HoursBook::opens_in(const OpenHours& hours, Micros now) const {
  if (!hours.hours || hours.hours->open_at(now, offset())) return std::nullopt;
  const auto opens = hours.hours->next_change(now, offset());
  if (!opens) return std::nullopt;
  return *opens - now;
}

Micros HoursBook::open_since(const OpenHours& hours) const {
  if (!hours.hours) return 0;
  return hours.hours->last_change(changes_.now(), offset()).value_or(0);
}

}  // namespace sublet::scheduling

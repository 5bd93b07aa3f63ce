// What the programs that play an owner read and write: one word a line; for each, when it has
// been done, the instant before that (CLOCK_BOOTTIME, ns).
#ifndef SUBLET_TEST_DESKTOPS_STDIN_WORDS_H_
#define SUBLET_TEST_DESKTOPS_STDIN_WORDS_H_

#include <functional>
#include <iostream>
#include <string>

#include "base/clock.h"

namespace sublet::test {

// Reads one word and does it. False: there are no more, or `play` refused it.
inline bool play_word(const std::function<bool(const std::string&)>& play) {
  std::string word;
  if (!std::getline(std::cin, word)) return false;
  const int64_t before = system_clock().boot_ns();
  if (!play(word)) return false;
  std::cout << before << std::endl;
  return true;
}

}  // namespace sublet::test

#endif  // SUBLET_TEST_DESKTOPS_STDIN_WORDS_H_

// Formats names and parses texts of /proc for code on the eviction path: does not
// allocate or throw, and does not need the C++ library. Any thread.
#ifndef SUBLET_BASE_PROC_TEXT_H_
#define SUBLET_BASE_PROC_TEXT_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace sublet {

// "NAME/FILE", a path relative to /proc.
struct ProcPath {
  char text[64];
  ProcPath(const char* name, const char* file) {
    char* to = text;
    for (int i = 0; i < 12 && name[i]; ++i) *to++ = name[i];
    *to++ = '/';
    for (int i = 0; i < 40 && file[i]; ++i) *to++ = file[i];
    *to = 0;
  }
};

// A decimal number as text.
struct Digits {
  char text[24];
  explicit Digits(int64_t number) {
    char reversed[24];
    int count = 0;
    uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    do reversed[count++] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    char* to = text;
    if (number < 0) *to++ = '-';
    while (count > 0) *to++ = reversed[--count];
    *to = 0;
  }
};

// The number after `key` at the start of a line, or -1.
inline int64_t number_after(const char* text, const char* key) {
  size_t length = strlen(key);
  for (const char* line = text; line; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (strncmp(line, key, length) == 0) return strtoll(line + length, nullptr, 10);
  }
  return -1;
}

// The fields of a stat line after the command, which may contain any characters.
struct ProcStat {
  char state = 0;
  int64_t number[22] = {};  // number[i] is field i + 3; state is field 3
  explicit ProcStat(const char* text) {
    const char* at = strrchr(text, ')');
    if (!at || at[1] != ' ') return;
    state = at[2];
    char* next = const_cast<char*>(at + 3);
    for (int i = 1; i < 22; ++i) number[i] = strtoll(next, &next, 10);
  }
  int64_t field(int n) const { return number[n - 3]; }
};

}  // namespace sublet

#endif  // SUBLET_BASE_PROC_TEXT_H_

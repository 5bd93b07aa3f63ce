// For tests: counts the statements that SQLite executes.
//
// Threads: any.
#ifndef SUBLET_SERVER_STORE_QUERIES_TESTING_H_
#define SUBLET_SERVER_STORE_QUERIES_TESTING_H_

#include <sqlite3.h>

#include <atomic>
#include <cstdint>

namespace sublet::server::testing {

inline std::atomic<uint64_t> executed_queries{0};
inline thread_local uint64_t executed_by_this_thread = 0;

// The statements that f executes, on connections opened while a CountQueries existed.
template <typename F>
uint64_t queries_during(F f) {
  const uint64_t before = executed_queries;
  f();
  return executed_queries - before;
}

// One at a time.
class CountQueries {
 public:
  CountQueries() { sqlite3_auto_extension(entry()); }
  ~CountQueries() { sqlite3_cancel_auto_extension(entry()); }
  CountQueries(const CountQueries&) = delete;

 private:
  using Entry = void (*)();
  static Entry entry() { return reinterpret_cast<Entry>(&watch); }
  static int watch(sqlite3* database, char**, const void*) {
    return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, &count, nullptr);
  }
  static int count(unsigned, void*, void*, void*) {
    ++executed_queries;
    ++executed_by_this_thread;
    return 0;
  }
};

}  // namespace sublet::server::testing

#endif  // SUBLET_SERVER_STORE_QUERIES_TESTING_H_

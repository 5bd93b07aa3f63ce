// The best that this machine allows: the figures that the benchmarks are compared
// with. Each command prints one JSON object.
//
//   usage: bench-limits spawn COUNT AT_A_TIME   vfork, exec and wait of /bin/true
//          bench-limits commit FILE ROWS COUNT  transactions of ROWS rows each, as durable
//                                               as the server's (WAL, synchronous=FULL);
//                                               p99 of one, too
//          bench-limits rows FILE TABLE         reads every row
//          bench-limits save FILE BYTES COUNT   writes a new file, syncs and renames it
//          bench-limits signal COUNT            from sending SIGTERM until its handler runs
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Seconds = std::chrono::duration<double>;
using Stopwatch = std::chrono::steady_clock;

double since(Stopwatch::time_point began) { return Seconds(Stopwatch::now() - began).count(); }

void print_rate(uint64_t count, double seconds) {
  std::printf("{\"count\": %llu, \"seconds\": %.6f}\n", static_cast<unsigned long long>(count),
              seconds);
}

// posix_spawn is vfork and exec here: it suspends only the calling thread.
void run_true() {
  static char name[] = "true";
  static char* const words[] = {name, nullptr};
  static char* const nothing[] = {nullptr};
  pid_t pid = 0;
  int status = 0;
  if (posix_spawn(&pid, "/bin/true", nullptr, nullptr, words, nothing) != 0 ||
      waitpid(pid, &status, 0) != pid || status != 0)
    throw std::runtime_error("/bin/true could not be run");
}

void spawn(uint64_t count, unsigned at_a_time) {
  std::atomic<int64_t> left{static_cast<int64_t>(count)};
  const auto began = Stopwatch::now();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < at_a_time; ++i)
    threads.emplace_back([&left] {
      while (left-- > 0) run_true();
    });
  for (auto& thread : threads) thread.join();
  print_rate(count, since(began));
}

class Database {
 public:
  explicit Database(const std::string& path) {
    check(sqlite3_open(path.c_str(), &handle_));
    run("pragma journal_mode=wal");
    run("pragma synchronous=full");
  }
  ~Database() { sqlite3_close(handle_); }
  Database(const Database&) = delete;

  void run(const char* statement) {
    check(sqlite3_exec(handle_, statement, nullptr, nullptr, nullptr));
  }
  sqlite3_stmt* prepare(const std::string& text) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(handle_, text.c_str(), -1, &statement, nullptr));
    return statement;
  }
  void check(int code) {
    if (code != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(handle_));
  }

 private:
  sqlite3* handle_ = nullptr;
};

// Rows of about the size of a job's.
void commit(const std::string& path, uint64_t rows, uint64_t count) {
  Database database(path);
  database.run("create table if not exists jobs (id integer primary key, body text not null)");
  sqlite3_stmt* insert = database.prepare("insert into jobs (body) values (?)");
  const std::string body(150, 'x');
  std::vector<double> delays;
  const auto began = Stopwatch::now();
  for (uint64_t i = 0; i < count; ++i) {
    const auto asked = Stopwatch::now();
    database.run("begin immediate");
    for (uint64_t row = 0; row < rows; ++row) {
      database.check(
          sqlite3_bind_text(insert, 1, body.data(), static_cast<int>(body.size()), SQLITE_STATIC));
      if (sqlite3_step(insert) != SQLITE_DONE)
        throw std::runtime_error("a row could not be inserted");
      database.check(sqlite3_reset(insert));
    }
    database.run("commit");
    delays.push_back(since(asked));
  }
  const double seconds = since(began);
  sqlite3_finalize(insert);
  std::sort(delays.begin(), delays.end());
  std::printf("{\"count\": %llu, \"seconds\": %.6f, \"p99\": %.9f}\n",
              static_cast<unsigned long long>(count * rows), seconds,
              delays.at(std::min(delays.size() - 1, delays.size() * 99 / 100)));
}

// Reads each column in its own type, so that SQLite does not convert numbers to text.
double value(sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    default:
      return sqlite3_column_bytes(row, column);
  }
}

void read_rows(const std::string& path, const std::string& table) {
  Database database(path);
  const auto began = Stopwatch::now();
  sqlite3_stmt* all = database.prepare("select * from " + table);
  const int columns = sqlite3_column_count(all);
  uint64_t count = 0;
  double sum = 0;
  for (; sqlite3_step(all) == SQLITE_ROW; ++count)
    for (int i = 0; i < columns; ++i) sum += value(all, i);
  const double seconds = since(began);
  sqlite3_finalize(all);
  if (sum == 0) throw std::runtime_error("the table is empty");
  print_rate(count, seconds);
}

void print_delays(std::vector<double>& seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"p50\": %.9f, \"p99\": %.9f}\n", seconds.at(seconds.size() / 2),
              seconds.at(seconds.size() * 99 / 100));
}

// Throws if a file operation failed.
int must(int result) {
  if (result < 0) throw std::runtime_error("a file could not be written");
  return result;
}

void save(const std::string& path, size_t size, size_t count) {
  const std::string data(size, 'x'), fresh = path + ".new";
  const int folder = must(open(path.substr(0, path.rfind('/') + 1).c_str(), O_RDONLY));
  std::vector<double> took;
  for (size_t i = 0; i < count; ++i) {
    const auto began = Stopwatch::now();
    const int file = must(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    if (write(file, data.data(), size) != static_cast<ssize_t>(size)) must(-1);
    must(fsync(file));
    must(close(file));
    must(rename(fresh.c_str(), path.c_str()));
    must(fsync(folder));
    took.push_back(since(began));
  }
  close(folder);
  print_delays(took);
}

struct Heard {
  std::atomic<int64_t> at_ns;
};
Heard* heard = nullptr;

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

void signals(size_t count) {
  heard = static_cast<Heard*>(
      mmap(nullptr, sizeof(Heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (heard == MAP_FAILED) throw std::runtime_error("no shared memory");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGTERM, [](int) { heard->at_ns = now_ns(); });
    heard->at_ns = 1;
    while (true) pause();
  }
  while (heard->at_ns == 0) usleep(1000);
  std::vector<double> delays;
  while (delays.size() < count) {
    usleep(2000);
    heard->at_ns = 0;
    const int64_t sent = now_ns();
    kill(child, SIGTERM);
    while (heard->at_ns == 0) usleep(50);
    delays.push_back(static_cast<double>(heard->at_ns - sent) / 1e9);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  print_delays(delays);
}

int run(const std::vector<std::string>& words) {
  const auto number = [&words](size_t i) { return std::stoull(words[i]); };
  if (words.size() == 3 && words[0] == "spawn")
    spawn(number(1), static_cast<unsigned>(number(2)));
  else if (words.size() == 4 && words[0] == "commit")
    commit(words[1], number(2), number(3));
  else if (words.size() == 3 && words[0] == "rows")
    read_rows(words[1], words[2]);
  else if (words.size() == 4 && words[0] == "save")
    save(words[1], number(2), number(3));
  else if (words.size() == 2 && words[0] == "signal")
    signals(number(1));
  else
    return std::fputs("usage: bench-limits spawn|commit|rows|save|signal ...\n", stderr), 2;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-limits: %s\n", error.what());
    return 1;
  }
}

// top: a live view of the pool.
#include "cli/views/top.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool_client.h"
#include "cli/views/screen.h"

namespace sublet::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kDrawEvery = std::chrono::seconds(1);
constexpr int64_t kHourUs = 3'600'000'000;
constexpr uint64_t kHistory = 1'000;  // changes, one page: how far back to look for the newest
constexpr size_t kMostEvents = 100;

// Reads the data of a picture with lists and reports of bounded size; the server answers
// these calls at once.
class Watch {
 public:
  explicit Watch(PoolClient& pool) : pool_(pool) {}

  PoolPicture read() {
    PoolPicture p;
    p.pool = pool_.about().name;
    p.machines = all_machines(pool_);
    p.standings = pool_.current_standings();
    JobFilter unfinished;
    unfinished.unfinished_only = true;
    p.jobs = pool_.count(unfinished);
    read_events();
    p.events = events_;
    p.at_us = now_us();
    ReportQuery hour;
    hour.since_us = p.at_us - kHourUs;
    for (const UsageLine& line : pool_.usage(hour, "", 1).lines) {
      p.evictions = line.evictions;
      p.own_evictions = line.local_us < 0;
    }
    return p;
  }

 private:
  // The changes since the last call; of many, only the newest.
  void read_events() {
    const uint64_t newest = pool_.changes_since(0, 0).last;
    if (newest == 0) return;
    const uint64_t back = newest > kHistory ? newest - kHistory : 1;
    ChangePage page = pool_.changes_since(std::max(since_, back), 0);
    since_ = std::max(page.last, newest);
    events_.insert(events_.end(), page.items.begin(), page.items.end());
    if (events_.size() > kMostEvents)
      events_.erase(events_.begin(), events_.end() - static_cast<ptrdiff_t>(kMostEvents));
  }

  PoolClient& pool_;
  uint64_t since_ = 0;
  std::vector<Change> events_;
};

// Draws every second, so that ages and the terminal's size are right; calls the server as
// often as pause_after_refresh() allows.
class Live {
 public:
  explicit Live(PoolClient& pool) : watch_(pool) { refresh(); }

  [[noreturn]] void run() {
    Screen screen;
    while (true) {
      draw(screen);
      std::this_thread::sleep_until(std::min(next_refresh_, Clock::now() + kDrawEvery));
      if (Clock::now() < next_refresh_) continue;
      try {
        refresh();
        notice_.clear();
      } catch (const PoolError& e) {
        if (e.kind != ErrorKind::unavailable) throw;
        notice_ = "no answer: " + e.message;
        next_refresh_ = Clock::now() + kDrawEvery;
      }
    }
  }

 private:
  void refresh() {
    const auto begin = Clock::now();
    picture_ = watch_.read();
    const auto end = Clock::now();
    pause_ =
        pause_after_refresh(std::chrono::duration_cast<std::chrono::milliseconds>(end - begin));
    next_refresh_ = end + pause_;
  }

  void draw(Screen& screen) {
    const Terminal terminal = detect_terminal();
    const size_t columns = terminal.columns > 1 ? terminal.columns - 1 : terminal.columns;
    std::string notice = notice_;
    if (notice.empty() && pause_ > kDrawEvery)
      notice = "refreshed every " + format_duration_ms(pause_.count()) + ": the server is busy";
    screen.show(top_frame(picture_, notice, columns, terminal.rows, terminal.colour));
  }

  Watch watch_;
  PoolPicture picture_;
  std::string notice_;
  std::chrono::milliseconds pause_{};
  Clock::time_point next_refresh_;
};

int run_top(bool once, Context& context) {
  if (!once && !context.json && context.terminal.out_is_screen) Live(context.pool()).run();
  const PoolPicture picture = Watch(context.pool()).read();
  if (context.json) {
    JsonWriter json;
    write_json(json, picture);
    print(json.str() + "\n");
    return 0;
  }
  print(top_frame(picture, "", context.terminal.columns, 0, context.terminal.colour));
  return 0;
}

}  // namespace

Command top_command(Arguments& top) {
  auto once = std::make_shared<bool>(false);
  Arguments& a =
      top.command("top",
                  "Watch the pool: machines, slots, waiting users, evictions, events. Press q or "
                  "Ctrl-C to quit. Without a terminal, or with --json, print it once.");
  a.flag("--once", once.get(), "print it once");
  return {&a, [once](Context& context) { return run_top(*once, context); }};
}

}  // namespace sublet::cli

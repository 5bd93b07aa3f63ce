#include "server/spool/spool.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"
#include "base/text.h"
#include "server/refusal_testing.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

using testing::code;

class SpoolTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SpoolTest);
  CPPUNIT_TEST(small_and_large_files_come_back);
  CPPUNIT_TEST(who_does_not_know_the_digest_gets_it);
  CPPUNIT_TEST(a_cut_upload_goes_on);
  CPPUNIT_TEST(others_cannot_touch_an_upload);
  CPPUNIT_TEST(what_differs_is_refused);
  CPPUNIT_TEST(idle_uploads_are_dropped);
  CPPUNIT_TEST(a_restart_removes_what_is_unfinished);
  CPPUNIT_TEST(a_damaged_file_is_named);
  CPPUNIT_TEST(altered_contents_are_noticed);
  CPPUNIT_TEST(a_copy_is_as_good);
  CPPUNIT_TEST(what_rots_is_found_when_it_is_suspect);
  CPPUNIT_TEST(a_suspect_that_was_right_is_believed_for_a_while);
  CPPUNIT_TEST(superfluous_files_go_later);
  CPPUNIT_TEST(unfinished_uploads_are_announced);
  CPPUNIT_TEST(one_of_many_threads_commits);
  CPPUNIT_TEST(a_doubtful_commit_removes_nothing);
  CPPUNIT_TEST(a_failed_sync_drops_the_upload);
  CPPUNIT_TEST(a_read_error_may_pass);
  CPPUNIT_TEST(a_file_is_given_up_after_minutes);
  CPPUNIT_TEST(an_error_while_it_is_fetched_is_no_damage);
  CPPUNIT_TEST(a_file_that_cannot_be_opened_is_not_damaged);
  CPPUNIT_TEST(what_cannot_be_removed_does_no_harm);
  CPPUNIT_TEST(an_upload_that_cannot_be_read_is_not_acknowledged);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  ManualClock clock_{1'700'000'000'000'000, 0};
  std::unique_ptr<SqlStore> store_;
  std::unique_ptr<Archive> archive_;

 public:
  void setUp() override {
    store_ = std::make_unique<SqlStore>(folder_.path() + "/pool.db");
    archive_ = std::make_unique<Archive>(folder_.path() + "/pool.db");
  }

 private:
  Spool spool() { return Spool({folder_.path() + "/spool"}, *archive_, clock_); }

  static FileRow input() {
    FileRow row;
    row.name = "data";
    row.batch = 1;
    return row;
  }

  static FileRow send(Spool& spool, const std::string& bytes, const std::string& request = "r") {
    auto started = spool.open("ann", request, input(), bytes.size(), digest_of(bytes));
    for (size_t at = 0; at < bytes.size(); at += Spool::kChunk)
      spool.put(started.id, "ann", at, std::string_view(bytes).substr(at, Spool::kChunk));
    return close(spool, started.id);
  }

  // Without a store: the row is what would be committed.
  static FileRow close(Spool& spool, uint64_t id, const std::string& owner = "ann") {
    FileRow committed;
    spool.close(id, owner, [&](FileRow& row) { committed = row; });
    return committed;
  }

  static std::string read(Spool& spool, const FileRow& row, uint64_t offset, size_t count) {
    std::string bytes(count, '\0');
    bytes.resize(spool.read(row, offset, bytes));
    return bytes;
  }

  void who_does_not_know_the_digest_gets_it() {
    Spool s = spool();
    for (const std::string& bytes : {std::string("abc"), std::string(3 * Spool::kInRow, 'k')}) {
      const auto started = s.open("ann", "r", input(), bytes.size(), std::nullopt);
      CPPUNIT_ASSERT_EQUAL(std::string("request.reused"), code([&] {
                             s.open("ann", "r", input(), bytes.size(), digest_of(bytes));
                           }));
      s.put(started.id, "ann", 0, bytes);
      const FileRow row = close(s, started.id);
      CPPUNIT_ASSERT_EQUAL(hex(digest_of(bytes)), row.digest);
      CPPUNIT_ASSERT(s.intact(row));
    }
  }

  void small_and_large_files_come_back() {
    Spool s = spool();
    for (size_t size : {size_t{0}, size_t{5}, size_t{Spool::kInRow}, size_t{Spool::kInRow} + 1,
                        size_t{3 * Spool::kChunk + 17}}) {
      std::string bytes(size, 'x');
      if (size) bytes[size / 2] = '\0';
      const FileRow row = send(s, bytes, std::to_string(size));
      CPPUNIT_ASSERT_EQUAL(size <= Spool::kInRow, row.in_row);
      std::string got;
      while (got.size() < size) got += read(s, row, got.size(), Spool::kChunk);
      CPPUNIT_ASSERT(got == bytes);
      CPPUNIT_ASSERT(read(s, row, size, 10).empty());
    }
  }

  void a_cut_upload_goes_on() {
    Spool s = spool();
    const std::string bytes(100'000, 'y');
    auto first = s.open("ann", "req", input(), bytes.size(), digest_of(bytes));
    s.put(first.id, "ann", 0, bytes.substr(0, 60'000));
    auto again = s.open("ann", "req", input(), bytes.size(), digest_of(bytes));
    CPPUNIT_ASSERT_EQUAL(first.id, again.id);
    CPPUNIT_ASSERT_EQUAL(uint64_t{60'000}, again.offset);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.offset"),
                         code([&] { s.put(first.id, "ann", 0, "zzz"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("spool.incomplete"), code([&] { close(s, first.id); }));
    s.put(first.id, "ann", 60'000, bytes.substr(60'000));
    CPPUNIT_ASSERT_EQUAL(uint64_t{100'000}, close(s, first.id).size);
    CPPUNIT_ASSERT(s.finished_before(first.id, "ann"));
    CPPUNIT_ASSERT(!s.finished_before(first.id, "bob"));
  }

  void others_cannot_touch_an_upload() {
    Spool s = spool();
    auto started = s.open("ann", "req", input(), 3, digest_of("abc"));
    CPPUNIT_ASSERT_EQUAL(std::string("upload.unknown"),
                         code([&] { s.put(started.id, "bob", 0, "abc"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("upload.unknown"), code([&] { close(s, started.id, "bob"); }));
    try {
      close(s, started.id, "bob");
    } catch (const Refusal& refusal) {
      CPPUNIT_ASSERT_EQUAL("upload " + std::to_string(started.id), refusal.subject);
    }
    // Another owner's upload with the same request id is a different one.
    CPPUNIT_ASSERT(s.open("bob", "req", input(), 3, digest_of("abc")).id != started.id);
  }

  void what_differs_is_refused() {
    Spool s = spool();
    auto started = s.open("ann", "1", input(), 3, digest_of("abc"));
    CPPUNIT_ASSERT_EQUAL(std::string("spool.size"),
                         code([&] { s.put(started.id, "ann", 0, "abcd"); }));
    s.put(started.id, "ann", 0, "abd");
    CPPUNIT_ASSERT_EQUAL(std::string("spool.digest"), code([&] { close(s, started.id); }));
    s.open("ann", "2", input(), 3, digest_of("abc"));
    CPPUNIT_ASSERT_EQUAL(std::string("request.reused"),
                         code([&] { s.open("ann", "2", input(), 4, digest_of("abc")); }));
    CPPUNIT_ASSERT_EQUAL(std::string("spool.too_large"),
                         code([&] { s.open("ann", "3", input(), 1ull << 50, digest_of("")); }));
  }

  void idle_uploads_are_dropped() {
    Spool s = spool();
    s.open("ann", "1", input(), 100'000, digest_of("abc"));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, s.drop_idle());
    clock_.advance_ms(3601 * 1000);
    s.open("ann", "2", input(), 100'000, digest_of("abc"));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, s.drop_idle());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, system_files().list(folder_.path() + "/spool").size());
  }

  void a_restart_removes_what_is_unfinished() {
    FileRow kept, orphan;
    {
      Spool s = spool();
      kept = send(s, std::string(100'000, 'k'), "kept");
      orphan = send(s, std::string(100'000, 'u'), "row never committed");
      s.open("ann", "cut", input(), 100'000, digest_of("abc"));
    }
    Changes changes;
    changes.files[kept.id] = kept;
    changes.contents[kept.content] = {kept.content, kept.digest, kept.size, kept.identity, false};
    store_->commit(changes);
    Spool s = spool();
    const auto left = system_files().list(folder_ / "spool");
    CPPUNIT_ASSERT_EQUAL(size_t{2}, left.size());
    CPPUNIT_ASSERT_EQUAL(std::to_string(kept.content), left[0].name);
    CPPUNIT_ASSERT_EQUAL(std::string("orphans"), left[1].name);
    CPPUNIT_ASSERT(system_files().exists(
        folder_ / ("spool/orphans/2023-11-14/" + std::to_string(orphan.content))));
    CPPUNIT_ASSERT_EQUAL(std::string(10, 'k'), read(s, kept, 5, 10));
    CPPUNIT_ASSERT(send(s, "new", "new").id > kept.id);
  }

  // A caller that timed out opens and closes again while the first call still runs.
  void one_of_many_threads_commits() {
    Spool s = spool();
    // Large ones take long to close; between those of small ones, calls come at every moment.
    close_by_many(s, std::string(50'000, 't'), 50);
    close_by_many(s, "t", 2'000);
  }

  void close_by_many(Spool& s, const std::string& bytes, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const std::string request = std::to_string(bytes.size()) + "." + std::to_string(round);
      const auto upload = s.open("ann", request, input(), bytes.size(), std::nullopt);
      s.put(upload.id, "ann", 0, bytes);
      std::atomic<int> commits{0}, closed{0}, ready{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          ++ready;
          while (ready < 4) continue;
          s.close(upload.id, "ann", [&](FileRow&) { ++commits; });
          ++closed;
          s.drop_idle();
        });
      for (auto& t : threads) t.join();
      CPPUNIT_ASSERT_EQUAL(1, commits.load());
      CPPUNIT_ASSERT_EQUAL(4, closed.load());
    }
  }

  bool has_file(uint64_t id) const {
    return system_files().exists(folder_.path() + "/spool/" + std::to_string(id));
  }

  // Its row may be on disk although the server could not say so.
  void a_doubtful_commit_removes_nothing() {
    Spool s = spool();
    const std::string bytes(100'000, 'd');
    const auto upload = s.open("ann", "1", input(), bytes.size(), digest_of(bytes));
    s.put(upload.id, "ann", 0, bytes);
    FileRow row;
    CPPUNIT_ASSERT_EQUAL(std::string("server.disk"), code([&] {
                           s.close(upload.id, "ann", [&](FileRow& one) {
                             row = one;
                             throw Refusal(Refusal::Kind::kUnavailable, "server.disk", "", "", "");
                           });
                         }));
    CPPUNIT_ASSERT(has_file(upload.id));
    CPPUNIT_ASSERT_EQUAL(upload.id, close(s, upload.id).id);  // repeated
    const auto doubtful = s.open("ann", "2", input(), bytes.size(), digest_of(bytes));
    const auto refused = s.open("ann", "3", input(), bytes.size(), digest_of(bytes));
    for (const auto& one : {doubtful, refused}) {
      s.put(one.id, "ann", 0, bytes);
      const auto kind =
          one.id == refused.id ? Refusal::Kind::kConflict : Refusal::Kind::kUnavailable;
      code([&] {
        s.close(one.id, "ann", [&](FileRow& tried) {
          row = tried;
          throw Refusal(kind, "", "", "", "");
        });
      });
      if (kind == Refusal::Kind::kConflict) continue;
      Changes changes;
      changes.files[row.id] = row;
      changes.contents[row.content] = {row.content, row.digest, row.size, row.identity, false};
      store_->commit(changes);
    }
    CPPUNIT_ASSERT(!has_file(refused.id));
    clock_.advance_ms(3601 * 1000);
    s.drop_idle();
    CPPUNIT_ASSERT(has_file(doubtful.id));
  }

  // What a failed sync has lost, a later one does not bring back.
  void a_failed_sync_drops_the_upload() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    const std::string bytes(100'000, 'e');
    int committed = 0;
    for (const FileStep step : {FileStep::sync, FileStep::rename, FileStep::sync_folder}) {
      const auto upload = s.open("ann", "r", input(), bytes.size(), digest_of(bytes));
      s.put(upload.id, "ann", 0, bytes);
      files.fail_step(step, EIO);
      const auto closed = [&] {
        return code([&] { s.close(upload.id, "ann", [&](FileRow&) { ++committed; }); });
      };
      CPPUNIT_ASSERT_EQUAL(std::string("server.disk"), closed());
      files.fail_step(step, 0);
      CPPUNIT_ASSERT_EQUAL(std::string("upload.unknown"), closed());
      CPPUNIT_ASSERT(system_files().list(folder_.path() + "/spool").empty());
    }
    CPPUNIT_ASSERT_EQUAL(0, committed);
    send(s, bytes);
  }

  void a_damaged_file_is_named() {
    Spool s = spool();
    const FileRow row = send(s, std::string(100'000, 'k'));
    s.remove(row.id);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.damaged"), code([&] { read(s, row, 0, 10); }));
    CPPUNIT_ASSERT(!s.intact(row));
  }

  void a_read_error_may_pass() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    for (const size_t size : {size_t{100'000}, size_t{3} << 20}) {
      FileRow row = send(s, std::string(size, 'k'), std::to_string(size));
      row.identity = "";  // not verified before: it must be read
      for (const int failures : {1, 2}) {
        row.content += 1000;
        system_files().link(folder_.path() + "/spool/" + std::to_string(row.id),
                            folder_.path() + "/spool/" + std::to_string(row.content));
        files.fail_step(FileStep::read, EIO);
        for (int i = 0; i < failures; ++i) CPPUNIT_ASSERT(not_now(s, row));
        files.fail_step(FileStep::read, 0);
        CPPUNIT_ASSERT(intact(s, row));
      }
    }
  }

  // Clients repeat within a second, and a disk that resets takes longer.
  void a_file_is_given_up_after_minutes() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    for (const size_t size : {size_t{100'000}, size_t{3} << 20}) {
      FileRow row = send(s, std::string(size, 'k'), std::to_string(size));
      row.identity = "";
      files.fail_step(FileStep::read, EIO);
      for (int i = 0; i < 20; ++i) CPPUNIT_ASSERT(not_now(s, row));
      clock_.advance_ms(61'000);
      for (int i = 0; i < 20; ++i) CPPUNIT_ASSERT(not_now(s, row));
      clock_.advance_ms(61'000);
      while (not_now(s, row)) clock_.advance_ms(61'000);
      CPPUNIT_ASSERT(!intact(s, row));
      files.fail_step(FileStep::read, 0);
      // Nobody knows what it has: it is kept.
      s.remove(row.content);
      const std::string spool = folder_.path() + "/spool/";
      CPPUNIT_ASSERT(!system_files().exists(spool + std::to_string(row.content)));
      CPPUNIT_ASSERT_EQUAL(std::string(size, 'k'),
                           system_files().read_file(
                               spool + "orphans/" + format_instant(clock_.utc_us()).substr(0, 10) +
                                   "/" + std::to_string(row.content),
                               size + 1));
    }
  }

  // Damage is for ever: one error says nothing of it.
  void an_error_while_it_is_fetched_is_no_damage() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    const FileRow row = send(s, std::string(100'000, 'k'));
    CPPUNIT_ASSERT_EQUAL(std::string("kkk"), read(s, row, 0, 3));
    files.fail_step(FileStep::read, EIO);
    for (int i = 0; i < 5; ++i)
      CPPUNIT_ASSERT_EQUAL(std::string("server.disk"), code([&] { read(s, row, 0, 3); }));
    files.fail_step(FileStep::read, 0);
    CPPUNIT_ASSERT_EQUAL(std::string("kkk"), read(s, row, 0, 3));
  }

  // Nothing is known of the bytes of a file that cannot be opened.
  void a_file_that_cannot_be_opened_is_not_damaged() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    for (const size_t size : {size_t{100'000}, size_t{3} << 20}) {
      FileRow row = send(s, std::string(size, 'k'), std::to_string(size));
      row.identity = "";
      for (const int error : {EIO, EACCES, EMFILE}) {
        files.fail_step(FileStep::open, error);
        for (int i = 0; i < 5; ++i) {
          CPPUNIT_ASSERT(not_now(s, row));
          CPPUNIT_ASSERT_EQUAL(std::string("server.disk"), code([&] { read(s, row, 0, 10); }));
        }
      }
      CPPUNIT_ASSERT(!s.seems_intact({row.content, row.digest, row.size, row.identity}));
      files.fail_step(FileStep::open, 0);
      CPPUNIT_ASSERT(intact(s, row));
      CPPUNIT_ASSERT_EQUAL(std::string("kkk"), read(s, row, 0, 3));
    }
  }

  // Whether it may be asked for again; false: it counts as damaged.
  static bool not_now(Spool& s, const FileRow& row) {
    try {
      CPPUNIT_ASSERT(!s.intact(row));
      return false;
    } catch (const Refusal& refusal) {
      CPPUNIT_ASSERT(refusal.kind == Refusal::Kind::kUnavailable);
      return true;
    }
  }

  void what_cannot_be_removed_does_no_harm() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    const std::string bytes(100'000, 'k');
    const FileRow row = send(s, bytes);
    const auto upload = s.open("ann", "2", input(), bytes.size(), digest_of(bytes));
    s.put(upload.id, "ann", 0, bytes);
    files.fail_step(FileStep::remove, EIO);
    s.abandon(upload.id);
    s.remove(row.content);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, system_files().list(folder_.path() + "/spool").size());
    files.fail_step(FileStep::remove, 0);
    s.remove(row.content);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, system_files().list(folder_.path() + "/spool").size());
    CPPUNIT_ASSERT_EQUAL(std::string("upload.unknown"),
                         code([&] { s.put(upload.id, "ann", 0, bytes); }));
  }

  void an_upload_that_cannot_be_read_is_not_acknowledged() {
    FaultyFiles files;
    Spool s({folder_.path() + "/spool"}, *archive_, clock_, files);
    const std::string bytes(100'000, 'k');
    int committed = 0;
    files.fail_step(FileStep::read, EIO);
    const auto upload = s.open("ann", "r", input(), bytes.size(), digest_of(bytes));
    s.put(upload.id, "ann", 0, bytes);
    CPPUNIT_ASSERT_EQUAL(std::string("server.disk"),
                         code([&] { s.close(upload.id, "ann", [&](FileRow&) { ++committed; }); }));
    CPPUNIT_ASSERT_EQUAL(0, committed);
    files.fail_step(FileStep::read, 0);
    CPPUNIT_ASSERT_EQUAL(hex(digest_of(bytes)), close(s, upload.id).digest);
  }

  // Waits for the check, since a large file is read in the background.
  static bool intact(Spool& s, const FileRow& row, bool suspect = false) {
    while (true) {
      try {
        return s.intact(row, suspect);
      } catch (const Refusal& refusal) {
        // A large file is read by another thread, whose last try may have failed.
        if (refusal.code != "spool.checking" && refusal.code != "server.disk") throw;
        suspect = false;
      }
      std::this_thread::yield();
    }
  }

  void altered_contents_are_noticed() {
    Spool s = spool();
    for (size_t size :
         {size_t{0}, size_t{100}, size_t{Spool::kInRow + 1}, size_t{2 * Spool::kChunk + 7}}) {
      FileRow row = send(s, std::string(size, 'k'), std::to_string(size));
      CPPUNIT_ASSERT(s.intact(row));  // without a check: it is the file that was hashed
      if (size == 0) continue;
      const std::string path = folder_.path() + "/spool/" + std::to_string(row.id);
      if (row.in_row) {
        row.body.back() ^= 1;
      } else {
        system_files().write_atomic(path, std::string(size - 1, 'k') + "j");
        CPPUNIT_ASSERT_EQUAL(
            size > Spool::kChunk ? std::string("spool.checking") : std::string("spool.damaged"),
            code([&] { read(s, row, 0, 10); }));
      }
      CPPUNIT_ASSERT(!intact(s, row));
      if (row.in_row) {
        row.body.clear();
      } else {
        system_files().write_atomic(path, std::string(size - 1, 'k'));
      }
      CPPUNIT_ASSERT(!intact(s, row));
    }
  }

  // As after a restore from a backup: a different file with the same bytes.
  void a_copy_is_as_good() {
    Spool s = spool();
    for (size_t size : {size_t{100'000}, size_t{3'000'000}}) {
      const FileRow row = send(s, std::string(size, 'k'), std::to_string(size));
      system_files().write_atomic(folder_.path() + "/spool/" + std::to_string(row.id),
                                  std::string(size, 'k'));
      CPPUNIT_ASSERT(intact(s, row));
      CPPUNIT_ASSERT(s.intact(row));  // the result is remembered
      CPPUNIT_ASSERT_EQUAL(std::string("kkk"), read(s, row, size - 3, 10));
    }
  }

  // Silent corruption by the disk does not change the file's times.
  void what_rots_is_found_when_it_is_suspect() {
    Spool s = spool();
    for (size_t size : {size_t{100'000}, size_t{3'000'000}}) {
      FileRow row = send(s, std::string(size, 'k'), std::to_string(size));
      const std::string path = folder_.path() + "/spool/" + std::to_string(row.id);
      system_files().write_atomic(path, std::string(size - 1, 'k') + "j");
      row.identity = file_identity(UniqueFd(::open(path.c_str(), O_RDONLY)).get());
      CPPUNIT_ASSERT(s.intact(row));
      CPPUNIT_ASSERT(!intact(s, row, true));
      CPPUNIT_ASSERT_EQUAL(std::string("spool.damaged"), code([&] { read(s, row, 0, 10); }));
    }
  }

  void a_suspect_that_was_right_is_believed_for_a_while() {
    Spool s = spool();
    const FileRow row = send(s, std::string(3'000'000, 'k'));
    CPPUNIT_ASSERT(intact(s, row, true));
    CPPUNIT_ASSERT(s.intact(row, true));
    clock_.advance_ms(61'000);
    CPPUNIT_ASSERT_EQUAL(std::string("spool.checking"), code([&] { s.intact(row, true); }));
    CPPUNIT_ASSERT(intact(s, row));
  }

  void superfluous_files_go_later() {
    Spool s = spool();
    const std::string bytes(100'000, 'k');
    const FileRow first = send(s, bytes, "1");
    auto started = s.open("ann", "2", input(), bytes.size(), digest_of(bytes));
    s.put(started.id, "ann", 0, bytes);
    FileRow second;
    s.close(started.id, "ann", [&](FileRow& row) {
      row.content = first.id;
      second = row;
    });
    CPPUNIT_ASSERT_EQUAL(size_t{2}, system_files().list(folder_.path() + "/spool").size());
    s.drop_idle();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, system_files().list(folder_.path() + "/spool").size());
    CPPUNIT_ASSERT_EQUAL(std::string("kk"), read(s, second, 99'998, 10));
  }

  void unfinished_uploads_are_announced() {
    Spool s = spool();
    FileRow row = input();
    row.user = "ann";
    auto first = s.open("ann", "1", row, 100'000, digest_of("abc"));
    s.open("ann", "2", row, 0, digest_of(""));
    CPPUNIT_ASSERT_EQUAL(uint64_t{100'000}, s.announced("ann", false));
    row.kind = FileKind::kCheckpoint;
    s.open("ann", "3", row, 7, digest_of("abc"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{7}, s.announced("ann", true));
    s.abandon(first.id);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, s.announced("ann", false));
    CPPUNIT_ASSERT_EQUAL(std::string("upload.unknown"),
                         code([&] { s.put(first.id, "ann", 0, "x"); }));
    CPPUNIT_ASSERT(system_files().list(folder_.path() + "/spool").empty());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SpoolTest);

}  // namespace
}  // namespace sublet::server

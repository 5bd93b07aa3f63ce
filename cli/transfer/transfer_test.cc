// Uploads and downloads with a fake spool that loses connections, loses uploads and sends
// wrong data; and the target folder of downloads.
#include "cli/transfer/transfer.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "base/files.h"
#include "cli/transfer/target_folder.h"
#include "cli/views/output.h"

namespace sublet::cli {
namespace {

PoolError lost() { return {ErrorKind::unavailable, "server.unreachable", "lost"}; }

class FakeSpool : public SpoolCalls {
 public:
  struct Held {
    std::string bytes;
    uint64_t size = 0;
    std::optional<Digest> digest;
  };

  Upload open_upload(const RequestId& request, const FilePlace&, uint64_t size,
                     const std::optional<Digest>& digest) override {
    ++opened;
    uint64_t& id = ids[request];
    if (id == 0) {
      id = ++last;
      held[id].size = size;
      held[id].digest = digest;
    }
    return {id, held.count(id) != 0 ? held[id].bytes.size() : 0};
  }
  uint64_t put(uint64_t id, uint64_t offset, const std::string& chunk) override {
    if (before_put) before_put(id);
    if (held.count(id) == 0) throw PoolError(ErrorKind::not_found, "upload.unknown", "forgotten");
    Held& h = held[id];
    if (offset != h.bytes.size()) throw PoolError(ErrorKind::conflict, "spool.offset", "elsewhere");
    h.bytes += chunk;
    sent += chunk.size();
    const uint64_t offset_now = h.bytes.size();
    if (after_put) after_put(id);
    return offset_now;
  }
  uint64_t close_upload(uint64_t id) override {
    if (held.count(id) == 0) throw PoolError(ErrorKind::not_found, "upload.unknown", "forgotten");
    if (held[id].digest) CPPUNIT_ASSERT(digest_of(held[id].bytes) == *held[id].digest);
    CPPUNIT_ASSERT_EQUAL(held[id].size, static_cast<uint64_t>(held[id].bytes.size()));
    ++closed;
    return id;
  }
  std::string get(const FilePlace&, uint64_t offset, uint32_t count) override {
    std::lock_guard lock(asking);  // two chunks are requested concurrently
    if (before_get) before_get(offset);
    return stored.substr(offset, count);
  }
  void doubt(const FilePlace&) override {
    ++doubts;
    if (doubts == 1) throw PoolError(ErrorKind::unavailable, "spool.checking", "reading");
    if (damaged) throw PoolError(ErrorKind::not_found, "spool.damaged", "rotten");
  }

  std::map<RequestId, uint64_t> ids;
  std::map<uint64_t, Held> held;
  uint64_t last = 0;
  int opened = 0;
  int closed = 0;
  uint64_t sent = 0;
  int doubts = 0;
  bool damaged = false;
  std::string stored;
  std::function<void(uint64_t)> before_put, after_put;
  std::mutex asking;
  std::function<void(uint64_t)> before_get;
};

constexpr TransferPatience kPatience{2000, 1};

class TransferTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TransferTest);
  CPPUNIT_TEST(each_content_once);
  CPPUNIT_TEST(reads_what_it_must);
  CPPUNIT_TEST(resumes);
  CPPUNIT_TEST(server_that_forgets);
  CPPUNIT_TEST(gives_up);
  CPPUNIT_TEST(changed_while_sent);
  CPPUNIT_TEST(changed_in_place_while_sent);
  CPPUNIT_TEST(changed_before_sent);
  CPPUNIT_TEST(no_input);
  CPPUNIT_TEST(downloads);
  CPPUNIT_TEST(damaged_download);
  CPPUNIT_TEST(target_appears_whole);
  CPPUNIT_TEST(target_refuses);
  CPPUNIT_TEST(target_replaces_link);
  CPPUNIT_TEST(target_of_somebody_else);
  CPPUNIT_TEST(target_before_it_exists);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    char name[] = "/tmp/sublet-transfer-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
    folder_ = name;
  }
  void tearDown() override { system_files().remove_tree(folder_); }

 private:
  std::string put_file(const std::string& name, const std::string& bytes) {
    std::string path = folder_ + "/" + name;
    system_files().write_atomic(path, bytes);
    return path;
  }
  static BatchPlan plan_of(const std::vector<std::string>& paths) {
    BatchPlan plan;
    plan.jobs.emplace_back();
    for (const std::string& path : paths) plan.jobs[0].inputs.push_back({path, path, false});
    return plan;
  }
  static std::string pattern(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 257);
    return bytes;
  }
  template <typename F>
  static std::string code_of(F f) {
    try {
      f();
    } catch (const PoolError& e) {
      return e.code;
    }
    return "none";
  }

  void each_content_once() {
    std::string a = put_file("a", "same");
    std::string b = put_file("b", "same");
    std::string c = put_file("c", "");
    std::string d = put_file("d", pattern(3'000'000));
    FakeSpool spool;
    InputFiles files;
    BatchPlan plan = plan_of({a, b, c, d});
    plan.jobs.push_back(plan.jobs[0]);
    files.read(plan);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, files.distinct());
    CPPUNIT_ASSERT_EQUAL(uint64_t{3'000'004}, files.bytes());
    files.upload(spool, 1, kPatience);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, spool.held.size());
    CPPUNIT_ASSERT_EQUAL(files.file_id(a), files.file_id(b));
    CPPUNIT_ASSERT(spool.held[files.file_id(d)].bytes == pattern(3'000'000));
    CPPUNIT_ASSERT_EQUAL(uint64_t{3'000'004}, spool.sent);
  }

  // Only files of equal size are read before they are sent; a second name of the same file is
  // recognised without a digest.
  void reads_what_it_must() {
    std::string a = put_file("a", "same");
    std::string b = put_file("b", "some");
    std::string c = put_file("c", "longer");
    std::string d = folder_ + "/d";
    CPPUNIT_ASSERT_EQUAL(0, link(c.c_str(), d.c_str()));
    FakeSpool spool;
    InputFiles files;
    files.read(plan_of({a, b, c, d}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, files.distinct());
    files.upload(spool, 1, kPatience);
    CPPUNIT_ASSERT_EQUAL(files.file_id(c), files.file_id(d));
    CPPUNIT_ASSERT(spool.held[files.file_id(a)].digest == digest_of("same"));
    CPPUNIT_ASSERT(spool.held[files.file_id(b)].digest == digest_of("some"));
    CPPUNIT_ASSERT(!spool.held[files.file_id(c)].digest);
    CPPUNIT_ASSERT_EQUAL(std::string("longer"), spool.held[files.file_id(c)].bytes);
  }

  // The connection is lost before or after every chunk has arrived.
  void resumes() {
    std::string path = put_file("a", pattern(2'000'000));
    FakeSpool spool;
    int calls = 0;
    spool.before_put = [&](uint64_t) {
      if (++calls % 3 == 1) throw lost();
    };
    spool.after_put = [&](uint64_t) {
      if (calls % 3 == 2) throw lost();
    };
    InputFiles files;
    files.read(plan_of({path}));
    files.upload(spool, 1, kPatience);
    CPPUNIT_ASSERT(spool.held[files.file_id(path)].bytes == pattern(2'000'000));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2'000'000}, spool.sent);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, spool.ids.size());
    CPPUNIT_ASSERT(spool.opened > 2);
  }

  void server_that_forgets() {
    std::string path = put_file("a", pattern(2'000'000));
    FakeSpool spool;
    bool forgotten = false;
    spool.after_put = [&](uint64_t id) {
      if (!std::exchange(forgotten, true)) spool.held.erase(id);
    };
    InputFiles files;
    files.read(plan_of({path}));
    files.upload(spool, 1, kPatience);
    CPPUNIT_ASSERT(spool.held[files.file_id(path)].bytes == pattern(2'000'000));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, spool.ids.size());
  }

  void gives_up() {
    std::string path = put_file("a", "x");
    FakeSpool spool;
    InputFiles files;
    files.read(plan_of({path}));
    spool.before_put = [](uint64_t) { throw lost(); };
    CPPUNIT_ASSERT_EQUAL(std::string("server.unreachable"), code_of([&] {
                           files.upload(spool, 1, {20, 1});
                         }));
    spool.before_put = [](uint64_t) {
      throw PoolError(ErrorKind::conflict, "spool.offset", "never right");
    };
    CPPUNIT_ASSERT_EQUAL(std::string("spool.offset"), code_of([&] {
                           files.upload(spool, 1, {600'000, 1});
                         }));
    spool.before_put = [](uint64_t) {
      throw PoolError(ErrorKind::limit_exceeded, "spool.too_large", "no");
    };
    CPPUNIT_ASSERT_EQUAL(std::string("spool.too_large"), code_of([&] {
                           files.upload(spool, 1, {600'000, 1});
                         }));
  }

  void changed_while_sent() {
    std::string path = put_file("a", pattern(2'000'000));
    FakeSpool spool;
    InputFiles files;
    files.read(plan_of({path}));
    spool.after_put = [&](uint64_t) { system_files().append(path, "more"); };
    CPPUNIT_ASSERT_EQUAL(std::string("input.changed"),
                         code_of([&] { files.upload(spool, 1, kPatience); }));
  }

  // A file changed by writes, not through a mapping: the mixed upload is not completed.
  void changed_in_place_while_sent() {
    std::string path = put_file("a", pattern(2'000'000));
    FakeSpool spool;
    InputFiles files;
    files.read(plan_of({path}));
    spool.after_put = [&](uint64_t) {
      const int fd = open(path.c_str(), O_WRONLY);
      CPPUNIT_ASSERT_EQUAL(ssize_t{4}, pwrite(fd, "more", 4, 0));
      close(fd);
    };
    CPPUNIT_ASSERT_EQUAL(std::string("input.changed"),
                         code_of([&] { files.upload(spool, 1, kPatience); }));
    CPPUNIT_ASSERT_EQUAL(0, spool.closed);
  }

  // The same size and a restored modification time: detected by ctime.
  void changed_before_sent() {
    std::string path = put_file("a", "before");
    struct stat s {};
    stat(path.c_str(), &s);
    FakeSpool spool;
    InputFiles files;
    files.read(plan_of({path}));
    int fd = open(path.c_str(), O_WRONLY);
    CPPUNIT_ASSERT_EQUAL(ssize_t{6}, pwrite(fd, "after!", 6, 0));
    timespec times[2] = {s.st_atim, s.st_mtim};
    futimens(fd, times);
    close(fd);
    CPPUNIT_ASSERT_EQUAL(std::string("input.changed"),
                         code_of([&] { files.upload(spool, 1, kPatience); }));
    CPPUNIT_ASSERT_EQUAL(0, spool.opened);
  }

  void no_input() {
    InputFiles files;
    BatchPlan plan = plan_of({folder_ + "/none"});
    plan.jobs[0].inputs[0].where = "b.toml:7:3";
    try {
      files.read(plan);
      CPPUNIT_FAIL("read what is not there");
    } catch (const PoolError& e) {
      CPPUNIT_ASSERT_EQUAL(std::string("input.missing"), e.code);
      CPPUNIT_ASSERT(e.message.starts_with("b.toml:7:3: "));
    }
    CPPUNIT_ASSERT_EQUAL(std::string("input.kind"),
                         code_of([&] { files.read(plan_of({folder_})); }));
    std::string fifo = folder_ + "/fifo";
    mkfifo(fifo.c_str(), 0600);
    CPPUNIT_ASSERT_EQUAL(std::string("input.kind"), code_of([&] { files.read(plan_of({fifo})); }));
  }

  // The connection is lost at the first try of every chunk.
  void downloads() {
    FakeSpool spool;
    spool.stored = pattern(5'500'000);
    std::set<uint64_t> tried;
    spool.before_get = [&](uint64_t offset) {
      if (tried.insert(offset).second) throw lost();
    };
    std::string got;
    download(
        spool, {}, spool.stored.size(), digest_of(spool.stored),
        [&](std::string_view bytes) { got += bytes; }, kPatience);
    CPPUNIT_ASSERT(got == spool.stored);
    CPPUNIT_ASSERT_EQUAL(size_t{6}, tried.size());
  }

  void damaged_download() {
    FakeSpool spool;
    spool.stored = "abc";
    auto ignore = [](std::string_view) {};
    CPPUNIT_ASSERT_EQUAL(std::string("spool.digest"), code_of([&] {
                           download(spool, {}, 3, digest_of("abd"), ignore, kPatience);
                         }));
    CPPUNIT_ASSERT_EQUAL(2, spool.doubts);
    spool.damaged = true;
    CPPUNIT_ASSERT_EQUAL(std::string("spool.damaged"), code_of([&] {
                           download(spool, {}, 3, digest_of("abd"), ignore, kPatience);
                         }));
    CPPUNIT_ASSERT_EQUAL(std::string("spool.short"), code_of([&] {
                           download(spool, {}, 4, digest_of("abc"), ignore, kPatience);
                         }));
  }

  void target_appears_whole() {
    TargetFolder folder(folder_ + "/new/deep");
    {
      auto pending = folder.begin("a/b");
      pending->write("half");
      CPPUNIT_ASSERT(!system_files().exists(folder_ + "/new/deep/a/b"));
      CPPUNIT_ASSERT_EQUAL(size_t{1}, system_files().list(folder_ + "/new/deep/a").size());
    }
    CPPUNIT_ASSERT(system_files().list(folder_ + "/new/deep/a").empty());
    auto pending = folder.begin("./a/b");
    pending->write("whole");
    pending->commit();
    CPPUNIT_ASSERT_EQUAL(std::string("whole"),
                         system_files().read_file(folder_ + "/new/deep/a/b", 100));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, system_files().list(folder_ + "/new/deep/a").size());
  }

  void target_refuses() {
    system_files().make_folders(folder_ + "/outside");
    TargetFolder folder(folder_ + "/in");
    symlink("../outside", (folder_ + "/in/link").c_str());
    put_file("in/plain", "x");
    system_files().make_folders(folder_ + "/in/dir");
    for (const char* name : {"../x", "/etc/x", "a/../../x", "", "a/", "."})
      CPPUNIT_ASSERT_EQUAL(std::string("output.name"), code_of([&] { folder.begin(name); }));
    CPPUNIT_ASSERT_EQUAL(std::string("output.link"), code_of([&] { folder.begin("link/x"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("output.link"), code_of([&] { folder.begin("plain/x"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("output.write"),
                         code_of([&] { folder.begin("dir")->commit(); }));
    CPPUNIT_ASSERT(system_files().list(folder_ + "/outside").empty());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, system_files().list(folder_ + "/in").size());
  }

  void target_replaces_link() {
    std::string victim = put_file("victim", "mine");
    TargetFolder folder(folder_ + "/in");
    symlink(victim.c_str(), (folder_ + "/in/out").c_str());
    auto pending = folder.begin("out");
    pending->write("theirs");
    pending->commit();
    CPPUNIT_ASSERT_EQUAL(std::string("mine"), system_files().read_file(victim, 100));
    struct stat s {};
    CPPUNIT_ASSERT_EQUAL(0, lstat((folder_ + "/in/out").c_str(), &s));
    CPPUNIT_ASSERT(S_ISREG(s.st_mode));
  }

  template <typename F>
  static std::string line_of(F f) {
    try {
      f();
    } catch (const PoolError& e) {
      return error_line(e);
    }
    return "none";
  }

  void target_of_somebody_else() {
    TargetFolder folder(folder_ + "/in");
    CPPUNIT_ASSERT_EQUAL(0, chmod((folder_ + "/in").c_str(), 0555));
    const bool is_root = geteuid() == 0;
    if (is_root) CPPUNIT_ASSERT_EQUAL(0, seteuid(65534));
    const std::string cannot_begin = line_of([&] { folder.begin("y"); });
    const std::string cannot_write = line_of([&] { folder.check_writable(); });
    if (is_root) CPPUNIT_ASSERT_EQUAL(0, seteuid(0));
    // Says once what to do.
    const std::string denied = ": Permission denied (check its owner and permissions)";
    CPPUNIT_ASSERT_EQUAL("sublet: cannot write " + folder_ + "/in/y" + denied, cannot_begin);
    CPPUNIT_ASSERT_EQUAL("sublet: cannot write to " + folder_ + "/in" + denied, cannot_write);
  }

  void target_before_it_exists() {
    const auto possible = [&](const std::string& name) {
      return code_of([&] { TargetFolder::check_possible(folder_ + "/" + name); });
    };
    put_file("plain", "x");
    CPPUNIT_ASSERT_EQUAL(std::string("none"), possible("."));
    CPPUNIT_ASSERT_EQUAL(std::string("none"), possible("a/b/c"));
    CPPUNIT_ASSERT_EQUAL(std::string("output.link"), possible("plain"));
    CPPUNIT_ASSERT_EQUAL(std::string("output.link"), possible("plain/below"));
    CPPUNIT_ASSERT_EQUAL(std::string("output.write"), possible(std::string(300, 'x')));
    CPPUNIT_ASSERT_EQUAL(0, symlink("nowhere", (folder_ + "/link").c_str()));
    CPPUNIT_ASSERT_EQUAL(std::string("output.link"), possible("link"));
    CPPUNIT_ASSERT_EQUAL(std::string("output.link"), possible("link/below"));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, system_files().list(folder_).size());
  }

  std::string folder_;
};

CPPUNIT_TEST_SUITE_REGISTRATION(TransferTest);

}  // namespace
}  // namespace sublet::cli

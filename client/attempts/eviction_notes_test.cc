#include "client/attempts/eviction_notes.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

using protocol::EvictionNote;

class EvictionNotesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EvictionNotesTest);
  CPPUNIT_TEST(they_outlive_the_daemon);
  CPPUNIT_TEST(each_attempt_once);
  CPPUNIT_TEST(what_cannot_be_stored_is_stored_with_the_next);
  CPPUNIT_TEST(what_cannot_be_read_is_replaced);
  CPPUNIT_TEST(where_the_owner_was_seen);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  FaultyFiles files_;

  static EvictionNote note(uint64_t job) {
    EvictionNote one;
    one.job = job;
    one.attempt = 1;
    one.ended = protocol::kEndOwner;
    return one;
  }
  size_t stored() const {
    return protocol::notes_in(files_.read_file(folder_ / "evictions", 1 << 20))->size();
  }

 public:
  void they_outlive_the_daemon() {
    EvictionNotes(files_, folder_.path()).add(note(1), 0);
    EvictionNotes(files_, folder_.path()).add(note(2), 0);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, stored());
    struct stat status;
    CPPUNIT_ASSERT_EQUAL(0, stat((folder_ / "evictions").c_str(), &status));
    CPPUNIT_ASSERT_EQUAL(mode_t{0644}, status.st_mode & 07777);
  }

  // After a restart, the end of an attempt is found again.
  void each_attempt_once() {
    EvictionNotes notes(files_, folder_.path());
    for (int i = 0; i < 3; ++i) notes.add(note(1), 0);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, stored());
  }

  void what_cannot_be_stored_is_stored_with_the_next() {
    EvictionNotes notes(files_, folder_.path());
    notes.add(note(1), 0);
    files_.fail_from(0, ENOSPC);
    notes.add(note(2), 0);
    files_.fail_from(0, 0);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, stored());
    notes.add(note(3), 0);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, stored());
  }

  void what_cannot_be_read_is_replaced() {
    files_.write_atomic(folder_ / "evictions", "nonsense");
    EvictionNotes(files_, folder_.path()).add(note(1), 0);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, stored());
  }

  void where_the_owner_was_seen() {
    EvictionNotes notes(files_, folder_.path());
    for (int64_t instant = 1; instant <= 40; ++instant) {
      sublet_frame cause = {};
      cause.instant = instant;
      protocol::Place("pts/" + std::to_string(instant)).put(&cause);
      notes.note_cause(cause);
    }
    const auto place = [&](uint64_t job, int64_t sensed_ns) {
      notes.add(note(job), sensed_ns);
      return protocol::notes_in(files_.read_file(folder_ / "evictions", 1 << 20))->back().place;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("pts/40"), place(1, 40));
    CPPUNIT_ASSERT_EQUAL(std::string("pts/20"), place(2, 20));
    // Too long ago, another cause, none.
    for (const int64_t sensed : {1, 41, 0})
      CPPUNIT_ASSERT_EQUAL(std::string(), place(10 + static_cast<uint64_t>(sensed), sensed));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(EvictionNotesTest);

}  // namespace
}  // namespace sublet::client

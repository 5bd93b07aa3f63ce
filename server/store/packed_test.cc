#include "server/store/packed.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>

#include "scheduling/hashed.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

using scheduling::JobRecord;

constexpr size_t kHead = 5, kChecksum = 4;

std::string packed(const JobRecord& job) { return pack(tables::kJobs, &job); }

// Its members outside the packed column are those of a new record.
std::optional<JobRecord> unpacked(const std::string& bytes) {
  JobRecord job;
  // What was there before does not count.
  job.index = 77;
  job.reason = job.needs.os = "before";
  job.share_priority = 7;
  job.has_started = true;
  if (!unpack(tables::kJobs, bytes, &job)) return std::nullopt;
  return job;
}

JobRecord any_job() {
  JobRecord job;
  for (const Column& column : tables::kJobs.packed()) {
    Cell cell;
    if (*rc::gen::inRange(0, 3) == 0) {
      cell.text = *rc::gen::arbitrary<std::string>();
      cell.real = *rc::gen::arbitrary<double>();
      const auto any = *rc::gen::noShrink(rc::gen::arbitrary<uint64_t>());
      const uint64_t span = static_cast<uint64_t>(column.highest) - column.lowest + 1;
      // Of all lengths.
      cell.integer = column.lowest + static_cast<long long>(span == 0 ? any : any % span);
      if (*rc::gen::arbitrary<bool>()) cell.integer = cell.integer >> *rc::gen::inRange(0, 64);
      cell.integer = std::clamp(cell.integer, column.lowest, column.highest);
    }
    column.take(cell, &job);
  }
  return job;
}

JobRecord full_job() {
  JobRecord job;
  for (const Column& column : tables::kJobs.packed()) {
    Cell cell{column.highest, 0.5, column.name};
    column.take(cell, &job);
  }
  return job;
}

// With a valid checksum (packed.h).
std::string closed(std::string bytes) {
  uint64_t sum = scheduling::hashed(bytes.size());
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
      word |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
    sum = scheduling::hashed(sum ^ word);
  }
  for (size_t i = 0; i < kChecksum; ++i) bytes += static_cast<char>(sum >> (8 * i));
  return bytes;
}
std::string opened(const std::string& bytes) { return bytes.substr(0, bytes.size() - kChecksum); }

// The bytes of a row that has the value of one packed column only.
std::string with(const std::string& column, const std::string& value) {
  uint64_t bits = 0, bit = 1;
  for (const Column& one : tables::kJobs.packed()) {
    if (one.name == column) bits = bit;
    bit <<= 1;
  }
  std::string bytes = "\1";
  for (size_t i = 0; i + 1 < kHead; ++i) bytes += static_cast<char>(bits >> (8 * i));
  return closed(bytes + value);
}

class PackedTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PackedTest);
  CPPUNIT_TEST(what_was_packed_comes_back);
  CPPUNIT_TEST(its_form_is_the_one_described);
  CPPUNIT_TEST(what_is_cut_off_is_refused);
  CPPUNIT_TEST(damage_is_refused);
  CPPUNIT_TEST(values_that_cannot_be_are_refused);
  CPPUNIT_TEST(each_row_has_one_form);
  CPPUNIT_TEST(any_bytes_are_refused_or_right);
  CPPUNIT_TEST_SUITE_END();

 public:
  void what_was_packed_comes_back() {
    CPPUNIT_ASSERT(rc::check("a row comes back as it was packed", [] {
      const JobRecord job = any_job();
      const auto found = unpacked(packed(job));
      RC_ASSERT(found.has_value());
      RC_ASSERT(packed(*found) == packed(job));
      if (job.share_priority == job.share_priority &&
          job.share_priority_step == job.share_priority_step)
        RC_ASSERT(*found == job);
    }));
    CPPUNIT_ASSERT(unpacked(packed(full_job())) == full_job());
    CPPUNIT_ASSERT(unpacked(packed({})) == JobRecord());
  }

  // Rows are read by later versions: this form stays.
  void its_form_is_the_one_described() {
    CPPUNIT_ASSERT_EQUAL(closed(std::string("\1\0\0\0\0", 5)), packed({}));
    JobRecord job;
    job.index = 300;             // the first: zigzag 600
    job.submit_host = "vm";      // the second
    job.priority = -1;           // the eighth: zigzag 1
    job.share_priority = 1;      // the eleventh
    job.program = ~uint64_t{0};  // the last: -1
    const std::string expected("\1\x83\4\0\x20\xd8\4\2vm\1\0\0\0\0\0\0\xf0\x3f\1", 20);
    CPPUNIT_ASSERT(closed(expected) == packed(job));
    CPPUNIT_ASSERT(unpacked(packed(job)) == job);
  }

  void what_is_cut_off_is_refused() {
    for (const JobRecord& job : {JobRecord(), full_job()}) {
      const std::string bytes = packed(job);
      for (size_t size = 0; size < bytes.size(); ++size) {
        CPPUNIT_ASSERT(!unpacked(bytes.substr(0, size)));
        if (size >= kHead && size < bytes.size() - kChecksum)
          CPPUNIT_ASSERT(!unpacked(closed(bytes.substr(0, size))));
      }
      CPPUNIT_ASSERT(!unpacked(bytes + '\0'));
      CPPUNIT_ASSERT(!unpacked(closed(opened(bytes) + '\0')));
    }
  }

  void damage_is_refused() {
    const std::string bytes = packed(full_job());
    for (size_t at = 0; at < bytes.size(); ++at)
      for (int other = 1; other < 256; ++other) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ other);
        CPPUNIT_ASSERT(!unpacked(damaged));
      }
    CPPUNIT_ASSERT(rc::check("a row with damage is refused", [] {
      const std::string bytes = packed(any_job());
      std::string damaged = bytes;
      const auto at = *rc::gen::inRange<size_t>(0, bytes.size());
      const auto some = *rc::gen::inRange<size_t>(1, 17);
      for (size_t i = at; i < std::min(bytes.size(), at + some); ++i)
        damaged[i] = *rc::gen::arbitrary<char>();
      RC_PRE(damaged != bytes);
      RC_ASSERT(!unpacked(damaged));
    }));
  }

  // The checksum is right.
  void values_that_cannot_be_are_refused() {
    CPPUNIT_ASSERT(unpacked(with("has_started", "\2")).value().has_started);
    CPPUNIT_ASSERT(!unpacked(with("has_started", "\4")));  // 2
    CPPUNIT_ASSERT(!unpacked(with("has_started", "\1")));  // -1
    const std::string four_giga("\x80\x80\x80\x80\x20", 5);
    CPPUNIT_ASSERT(!unpacked(with("cores", four_giga)));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1} << 32,
                         unpacked(with("memory", four_giga)).value().needs.memory);
    CPPUNIT_ASSERT(!unpacked(with("priority", "\xff\xff\xff\xff\x1f")));  // below 32 bits
    CPPUNIT_ASSERT(!unpacked(with("submit_host", "\3vm")));
    CPPUNIT_ASSERT(!unpacked(with("reason", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x")));
    std::string newer = packed(full_job());
    newer[0] = 2;
    CPPUNIT_ASSERT(!unpacked(closed(opened(newer))));
    CPPUNIT_ASSERT(!unpacked(kUnpackable + std::string(" idx = 0 submit_host = 'vm'")));
  }

  void each_row_has_one_form() {
    CPPUNIT_ASSERT(!unpacked(with("cores", std::string(1, '\0'))));
    CPPUNIT_ASSERT(!unpacked(with("cores", std::string("\x82\0", 2))));
    CPPUNIT_ASSERT(!unpacked(with("submit_host", std::string(1, '\0'))));
    CPPUNIT_ASSERT(!unpacked(with("share_priority", std::string(8, '\0'))));
    CPPUNIT_ASSERT(!unpacked(with("program", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\2")));
    CPPUNIT_ASSERT(!unpacked(with("program", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")));
    // A value of a column that there is not.
    CPPUNIT_ASSERT(!unpacked(closed(std::string("\1\0\0\0\x40\2", 6))));
  }

  // Whatever is accepted is what would have been written.
  void any_bytes_are_refused_or_right() {
    CPPUNIT_ASSERT(rc::check("any bytes are refused, or those that would be written", [] {
      std::string bytes = opened(packed(any_job()));
      const auto changes = *rc::gen::inRange<size_t>(0, 4);
      for (size_t i = 0; i < changes; ++i)
        bytes[*rc::gen::inRange<size_t>(1, bytes.size())] = *rc::gen::arbitrary<char>();
      const auto found = unpacked(closed(bytes));
      if (found) RC_ASSERT(packed(*found) == closed(bytes));
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PackedTest);

}  // namespace
}  // namespace sublet::server

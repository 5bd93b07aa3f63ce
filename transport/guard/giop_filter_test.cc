#include "transport/guard/giop_filter.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <iostream>
#include <string>
#include <vector>

#include "transport/testing/giop_mutator.h"

namespace sublet {
namespace {

using namespace testing;

constexpr size_t kLimit = 4096;

const uint8_t* to_bytes(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

struct Outcome {
  GiopViolation violation;
  std::string passed;
  size_t held;
  bool at_rest;
  uint64_t requests;
  bool operator==(const Outcome&) const = default;
};

// Feeds the text in pieces of the given sizes (repeated), each in place: in a buffer
// like the transport's, with room for the bytes held back.
Outcome run(const std::string& text, const std::vector<size_t>& pieces, bool may_be_called = true,
            const std::vector<std::string>& sent = {}) {
  GiopRequests requests;
  for (const std::string& message : sent) requests.sent(to_bytes(message), message.size());
  GiopFilter filter(kLimit, may_be_called, &requests);
  std::string passed;
  size_t at = 0;
  for (size_t turn = 0; at < text.size(); ++turn) {
    const size_t size =
        std::min(text.size() - at, pieces.empty() ? text.size() : pieces[turn % pieces.size()]);
    // Exactly as large as required, so that the address sanitizer detects overruns.
    std::vector<uint8_t> buffer(filter.held() + size);
    uint8_t* const data = buffer.data() + filter.held();
    std::copy_n(to_bytes(text) + at, size, data);
    const size_t got = filter.feed(data, size, buffer.data());
    passed.append(reinterpret_cast<const char*>(buffer.data()), got);
    at += size;
  }
  return {filter.violation(), passed, filter.held(), filter.at_rest(), filter.requests_begun()};
}

GiopViolation verdict(const std::string& text, bool may_be_called = true,
                      const std::vector<std::string>& sent = {}) {
  return run(text, {}, may_be_called, sent).violation;
}

std::string piece(uint8_t kind, uint32_t id, size_t size, bool more) {
  return giop(kind, cdr_number(id) + std::string(size, 'x'), 2, more ? 3 : 1);
}

std::string oneway(uint32_t id) {
  std::string request = giop_request(id, "text", "");
  request[16] = 0;
  return request;
}

}  // namespace

class GiopFilterTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GiopFilterTest);
  CPPUNIT_TEST(good_messages_pass_unchanged);
  CPPUNIT_TEST(headers_are_held_back);
  CPPUNIT_TEST(bad_headers);
  CPPUNIT_TEST(kinds_for_each_side);
  CPPUNIT_TEST(sizes);
  CPPUNIT_TEST(fragments);
  CPPUNIT_TEST(cancel_is_swallowed);
  CPPUNIT_TEST(replies_need_a_request);
  CPPUNIT_TEST(memory_of_requests_is_bounded);
  CPPUNIT_TEST(splitting_changes_nothing);
  CPPUNIT_TEST(hundred_thousand_mutations);
  CPPUNIT_TEST_SUITE_END();

 public:
  void good_messages_pass_unchanged() {
    const std::string text = giop_request(1, "text", cdr_text("one")) +
                             giop(3, cdr_number(2) + cdr_number(0) + cdr_number(0)) +
                             giop(0, std::string(20, 'o'), 0) + piece(0, 3, 16, true) +
                             piece(7, 3, 24, true) + piece(7, 3, 5, false) + giop(5, "");
    const Outcome outcome = run(text, {});
    CPPUNIT_ASSERT(outcome.violation == GiopViolation::kNone);
    CPPUNIT_ASSERT_EQUAL(text, outcome.passed);
    CPPUNIT_ASSERT(outcome.at_rest);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, outcome.requests);
    // The other byte order.
    std::string big = giop(0, std::string("\0\0\0\7", 4) + std::string(8, 'x'), 2, 0);
    big.replace(8, 4, std::string("\0\0\0\x0c", 4));
    CPPUNIT_ASSERT_EQUAL(big, run(big, {}).passed);
  }

  void headers_are_held_back() {
    const std::string request = giop_request(1, "text", "");
    for (size_t size = 0; size < 16; ++size) {
      const Outcome outcome = run(request.substr(0, size), {});
      CPPUNIT_ASSERT_EQUAL(std::string(), outcome.passed);
      CPPUNIT_ASSERT_EQUAL(size, outcome.held);
      CPPUNIT_ASSERT_EQUAL(size == 0, outcome.at_rest);
    }
    CPPUNIT_ASSERT_EQUAL(size_t{16}, run(request.substr(0, 16), {}).passed.size());
  }

  void bad_headers() {
    const std::string good = giop_request(1, "text", "");
    const auto with = [&](size_t at, char value) {
      std::string bad = good;
      bad[at] = value;
      return verdict(bad);
    };
    CPPUNIT_ASSERT(with(0, 'Z') == GiopViolation::kMagic);  // omniORB's compressed GIOP
    CPPUNIT_ASSERT(with(3, 'p') == GiopViolation::kMagic);
    CPPUNIT_ASSERT(with(4, 2) == GiopViolation::kVersion);
    CPPUNIT_ASSERT(with(5, 3) == GiopViolation::kVersion);
    CPPUNIT_ASSERT(with(6, 5) == GiopViolation::kFlags);
    CPPUNIT_ASSERT(with(7, 8) == GiopViolation::kKind);
    CPPUNIT_ASSERT(verdict(giop(0, "12345678", 0, 3)) == GiopViolation::kFlags);
    CPPUNIT_ASSERT(verdict("GET / HTTP/1.1\r\n") == GiopViolation::kMagic);
    // Data before the violation passes, data after it does not.
    const Outcome outcome = run(good + "GIOPGIOPGIOP" + good, {});
    CPPUNIT_ASSERT(outcome.violation == GiopViolation::kVersion);
    CPPUNIT_ASSERT_EQUAL(good, outcome.passed);
  }

  void kinds_for_each_side() {
    const std::string request = giop_request(1, "text", "");
    const std::string reply = piece(1, 1, 8, false);
    CPPUNIT_ASSERT(verdict(request, false) == GiopViolation::kKind);
    CPPUNIT_ASSERT(verdict(giop(3, cdr_number(1)), false) == GiopViolation::kKind);
    CPPUNIT_ASSERT(verdict(giop(2, cdr_number(1)), false) == GiopViolation::kKind);
    CPPUNIT_ASSERT(verdict(reply) == GiopViolation::kUnexpectedReply);
    CPPUNIT_ASSERT(verdict(reply, false, {request}) == GiopViolation::kNone);
    CPPUNIT_ASSERT(verdict(reply + request, true, {request}) == GiopViolation::kNone);
    CPPUNIT_ASSERT(verdict(giop(5, "") + giop(6, ""), false) == GiopViolation::kNone);
  }

  void sizes() {
    // The twelve bytes that crash the ORB.
    std::string killer = giop(0, "");
    killer.replace(8, 4, cdr_number(0xfffffff4));
    CPPUNIT_ASSERT(verdict(killer) == GiopViolation::kTooLarge);
    CPPUNIT_ASSERT(verdict(piece(0, 1, kLimit - 16, false)) == GiopViolation::kNone);
    CPPUNIT_ASSERT(verdict(piece(0, 1, kLimit - 15, false)) == GiopViolation::kTooLarge);
    CPPUNIT_ASSERT(verdict(giop(0, "123")) == GiopViolation::kSize);
    CPPUNIT_ASSERT(verdict(giop(5, "1234")) == GiopViolation::kSize);
    CPPUNIT_ASSERT(verdict(giop(2, "12345678")) == GiopViolation::kSize);
    // The sum of the fragments counts, however small each is.
    std::string many = piece(0, 1, 8, true);
    for (size_t sum = 24; sum + 8 <= kLimit; sum += 8) many += piece(7, 1, 8, true);
    CPPUNIT_ASSERT(verdict(many) == GiopViolation::kNone);
    CPPUNIT_ASSERT(verdict(many + piece(7, 1, 8, true)) == GiopViolation::kTooLarge);
  }

  void fragments() {
    const std::string begun = piece(0, 7, 16, true);
    CPPUNIT_ASSERT(verdict(begun + giop(7, "")) == GiopViolation::kSize);
    CPPUNIT_ASSERT(verdict(begun + giop(7, cdr_number(7), 2, 3)) == GiopViolation::kEmptyFragment);
    CPPUNIT_ASSERT(verdict(begun + giop(7, cdr_number(7))) == GiopViolation::kNone);
    CPPUNIT_ASSERT(verdict(begun + piece(7, 8, 8, false)) == GiopViolation::kStrayFragment);
    CPPUNIT_ASSERT(verdict(piece(7, 7, 8, false)) == GiopViolation::kStrayFragment);
    CPPUNIT_ASSERT(verdict(begun + giop(7, cdr_number(7) + "12345678", 1)) ==
                   GiopViolation::kStrayFragment);
    CPPUNIT_ASSERT(verdict(begun + giop(7, cdr_number(7) + "12345678", 2, 0)) ==
                   GiopViolation::kStrayFragment);
    CPPUNIT_ASSERT(verdict(begun + giop_request(8, "text", "")) == GiopViolation::kInterrupted);
    CPPUNIT_ASSERT(verdict(begun + giop(5, "")) == GiopViolation::kInterrupted);
    CPPUNIT_ASSERT(verdict(begun + giop(2, cdr_number(7))) == GiopViolation::kInterrupted);
    CPPUNIT_ASSERT(verdict(begun + piece(7, 7, 8, false) + piece(7, 7, 8, false)) ==
                   GiopViolation::kStrayFragment);
    CPPUNIT_ASSERT(verdict(piece(0, 7, 9, true)) == GiopViolation::kMisaligned);
    CPPUNIT_ASSERT(verdict(begun + piece(7, 7, 9, true)) == GiopViolation::kMisaligned);
    CPPUNIT_ASSERT(verdict(giop(0, "12345678", 1, 3)) == GiopViolation::kFragmented);
    CPPUNIT_ASSERT(verdict(giop(2, cdr_number(7), 2, 3)) == GiopViolation::kFragmented);
  }

  void cancel_is_swallowed() {
    const std::string request = giop_request(1, "text", "");
    for (const uint8_t minor : {0, 1, 2}) {
      const Outcome outcome = run(request + giop(2, cdr_number(1), minor) + request, {});
      CPPUNIT_ASSERT(outcome.violation == GiopViolation::kNone);
      CPPUNIT_ASSERT_EQUAL(request + request, outcome.passed);
    }
  }

  void replies_need_a_request() {
    const std::string locate = giop(3, cdr_number(5) + cdr_number(0) + cdr_number(0));
    const std::string reply = piece(1, 4, 8, false);
    CPPUNIT_ASSERT(verdict(reply + reply, false, {giop_request(4, "text", "")}) ==
                   GiopViolation::kUnexpectedReply);
    CPPUNIT_ASSERT(verdict(piece(1, 5, 8, false), false, {locate}) ==
                   GiopViolation::kUnexpectedReply);
    CPPUNIT_ASSERT(verdict(piece(4, 5, 8, false), false, {locate}) == GiopViolation::kNone);
    CPPUNIT_ASSERT(verdict(reply, false, {oneway(4)}) == GiopViolation::kUnexpectedReply);
    CPPUNIT_ASSERT(verdict(giop(1, cdr_number(4) + cdr_number(0), 0), false,
                           {giop_request(4, "text", "")}) == GiopViolation::kUnexpectedReply);
    // Sent data is parsed correctly however it is split.
    const std::string sent = oneway(3) + giop_request(4, "text", cdr_text("x")) +
                             piece(1, 9, 40, false) + giop(5, "") + locate;
    for (size_t size = 1; size < sent.size(); ++size) {
      GiopRequests requests;
      for (size_t at = 0; at < sent.size(); at += size) {
        requests.sent(to_bytes(sent) + at, std::min(size, sent.size() - at));
      }
      CPPUNIT_ASSERT_EQUAL(size_t{2}, requests.waiting());
      CPPUNIT_ASSERT(requests.take(4, false) && requests.take(5, true));
    }
  }

  void memory_of_requests_is_bounded() {
    GiopRequests requests;
    for (uint32_t id = 0; id < 2 * GiopRequests::kMost; ++id) {
      const std::string request = giop_request(id, "text", "");
      requests.sent(to_bytes(request), request.size());
    }
    CPPUNIT_ASSERT_EQUAL(GiopRequests::kMost, requests.waiting());
    CPPUNIT_ASSERT(requests.take(0, false));
    CPPUNIT_ASSERT(!requests.take(2 * GiopRequests::kMost - 1, false));
  }

  void splitting_changes_nothing() {
    CPPUNIT_ASSERT(rc::check("pieces of any sizes give one outcome", [] {
      GiopMutator mutator(*rc::gen::arbitrary<uint32_t>());
      std::string text;
      const int count = *rc::gen::inRange(1, 8);
      for (int i = 0; i < count; ++i) {
        text += mutator.below(2) == 0 ? mutator.any() : mutator.well_framed();
      }
      const auto pieces = *rc::gen::nonEmpty(
          rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(1, 40)));
      const Outcome whole = run(text, {});
      RC_ASSERT(run(text, pieces) == whole);
      RC_ASSERT(run(text, {1}) == whole);
      RC_ASSERT(whole.held <= GiopFilter::kMostHeld);
      RC_ASSERT(whole.passed.size() <= text.size());
    }));
  }

  void hundred_thousand_mutations() {
    GiopMutator mutator(1994);
    size_t refused = 0;
    for (int i = 0; i < 100'000; ++i) {
      const std::string text = mutator.any() + mutator.any();
      const Outcome outcome = run(text, {1 + mutator.below(64), 1 + mutator.below(64)});
      refused += outcome.violation != GiopViolation::kNone;
      // The data passed is valid by itself.
      CPPUNIT_ASSERT(verdict(outcome.passed) == GiopViolation::kNone);
    }
    std::cout << " [" << refused << " refused]" << std::flush;
    CPPUNIT_ASSERT(refused > 10'000 && refused < 90'000);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(GiopFilterTest);

}  // namespace sublet

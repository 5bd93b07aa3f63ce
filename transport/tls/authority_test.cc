// Names, tokens and certificates: round trips, and what is refused.
#include "transport/tls/authority.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "base/clock.h"
#include "base/random.h"

namespace sublet {
namespace {

constexpr int64_t kHour = 3'600'000'000;

Validity around_now() {
  const int64_t now = system_clock().utc_us();
  return {now - kHour, now + kHour};
}

}  // namespace

class TlsAuthorityTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TlsAuthorityTest);
  CPPUNIT_TEST(names_come_back);
  CPPUNIT_TEST(bad_names_are_refused);
  CPPUNIT_TEST(addresses);
  CPPUNIT_TEST(tokens_come_back_and_no_cut_one_is_taken);
  CPPUNIT_TEST(every_exclusion_has_its_words);
  CPPUNIT_TEST(certificate_says_who_until_when_by_whom);
  CPPUNIT_TEST(hostile_requests_are_refused);
  CPPUNIT_TEST(key_of_a_request_is_the_keys);
  CPPUNIT_TEST(authority_needs_a_name);
  CPPUNIT_TEST_SUITE_END();

 public:
  void names_come_back() {
    for (const Role role : {Role::kServer, Role::kMachine, Role::kUser, Role::kAdministrator}) {
      const MemberName member{"lab-2", role, "curly.example"};
      CPPUNIT_ASSERT(member_from_uri(to_uri(member)) == member);
      CPPUNIT_ASSERT(role_from(static_cast<uint32_t>(role)) == role);
    }
    CPPUNIT_ASSERT_EQUAL(std::string("sublet://lab/machine/curly"),
                         to_uri({"lab", Role::kMachine, "curly"}));
  }

  void bad_names_are_refused() {
    for (const char* uri :
         {"", "sublet://", "sublet://lab/machine", "sublet://lab/machine/", "sublet:///machine/a",
          "sublet://lab/root/a", "sublet://lab/machine/a/b", "sublet://lab/machine/a b",
          "sublet://lab/machine/../a", "http://lab/machine/a", "sublet://lab/machine/\xc3\xbc",
          "sublet://lab/machine/-a", "SUBLET://lab/machine/a"})
      CPPUNIT_ASSERT_MESSAGE(uri, !member_from_uri(uri));
    CPPUNIT_ASSERT(!member_from_uri(std::string("sublet://lab/user/ann\0root", 26)));
    CPPUNIT_ASSERT(is_member_word(std::string(64, 'a')));
    CPPUNIT_ASSERT(!is_member_word(std::string(65, 'a')));
    CPPUNIT_ASSERT(!role_from(0u) && !role_from(5u));
  }

  void addresses() {
    CPPUNIT_ASSERT((host_port_from("pool.example:9740") == HostPort{"pool.example", 9740}));
    CPPUNIT_ASSERT((host_port_from("[::1]:9740") == HostPort{"::1", 9740}));
    CPPUNIT_ASSERT_EQUAL(std::string("[::1]:9740"), to_text(HostPort{"::1", 9740}));
    for (const char* bad : {"", "host", "host:", ":9740", "host:0", "host:65536", "host:97x",
                            "::1:9", "ho st:1", "host:-1", "a/b:1"})
      CPPUNIT_ASSERT_MESSAGE(bad, !host_port_from(bad));
  }

  void tokens_come_back_and_no_cut_one_is_taken() {
    JoinToken token{Role::kUser,
                    {"10.0.0.1", 9740},
                    digest_of("authority"),
                    random_bytes(kTokenId),
                    random_bytes(kTokenSecret)};
    const std::string text = to_text(token);
    CPPUNIT_ASSERT(join_token_from(text) == token);
    for (size_t size = 0; size < text.size(); ++size)
      CPPUNIT_ASSERT(!join_token_from(text.substr(0, size)));
    CPPUNIT_ASSERT(!join_token_from(text + "0"));
    CPPUNIT_ASSERT(!join_token_from(text + "/"));
  }

  void every_exclusion_has_its_words() {
    for (uint8_t i = 1; i <= static_cast<uint8_t>(Exclusion::kUnavailable); ++i) {
      CPPUNIT_ASSERT(exclusion_from(i) == static_cast<Exclusion>(i));
      CPPUNIT_ASSERT(*code_of(exclusion_from(i)) != '\0');
      CPPUNIT_ASSERT(!message_of(exclusion_from(i)).empty() &&
                     *advice_of(exclusion_from(i)) != '\0');
    }
    CPPUNIT_ASSERT(exclusion_from(17) == Exclusion::kMalformed);
    CPPUNIT_ASSERT(exclusion_from(255) == Exclusion::kMalformed);
  }

  void certificate_says_who_until_when_by_whom() {
    const Validity validity = around_now();
    const CertificateAndKey authority = make_authority("lab", validity);
    const MemberName curly{"lab", Role::kMachine, "curly"};
    const std::string request = make_request(make_key());
    const std::string certificate = issue_certificate(authority, request, curly, validity);
    const CertificateFacts facts = read_certificate(certificate);
    CPPUNIT_ASSERT(facts.member == curly);
    CPPUNIT_ASSERT_EQUAL(validity.from / 1'000'000, facts.validity.from / 1'000'000);
    CPPUNIT_ASSERT_EQUAL(validity.until / 1'000'000, facts.validity.until / 1'000'000);
    CPPUNIT_ASSERT(!read_certificate(authority.certificate).member);
    const CertificateFacts again =
        read_certificate(issue_certificate(authority, request, curly, validity));
    CPPUNIT_ASSERT(again.serial != facts.serial && again.fingerprint != facts.fingerprint);
  }

  void hostile_requests_are_refused() {
    const Validity validity = around_now();
    const CertificateAndKey authority = make_authority("lab", validity);
    const MemberName curly{"lab", Role::kMachine, "curly"};
    const std::string request = make_request(make_key());
    const auto issue = [&](const std::string& r) {
      return issue_certificate(authority, r, curly, validity);
    };
    CPPUNIT_ASSERT_THROW(issue(""), TlsError);
    CPPUNIT_ASSERT_THROW(issue(std::string(100'000, 'A')), TlsError);
    CPPUNIT_ASSERT_THROW(issue(authority.certificate), TlsError);
    rc::check("a changed request is refused or is the same one", [&] {
      std::string changed = request;
      const auto at = *rc::gen::inRange<size_t>(0, changed.size());
      changed[at] = static_cast<char>(*rc::gen::inRange(0, 256));
      try {
        RC_ASSERT(key_of_request(changed) == key_of_request(request));
      } catch (const TlsError&) {
      }
    });
  }

  void key_of_a_request_is_the_keys() {
    const std::string key = make_key();
    const std::string first = make_request(key), second = make_request(key);
    CPPUNIT_ASSERT(first != second);  // signatures are random
    CPPUNIT_ASSERT(key_of_request(first) == key_of_request(second));
    CPPUNIT_ASSERT(key_of_request(first) != key_of_request(make_request(make_key())));
  }

  void authority_needs_a_name() {
    CPPUNIT_ASSERT(!make_authority(std::string(64, 'p'), around_now()).certificate.empty());
    CPPUNIT_ASSERT_THROW(make_authority(std::string(65, 'p'), around_now()), TlsError);
    CPPUNIT_ASSERT_THROW(make_authority("", around_now()), TlsError);
    CPPUNIT_ASSERT_THROW(make_authority("my pool", around_now()), TlsError);
    CPPUNIT_ASSERT(equal_in_constant_time("abc", "abc"));
    CPPUNIT_ASSERT(!equal_in_constant_time("abc", "abd") && !equal_in_constant_time("abc", "ab"));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TlsAuthorityTest);

}  // namespace sublet

// Which certificates are admitted after lost replies to renewals, after joining
// again, and after a revocation.
#include "server/members/members.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "server/refusal_testing.h"
#include "server/store/sql_store.h"
#include "transport/testing/tls_pool.h"

namespace sublet::server {
namespace {

using testing::code;

constexpr int64_t kDay = 24 * sublet::testing::TlsPool::kHour;

class MembersTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MembersTest);
  CPPUNIT_TEST(a_renewal_is_repeated_alike);
  CPPUNIT_TEST(lost_renewals_lock_nobody_out);
  CPPUNIT_TEST(joining_again_cuts_off_who_had_joined);
  CPPUNIT_TEST(a_name_has_one_role);
  CPPUNIT_TEST(revoking_ends_all_of_the_name);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  const sublet::testing::TlsPool pool_;
  std::unique_ptr<SqlStore> store_;
  std::unique_ptr<Archive> archive_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Members> members_;
  std::vector<uint64_t> cut_off_;
  const Caller root_{0, "root", true, true};

 public:
  void setUp() override {
    const std::string path = folder_.path() + "/pool.db";
    store_ = std::make_unique<SqlStore>(path);
    archive_ = std::make_unique<Archive>(path);
    pipeline_ = std::make_unique<Pipeline>(PipelineSettings{}, *store_, system_clock(),
                                           Pipeline::Listener{});
    pipeline_->start();
    open_books();
  }
  void tearDown() override { pipeline_->stop(); }

 private:
  // As at the start of a server.
  void open_books() {
    Authority authority{pool_.authority(), pool_.server(), "lab",
                        read_certificate(pool_.authority().certificate).fingerprint};
    members_ =
        std::make_unique<Members>(MemberSettings{HostPort{"127.0.0.1", 9740}, kDay},
                                  std::move(authority), *pipeline_, *archive_, system_clock());
    members_->cut_off_by([this](uint64_t member) { cut_off_.push_back(member); });
  }

  JoinToken invite(const std::string& name, Role role = Role::kMachine) {
    return *join_token_from(members_->invite(root_, random_bytes(16), name, role, 3'600'000).token);
  }
  JoinAnswer join(const JoinToken& token, const std::string& key = make_key()) {
    return members_->join({token.id, token.secret, make_request(key)});
  }
  std::string joined(const std::string& name) {
    const JoinAnswer answer = join(invite(name));
    CPPUNIT_ASSERT(answer.excluded == Exclusion::kNone);
    return answer.certificate;
  }
  Admission admit(const std::string& certificate) {
    const CertificateFacts facts = read_certificate(certificate);
    return members_->admit(facts.member.value(), facts.serial);
  }
  bool let_in(const std::string& certificate) {
    return admit(certificate).excluded == Exclusion::kNone;
  }
  // The caller on a connection made with this certificate.
  Caller caller(const std::string& certificate) {
    const Admission in = admit(certificate);
    return Access::caller_with_certificate(
        {Peer::kFirstMember + in.member, read_certificate(certificate).member, in.joined});
  }
  std::string renew(const Caller& who) {
    return members_->renew(who, random_bytes(16), make_request(make_key()));
  }

  void a_renewal_is_repeated_alike() {
    const std::string first = joined("curly");
    const std::string id = random_bytes(16), request = make_request(make_key());
    const std::string second = members_->renew(caller(first), id, request);
    CPPUNIT_ASSERT(second != first);
    open_books();
    CPPUNIT_ASSERT_EQUAL(second, members_->renew(caller(first), id, request));
    CPPUNIT_ASSERT(let_in(first) && let_in(second));
  }

  // The machine still has only its first certificate, and the server restarts in between.
  void lost_renewals_lock_nobody_out() {
    const std::string first = joined("curly");
    const Caller who = caller(first);
    std::string newest;
    for (int lost = 0; lost < 8; ++lost) newest = renew(who);
    CPPUNIT_ASSERT(let_in(first) && let_in(newest));
    open_books();
    CPPUNIT_ASSERT(let_in(first) && let_in(newest));
    // One renewal more than the number of earlier certificates that are kept.
    newest = renew(who);
    CPPUNIT_ASSERT(!let_in(first) && let_in(newest));
  }

  void joining_again_cuts_off_who_had_joined() {
    const std::string first = joined("curly");
    const Caller before = caller(first);
    CPPUNIT_ASSERT(cut_off_.empty());
    const JoinToken token = invite("curly");
    const std::string key = make_key();
    const JoinAnswer again = join(token, key);
    CPPUNIT_ASSERT(cut_off_ == std::vector<uint64_t>{admit(again.certificate).member});
    CPPUNIT_ASSERT(!let_in(first));
    // A late call on the old connection has no effect.
    CPPUNIT_ASSERT_EQUAL(std::string("certificate.unknown"), code([&] { renew(before); }));
    // Repeating the join after a lost reply does not cut off anybody.
    CPPUNIT_ASSERT_EQUAL(again.certificate, join(token, key).certificate);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, cut_off_.size());
    CPPUNIT_ASSERT(!renew(caller(again.certificate)).empty());
  }

  void a_name_has_one_role() {
    const JoinToken machine = invite("x"), user = invite("x", Role::kUser);
    CPPUNIT_ASSERT(join(machine).excluded == Exclusion::kNone);
    CPPUNIT_ASSERT(join(user).excluded == Exclusion::kWrongRole);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, members_->list(0, 10).size());
    CPPUNIT_ASSERT_EQUAL(std::string("member.role"), code([&] { invite("x", Role::kUser); }));
    members_->revoke(root_, random_bytes(16), "x");
    CPPUNIT_ASSERT(join(user).excluded == Exclusion::kTokenRevoked);
    CPPUNIT_ASSERT(join(invite("x", Role::kUser)).excluded == Exclusion::kNone);
  }

  // A database from before a name was limited to one role.
  void revoking_ends_all_of_the_name() {
    joined("x");
    MemberRow user = members_->list(0, 1)[0];
    user.number = 2;
    user.role = Role::kUser;
    pipeline_->perform([&](Turn& turn) { turn.changes().members[2] = user; });
    open_books();
    CPPUNIT_ASSERT(join(invite("y")).excluded == Exclusion::kNone);
    const std::string request = random_bytes(16);
    members_->revoke(root_, request, "x");
    members_->revoke(root_, request, "x");
    CPPUNIT_ASSERT((cut_off_ == std::vector<uint64_t>{1, 2, 1, 2}));
    open_books();
    for (const auto& row : members_->list(0, 10))
      CPPUNIT_ASSERT_EQUAL(row.name == "x", row.revoked != 0);
    CPPUNIT_ASSERT_EQUAL(std::string("member.unknown"),
                         code([&] { members_->revoke(root_, random_bytes(16), "x"); }));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MembersTest);

}  // namespace
}  // namespace sublet::server

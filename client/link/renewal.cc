#include "client/link/renewal.h"

#include "base/random.h"
#include "transport/membership_file.h"

namespace sublet::client {
namespace {

constexpr int64_t kPauseNs = 60ll * 1'000'000'000;  // between two tries

}  // namespace

Renewal::Renewal(Membership membership, Hooks hooks)
    : membership_(std::move(membership)), hooks_(std::move(hooks)) {}

bool Renewal::step(int64_t boot_ns, int64_t utc_us) {
  if (boot_ns < next_try_ns_ || !due_for_renewal(membership_, utc_us)) return false;
  next_try_ns_ = boot_ns + kPauseNs;
  // The request is kept, because a new signature would differ.
  if (!begun_) begun_ = {random_id(), make_request(membership_.credentials.key), ""};
  Membership renewed = membership_;
  std::string& certificate = renewed.credentials.certificate;
  certificate = begun_->certificate;
  if (certificate.empty()) {
    certificate = hooks_.ask(begun_->id, begun_->request);
    hooks_.use(renewed.credentials);
    begun_->certificate = certificate;
  }
  hooks_.keep(renewed);
  membership_ = renewed;
  begun_.reset();
  return true;
}

}  // namespace sublet::client

#include "server/machines/corba_workstation.h"

#include <algorithm>

#include "base/log.h"
#include "server/servants/translate.h"
#include "transport/orb.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;
using scheduling::OrderAnswered;

// Octets of orders per call, well below the message limit; a single larger order is still
// sent. (The dispatcher limits their number.)
constexpr size_t kOrderBytes = 512 * 1024;
constexpr size_t kMostLeaves = 1000;

size_t weight(const RunRequest& request) {
  size_t bytes = 512 + request.user.size() + request.spec.standard_input.size() +
                 request.spec.name.size() + request.spec.program.size();
  each_detail(request.spec, [&](std::string_view name, std::string_view value) {
    bytes += name.size() + value.size() + 16;
  });
  for (const auto& a : request.spec.arguments) bytes += a.size() + 8;
  for (const auto& e : request.spec.environment) bytes += e.size() + 8;
  for (const auto& f : request.spec.inputs) bytes += f.name.size() + 24;
  for (const auto& f : request.spec.outputs) bytes += f.name.size() + 16;
  return bytes;
}

class CorbaWorkstation : public Workstation {
 public:
  CorbaWorkstation(v1::ExecutingClient_ptr client, const CallingServer& self, int64_t lease_ms,
                   int call_timeout_ms)
      : client_(v1::ExecutingClient::_duplicate(client)), term_(self.term), lease_ms_(lease_ms) {
    to_octets(self.session, session_);
    set_call_timeout(client_, call_timeout_ms);
  }

  std::vector<OrderAnswered> run(const std::vector<RunRequest>& requests) override {
    omni_thread::ensure_self self;  // the dispatcher's threads are not the ORB's
    std::vector<OrderAnswered> answers;
    for (size_t first = 0; first < requests.size();) {
      size_t last = first, bytes = 0;
      while (last < requests.size() && (last == first || bytes < kOrderBytes))
        bytes += weight(requests[last++]);
      call_run(requests, first, last, answers);
      first = last;
    }
    return answers;
  }

  bool vacate(const std::vector<LeaveRequest>& requests) override {
    omni_thread::ensure_self self;
    try {
      for (size_t first = 0; first < requests.size(); first += kMostLeaves)
        call_vacate(requests, first, std::min(first + kMostLeaves, requests.size()));
      return true;
    } catch (const CORBA::Exception& e) {
      log(Severity::warning) << "a workstation could not be told that jobs must leave: "
                             << e._name();
      return false;
    }
  }

  TextAnswer read_log(const TextRequest& request) override {
    omni_thread::ensure_self self;
    v1::AttemptKey key;
    key.job = request.key.job;
    key.attempt = request.key.attempt;
    try {
      v1::Bytes_var text =
          client_->read_log(session_, term_, key, static_cast<CORBA::ULong>(request.stream),
                            request.offset, kTextOctets);
      if (text->length() > kTextOctets) return {TextAnswer::Kind::kFailed, "it sent too much data"};
      return {TextAnswer::Kind::kText, from_octets(text.in())};
    } catch (const v1::NotFound&) {
      return {TextAnswer::Kind::kNoAttempt, ""};
    } catch (const v1::Unavailable& e) {
      return {TextAnswer::Kind::kFailed, e.message.in()};
    } catch (const CORBA::UserException& e) {
      return {TextAnswer::Kind::kFailed, std::string("it refused: ") + e._name()};
    } catch (const CORBA::SystemException& e) {
      return {TextAnswer::Kind::kFailed, describe(e).text};
    }
  }

  bool alive() override {
    omni_thread::ensure_self self;
    try {
      v1::Details_var ignored = client_->state(session_, term_);
      return true;
    } catch (const CORBA::SystemException& e) {
      // After a time-out the client may still be alive; after a closed connection it is not.
      return describe(e).kind == CallFailure::kTimeout;
    } catch (const CORBA::Exception&) {
      return true;
    }
  }

 private:
  void fill(const RunRequest& request, v1::RunOrder& order) {
    order = v1::RunOrder{};  // reserved fields are 0
    order.key.job = request.key.job;
    order.key.attempt = request.key.attempt;
    order.user = CORBA::string_dup(request.user.c_str());
    to_idl(request.spec, order.what);
    order.checkpoint_generation = request.generation;
    order.checkpoint_bytes = request.checkpoint_bytes;
    order.lease = lease_ms_;
    order.decided = request.decided;
    if (request.ahead) add_detail(order.more, "ahead", "1");
  }

  void call_vacate(const std::vector<LeaveRequest>& requests, size_t first, size_t last) {
    v1::VacateOrders orders;
    orders.length(last - first);
    for (size_t i = first; i < last; ++i) {
      v1::VacateOrder& order = orders[i - first];
      order.key.job = requests[i].key.job;
      order.key.attempt = requests[i].key.attempt;
      order.reason = static_cast<CORBA::ULong>(requests[i].reason);
    }
    client_->vacate(session_, term_, orders);
  }

  void call_run(const std::vector<RunRequest>& requests, size_t first, size_t last,
                std::vector<OrderAnswered>& answers) {
    v1::RunOrders orders;
    orders.length(last - first);
    for (size_t i = first; i < last; ++i) fill(requests[i], orders[i - first]);
    auto all = [&](OrderAnswered::Answer answer, const std::string& reason) {
      const bool failed = answer != OrderAnswered::Answer::kUnknown;
      for (size_t i = first; i < last; ++i)
        answers.push_back({requests[i].key, answer, reason, failed});
    };
    try {
      v1::RunAnswers_var replies = client_->run(session_, term_, orders);
      for (size_t i = first; i < last; ++i)
        answers.push_back(answer_for(requests[i].key, replies.in()));
    } catch (const CORBA::Exception& e) {
      const auto [answer, reason] = meaning_for_orders(e);
      all(answer, reason);
    }
  }

  v1::ExecutingClient_var client_;
  v1::SessionKey session_;
  const v1::ServerTerm term_;
  const int64_t lease_ms_;
};

}  // namespace

OrderAnswered answer_for(scheduling::AttemptKey key, const v1::RunAnswers& replies) {
  for (CORBA::ULong i = 0; i < replies.length(); ++i) {
    if (replies[i].key.job != key.job || replies[i].key.attempt != key.attempt) continue;
    return {key,
            replies[i].answer == v1::RUN_ACCEPTED ? OrderAnswered::Answer::kAccepted
                                                  : OrderAnswered::Answer::kRefused,
            std::string(replies[i].reason.in()).substr(0, 1000),
            replies[i].answer == v1::RUN_REFUSED_ERROR};
  }
  return {key, OrderAnswered::Answer::kUnknown, "the workstation did not answer this order"};
}

std::pair<OrderAnswered::Answer, std::string> meaning_for_orders(const CORBA::Exception& failure) {
  using Answer = OrderAnswered::Answer;
  if (const auto* e = CORBA::SystemException::_downcast(&failure)) {
    const CallError error = describe(*e);
    return {error.maybe_done ? Answer::kUnknown : Answer::kNotDelivered, error.text};
  }
  // It may have failed after some of the orders were accepted.
  if (const auto* e = v1::Unavailable::_downcast(&failure))
    return {Answer::kUnknown, e->message.in()};
  return {Answer::kRefused, std::string("the workstation refused: ") + failure._name()};
}

std::shared_ptr<Workstation> make_corba_workstation(v1::ExecutingClient_ptr client,
                                                    const CallingServer& self, int64_t lease_ms,
                                                    int call_timeout_ms) {
  return std::make_shared<CorbaWorkstation>(client, self, lease_ms, call_timeout_ms);
}

}  // namespace sublet::server

// Wraps every operation: converts its exceptions to those of the public interface.
#ifndef SUBLET_SERVER_SERVANTS_GUARD_CALL_H_
#define SUBLET_SERVER_SERVANTS_GUARD_CALL_H_

#include <functional>
#include <new>

#include "base/log.h"
#include "base/text.h"
#include "server/commit/store.h"
#include "server/refusal.h"
#include "types.hh"

namespace sublet::server {

[[noreturn]] inline void raise(const Refusal& r) {
  const std::string message = to_utf8(r.message), subject = to_utf8(r.subject);
  const char *code = r.code.c_str(), *text = message.c_str(), *advice = r.advice.c_str(),
             *about = subject.c_str();
  switch (r.kind) {
    case Refusal::Kind::kInvalid:
      throw Sublet::v1::Invalid(code, text, advice, about);
    case Refusal::Kind::kNotFound:
      throw Sublet::v1::NotFound(code, text, advice, about);
    case Refusal::Kind::kNotPermitted:
      throw Sublet::v1::NotPermitted(code, text, advice, about);
    case Refusal::Kind::kConflict:
      throw Sublet::v1::Conflict(code, text, advice, about);
    case Refusal::Kind::kLimitExceeded:
      throw Sublet::v1::LimitExceeded(code, text, advice, about);
    case Refusal::Kind::kUnavailable:
      break;
  }
  throw Sublet::v1::Unavailable(code, text, advice, about);
}

template <typename F>
auto guard_call(F&& operation) -> decltype(operation()) {
  try {
    return operation();
  } catch (const Refusal& refusal) {
    raise(refusal);
  } catch (const CORBA::Exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    raise(Refusal(Refusal::Kind::kUnavailable, kOutOfMemory, "the server ran out of memory",
                  "Try again, with less at a time.", "server"));
  } catch (const std::exception& e) {
    log(Severity::error) << "an operation failed: " << e.what();
    raise(Refusal(Refusal::Kind::kUnavailable, "server.internal",
                  std::string("the server could not do this: ") + e.what(),
                  "Try again; see the server's log.", "server"));
  }
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_GUARD_CALL_H_

#include "transport/orb_code_sets.h"

// clang-format off
#include <omniORB4/codeSets.h>
#include <giopStream.h>
#include <giopStrand.h>
#include <GIOP_S.h>
// clang-format on

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sublet {
namespace {

using omni::omniCodeSet;
using CodeSet = omniCodeSet::TCS_C;
using NCS_C = omniCodeSet::NCS_C;
using UniChar = omniCodeSet::UniChar;

// Another code set under an identity of its own, by which a connection shows how its code set
// was chosen.
class Delegate : public CodeSet {
 public:
  explicit Delegate(CodeSet& to)
      : CodeSet(to.id(), to.name(), omniCodeSet::CS_Other, to.giopVersion()), to_(to) {}

  void marshalChar(cdrStream& stream, UniChar c) override { to_.marshalChar(stream, c); }
  void marshalString(cdrStream& stream, _CORBA_ULong bound, _CORBA_ULong length,
                     const UniChar* s) override {
    to_.marshalString(stream, bound, length, s);
  }
  UniChar unmarshalChar(cdrStream& stream) override { return to_.unmarshalChar(stream); }
  _CORBA_ULong unmarshalString(cdrStream& stream, _CORBA_ULong bound, UniChar*& s) override {
    return to_.unmarshalString(stream, bound, s);
  }
  _CORBA_Boolean fastMarshalChar(cdrStream& stream, NCS_C* native, _CORBA_Char c) override {
    return to_.fastMarshalChar(stream, native, c);
  }
  _CORBA_Boolean fastMarshalString(cdrStream& stream, NCS_C* native, _CORBA_ULong bound,
                                   _CORBA_ULong length, const char* s) override {
    return to_.fastMarshalString(stream, native, bound, length, s);
  }
  _CORBA_Boolean fastUnmarshalChar(cdrStream& stream, NCS_C* native, _CORBA_Char& c) override {
    return to_.fastUnmarshalChar(stream, native, c);
  }
  _CORBA_Boolean fastUnmarshalString(cdrStream& stream, NCS_C* native, _CORBA_ULong bound,
                                     _CORBA_ULong& length, char*& s) override {
    return to_.fastUnmarshalString(stream, native, bound, length, s);
  }

 private:
  CodeSet& to_;
};

std::string latin1_to_utf8(std::string_view octets) {
  std::string s;
  for (const char c : octets) {
    const auto octet = static_cast<unsigned char>(c);
    if (octet < 0x80) {
      s += c;
    } else {
      s += static_cast<char>(0xc0 | octet >> 6);
      s += static_cast<char>(0x80 | (octet & 0x3f));
    }
  }
  return s;
}

// UTF-8 that also reads Latin-1.
class Utf8OrLatin1 : public Delegate {
 public:
  using Delegate::Delegate;

  // The ORB's native code set is UTF-8, so it reads all strings with this function.
  _CORBA_Boolean fastUnmarshalString(cdrStream& stream, NCS_C* native, _CORBA_ULong bound,
                                     _CORBA_ULong& length, char*& s) override {
    if (!Delegate::fastUnmarshalString(stream, native, bound, length, s)) return false;
    if (is_utf8(s)) return true;
    CORBA::String_var received = s;
    s = nullptr;
    const std::string converted = latin1_to_utf8(received.in());
    s = CORBA::string_dup(converted.c_str());
    length = static_cast<_CORBA_ULong>(converted.size());
    return true;
  }
};

// The code sets of one version of GIOP.
struct Version {
  // The ORB registers no UTF-8 for GIOP 1.0; both versions encode text alike.
  explicit Version(_CORBA_Octet minor)
      : latin1(*omniCodeSet::getTCS_C(omniCodeSet::ID_8859_1, {1, minor})),
        negotiated_latin1(latin1),
        utf8_or_latin1(
            *omniCodeSet::getTCS_C(omniCodeSet::ID_UTF_8, {1, std::max<_CORBA_Octet>(minor, 1)})) {}

  CodeSet& latin1;  // the ORB's, for callers that negotiated it, and for those that did not
  Delegate negotiated_latin1;
  Utf8OrLatin1 utf8_or_latin1;
};

Version& version(_CORBA_Octet minor) {
  // Not destroyed: at the end of the process connections may still be served.
  static Version* const versions = new Version[3]{Version(0), Version(1), Version(2)};
  return versions[minor];
}

bool negotiates(const IOP::ServiceContextList& contexts) {
  for (CORBA::ULong i = 0; i < contexts.length(); ++i)
    if (contexts[i].context_id == IOP::CodeSets) return true;
  return false;
}

}  // namespace

void select_code_set(omni::omniInterceptors::serverReceiveRequest_T::info_T& call) {
  Version& of = version(call.giop_s.version().minor);
  // The ORB's own interceptor has run: it keeps the code set of a connection, chosen at the
  // first request.
  // For a request of another version of GIOP than the first it takes Latin-1 again.
  if (call.giop_s.TCS_C() != &of.latin1) return;
  omni::giopStrand& connection = call.giop_s.strand();
  CodeSet* const chosen = negotiates(call.giop_s.service_contexts())
                              ? static_cast<CodeSet*>(&of.negotiated_latin1)
                              : &of.utf8_or_latin1;
  if (connection.tcs_c == &of.latin1) connection.tcs_c = chosen;
  call.giop_s.TCS_C(chosen);
}

}  // namespace sublet

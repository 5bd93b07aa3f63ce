#include "client/link/corba_contents.h"

#include "client/link/spool_chunks.h"

namespace sublet::client {
namespace {

class CorbaContents : public ContentCalls {
 public:
  explicit CorbaContents(const ContentDoor& door) : orb_(orb_settings(door)) {
    CORBA::Object_var object = orb_.resolve(door.socket, "Spool");
    spool_ = idl::Spool::_unchecked_narrow(object);
  }

  std::string get(const FilePlace& place, uint64_t offset, uint32_t count) override {
    idl::FilePlace where{};
    sublet::to_idl(place, where);
    std::string chunk;
    guard_call([&] { chunk = get_chunk(spool_, where, offset, count); });
    return chunk;
  }

  uint64_t put(uint64_t upload, uint64_t offset, const char* bytes, size_t count) override {
    uint64_t now = 0;
    guard_call([&] { now = put_chunk(spool_, upload, offset, bytes, count); });
    return now;
  }

 private:
  Orb orb_;
  idl::Spool_var spool_;
};

}  // namespace

std::unique_ptr<ContentCalls> open_corba_contents(const ContentDoor& door) {
  return std::make_unique<CorbaContents>(door);
}

}  // namespace sublet::client

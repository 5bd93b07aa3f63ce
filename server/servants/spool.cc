#include "base/text.h"
#include "server/servants/guard_call.h"
#include "server/servants/servants.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

class SpoolServant : public POA_Sublet::v1::Spool {
 public:
  explicit SpoolServant(const Services& s) : s_(s) {}

  v1::Upload* open_upload(const v1::RequestId& request, const v1::FilePlace& place,
                          v1::ByteCount size, const v1::Digest& digest) override {
    return guard_call([&] {
      auto started = s_.spool.open(s_.access.caller(), from_octets(request), served_place(place),
                                   size, from_octets(digest));
      v1::Upload_var upload = new v1::Upload();
      upload->id = started.id;
      upload->offset = started.offset;
      return upload._retn();
    });
  }

  v1::ByteCount put(v1::UploadId upload, v1::ByteCount offset, const v1::Bytes& chunk) override {
    return guard_call([&] {
      const std::string_view bytes(reinterpret_cast<const char*>(chunk.get_buffer()),
                                   chunk.length());
      return s_.spool.put(s_.access.caller(), upload, offset, bytes);
    });
  }

  v1::FileId close_upload(v1::UploadId upload) override {
    return guard_call([&] { return s_.spool.close(s_.access.caller(), upload); });
  }

  v1::FileInfo* stat(const v1::FilePlace& place) override {
    return guard_call([&] {
      const FileRow row = s_.spool.stat(s_.access.caller(), served_place(place));
      v1::FileInfo_var info = new v1::FileInfo();
      info->size = row.size;
      to_octets(hex_decode(row.digest).value_or(""), info->content_digest);
      info->generation = row.generation;
      return info._retn();
    });
  }

  v1::Bytes* get(const v1::FilePlace& place, v1::ByteCount offset, CORBA::ULong count) override {
    return guard_call([&] {
      // allocbuf(), because length() would clear the buffer before it is overwritten.
      const CORBA::ULong room = std::min(count, v1::CHUNK_LIMIT);
      CORBA::Octet* buffer = v1::Bytes::allocbuf(room);
      v1::Bytes_var bytes = new v1::Bytes(room, 0, buffer, true);
      const size_t got = s_.spool.get(s_.access.caller(), served_place(place), offset,
                                      {reinterpret_cast<char*>(buffer), room});
      bytes->length(got);
      return bytes._retn();
    });
  }

  void discard_outputs(v1::JobId job) override {
    guard_call([&] { s_.spool.discard_outputs(s_.access.submitter(), job); });
  }

 private:
  const Services s_;
};

}  // namespace

PortableServer::Servant make_spool(const Services& services) { return new SpoolServant(services); }

}  // namespace sublet::server

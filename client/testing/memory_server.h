// An in-memory spool for unit tests; can be unavailable, forget uploads and refuse.
#ifndef SUBLET_CLIENT_TESTING_MEMORY_SERVER_H_
#define SUBLET_CLIENT_TESTING_MEMORY_SERVER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/link/server_calls.h"

namespace sublet::client {

class MemoryServer : public ServerCalls {
 public:
  struct Stored {
    FilePlace place;
    std::string bytes;
    uint64_t size = 0;
    bool complete = false;
  };

  Joined join(const MachineIdentity&, const MachineFacts&) override { return {}; }
  void attach() override {}
  void report_state(const MachineState&) override {}
  Renewed renew(const MachineState&, const std::vector<HeldAttempt>&) override { return {}; }
  void withdraw() override {}
  std::string address() const override { return {}; }
  std::vector<AttemptVerdict> started(const std::vector<AttemptStart>& starts) override {
    std::vector<AttemptVerdict> verdicts;
    for (const auto& start : starts) verdicts.push_back({start.name, kVerdictCounts});
    return verdicts;
  }
  std::vector<AttemptVerdict> ended(const std::vector<AttemptEnd>&) override { return {}; }

  Upload open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                     const Digest&) override {
    step();
    if (place.kind == refused_kind) refuse();
    uint64_t& id = requests[request];
    if (id == 0) {
      id = ++last_id;
      files[id] = {place, "", size, false};
    }
    auto found = files.find(id);  // the request may be remembered longer than the upload
    return {id, found == files.end() ? 0 : found->second.bytes.size()};
  }
  uint64_t put(uint64_t upload, uint64_t offset, const char* bytes, size_t count) override {
    step();
    Stored& file = find(upload);
    if (offset != file.bytes.size())
      throw ServerError(ServerError::Kind::kConflict, "upload.offset", "Wrong offset.");
    file.bytes.append(bytes, count);
    return file.bytes.size();
  }
  uint64_t close_upload(uint64_t upload) override {
    step();
    Stored& file = find(upload);
    if (file.bytes.size() != file.size)
      throw ServerError(ServerError::Kind::kRefused, "spool.digest", "Too short.");
    file.complete = true;
    return upload;
  }
  ContentDoor content_door() override { return {}; }
  RemoteFile stat(const FilePlace& place) override {
    step();
    const std::string& bytes = content(place);
    suspected += place.suspect;
    return {bytes.size(), digest_of(bytes), place.kind == FileKind::kCheckpoint ? generation : 0};
  }
  std::string get(const FilePlace& place, uint64_t offset, uint32_t count) override {
    step();
    if (before_get) before_get(place);
    std::string part = content(place).substr(offset, count);
    got += part.size();
    if (damage > 0 && !part.empty()) {
      --damage;
      part[0] ^= 1;
    }
    return part;
  }

  // The complete files of this kind, in order of arrival.
  std::vector<Stored> complete(FileKind kind) const {
    std::vector<Stored> out;
    for (const auto& [id, file] : files)
      if (file.complete && file.place.kind == kind) out.push_back(file);
    return out;
  }

  std::map<uint64_t, std::string> inputs;
  std::string checkpoint;
  uint64_t generation = 3;  // of the checkpoint; 0: there is none
  std::map<RequestId, uint64_t> requests;
  std::map<uint64_t, Stored> files;
  uint64_t last_id = 100;
  int calls = 0;
  int away_at = -1;   // this call fails, as does every later one while it is set
  int damage = 0;     // number of chunks to damage
  int suspected = 0;  // number of stat() calls for suspect files
  uint64_t got = 0;   // bytes fetched
  std::function<void(const FilePlace&)> before_get;
  FileKind refused_kind = FileKind::kInput;

 private:
  void step() {
    if (away_at >= 0 && calls++ >= away_at)
      throw ServerError(ServerError::Kind::kAway, "", "Nobody answers.");
  }
  [[noreturn]] void refuse() {
    throw ServerError(ServerError::Kind::kRefused, "spool.large", "Too large.");
  }
  Stored& find(uint64_t id) {
    auto found = files.find(id);
    if (found == files.end())
      throw ServerError(ServerError::Kind::kNotFound, "upload.unknown", "No such upload.");
    return found->second;
  }
  const std::string& content(const FilePlace& place) {
    if (place.kind == FileKind::kCheckpoint) return checkpoint;
    auto found = inputs.find(place.file);
    if (found == inputs.end())
      throw ServerError(ServerError::Kind::kNotFound, "spool.unknown", "No such file.");
    return found->second;
  }
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_TESTING_MEMORY_SERVER_H_

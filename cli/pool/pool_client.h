// The command's connection to the server: one method for each operation of the public
// contract that users need. Plain structs in and out; every failure is a PoolError.
//
// A call without an answer (server restarting, connection lost, time-out) is repeated with
// the same arguments: operations that change something carry a request id or a position, by
// which the server recognises a repeat. Patience limits the repeats. So is a commit while the
// server enters the batch's jobs, up to 20 min. Any thread; the object must outlive every call.
#ifndef SUBLET_CLI_POOL_POOL_CLIENT_H_
#define SUBLET_CLI_POOL_POOL_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/pool/pool.h"
#include "transport/membership.h"

namespace sublet::cli {

struct Patience {
  int call_timeout_ms = 10'000;  // of one try; six times as long to commit a batch
  int tries_after_timeout = 3;   // total tries of a call that times out
  int unreachable_ms = 1'500;    // how long to retry if no server listens
};

struct ServerAddress {
  std::string address;  // the path of a Unix socket, or tls://HOST:PORT
  std::string origin;   // of the address, for messages: "from $SUBLET_SERVER", "the default"
};

struct CorbaPool;

class PoolClient : public SpoolCalls, public LogCalls {
 public:
  // Makes no connection yet. One object per process (one ORB per process).
  // Throws PoolError if it is not a valid address, or not of a pool that was joined.
  PoolClient(const ServerAddress& server, const Patience& patience);
  ~PoolClient() override;
  PoolClient(const PoolClient&) = delete;
  PoolClient& operator=(const PoolClient&) = delete;

  // For a long wait: how long to retry if the server does not answer.
  void set_unreachable_ms(int ms);

  uint64_t open_batch(const RequestId& request, const std::string& name,
                      const std::string& submit_host, const StopWhen& stop_when, OnNever on_never,
                      uint64_t at_most);
  void append(uint64_t batch, uint64_t number, const std::vector<JobDescription>& jobs);
  void append_array(uint64_t batch, uint64_t number, const JobDescription& job, uint64_t first,
                    uint64_t count);
  void append_sweep(uint64_t batch, uint64_t number, const JobDescription& job,
                    const std::vector<Axis>& axes, uint64_t first_index);
  IdRange commit_batch(const RequestId& request, uint64_t batch);
  // One try of at most a second, for use while the process ends.
  void discard_batch(uint64_t batch);
  uint64_t submit(const RequestId& request, const std::string& submit_host,
                  const JobDescription& job);

  Control remove(const RequestId& request, const JobFilter& which);
  Control hold(const RequestId& request, const JobFilter& which);
  Control release(const RequestId& request, const JobFilter& which);
  Control set_priority(const RequestId& request, const JobFilter& which, int32_t priority);
  JobPage list(const JobFilter& which, const std::string& cursor, uint32_t limit);
  JobCounts count(const JobFilter& which);
  // Includes all attempts and outputs.
  JobDetail show(uint64_t job) override;
  LogPart read_log(uint64_t job, uint32_t attempt, FileKind kind, uint64_t offset,
                   int64_t hold_ms) override;
  // hold_ms: 0 to 10,000.
  ChangePage changes_since(uint64_t since, int64_t hold_ms);
  PoolInfo about();

  MachinePage machines(const std::string& cursor, uint32_t limit);
  Invitation invite(const RequestId& request, const std::string& name, Role role, int64_t valid_ms);
  void revoke(const RequestId& request, const std::string& name);
  MemberPage members(const std::string& cursor, uint32_t limit);

  // False: it was so already.
  bool drain(const RequestId& request, uint64_t machine);
  bool resume(const RequestId& request, uint64_t machine);
  uint64_t evict(const RequestId& request, uint64_t machine);
  // std::nullopt: as the server's settings say.
  void set_shares(const RequestId& request, const std::string& user, std::optional<double> shares);
  void set_quota(const RequestId& request, const std::string& user, std::optional<uint64_t> bytes);
  void set_policies(const RequestId& request, const Details& parameters);
  void give_policies_back(const RequestId& request);
  Policies policies_in_force();
  SharesPage shares(const std::string& cursor, uint32_t limit);
  QuotaPage quotas(const std::string& cursor, uint32_t limit);

  UsagePage usage(const ReportQuery& query, const std::string& cursor, uint32_t limit);
  // All users, in order of name.
  std::vector<Standing> current_standings();

  Upload open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                     const std::optional<Digest>& digest) override;
  // Not repeated: after a failure, open_upload returns the offset to continue from.
  uint64_t put(uint64_t upload, uint64_t offset, const std::string& chunk) override;
  uint64_t close_upload(uint64_t upload) override;
  std::string get(const FilePlace& place, uint64_t offset, uint32_t count) override;
  void doubt(const FilePlace& place) override;
  void discard_outputs(uint64_t job);

 private:
  std::unique_ptr<CorbaPool> remote_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_POOL_POOL_CLIENT_H_

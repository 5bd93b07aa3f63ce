#include "attempt/traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace sublet {
namespace {

// Of one direction.
struct Counts {
  uint64_t bytes;
  // With a bound: when all that has passed is paid for, each byte by its time, in the kernel's
  // nanoseconds. A packet may pass as long as that is not further ahead than what may pass at once
  // takes. Processors that change it at the same moment may let one packet more pass each.
  uint64_t paid_at;
};

// What programs and we share, in one value of a map.
struct BothCounts {
  Counts sent;
  Counts received;
};

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kLeastAtOnceNs = kSecond / 4;
constexpr uint64_t kLeastAtOnce = 64 << 10;  // what the kernel may pass on as one packet

constexpr uint32_t kLoopback = 1;  // its index in every network namespace

// What a program answers.
constexpr int32_t kDrop = 0;
constexpr int32_t kPass = 1;
constexpr int32_t kDropAndSlowDown = 2;  // only of what is sent: TCP is told

int bpf(bpf_cmd command, bpf_attr& how) {
  return static_cast<int>(syscall(SYS_bpf, command, &how, sizeof how));
}

// Assembles a program. The kernel's registers: 0 has the result, 1 to 5 the arguments of calls,
// which do not survive these; 6 to 9 do.
class Program {
 public:
  void move(int to, int from) { put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(int to, int32_t value) { put(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  void set_long(int to, uint64_t value) {
    put(BPF_LD | BPF_IMM | BPF_DW, to, 0, 0, static_cast<int32_t>(value));
    put(0, 0, 0, 0, static_cast<int32_t>(value >> 32));
  }
  // BPF_ADD, BPF_MUL, ...: to = to `operation` by.
  void compute(int operation, int to, int by) { put(BPF_ALU64 | operation | BPF_X, to, by, 0, 0); }
  void call(bpf_func_id function) { put(BPF_JMP | BPF_CALL, 0, 0, 0, function); }
  // size: BPF_W, BPF_DW, ...
  void load(int size, int to, int from, size_t offset) {
    put(BPF_LDX | BPF_MEM | size, to, from, static_cast<int16_t>(offset), 0);
  }
  void store(int size, int address, size_t offset, int value) {
    put(BPF_STX | BPF_MEM | size, address, value, static_cast<int16_t>(offset), 0);
  }
  // The address of that byte of the map's value.
  void address_in_map(int to, int map, size_t offset) {
    put(BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_VALUE, 0, map);
    put(0, 0, 0, 0, static_cast<int32_t>(offset));
  }
  // To what is at that address, which other processors may change, too.
  void add_at(int address, size_t offset, int value) {
    put(BPF_STX | BPF_ATOMIC | BPF_DW, address, value, static_cast<int16_t>(offset), BPF_ADD);
  }
  // Skips so many instructions if the condition (BPF_JGT, ...) holds between the two.
  void skip_if(int condition, int left, int right, int16_t count) {
    put(BPF_JMP | condition | BPF_X, left, right, count, 0);
  }
  // Unless the condition holds, ends the program with this answer.
  void answer_unless(int condition, int reg, int32_t value, int32_t answer) {
    put(BPF_JMP | condition | BPF_K, reg, 0, kAnswerSize, value);
    this->answer(answer);
  }
  static constexpr int16_t kAnswerSize = 2;
  void answer(int32_t answer) {
    set(0, answer);
    put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  }

  // Of what is sent, or else received. Returns its descriptor, or -1 with errno.
  int load_into_kernel(bool outgoing) const {
    bpf_attr how = {};
    how.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
    how.expected_attach_type = outgoing ? BPF_CGROUP_INET_EGRESS : BPF_CGROUP_INET_INGRESS;
    how.insns = reinterpret_cast<uintptr_t>(code_);
    how.insn_cnt = count_;
    how.license = reinterpret_cast<uintptr_t>("");
    strcpy(how.prog_name, "sublet_traffic");
    return bpf(BPF_PROG_LOAD, how);
  }

 private:
  void put(int code, int to, int from, int16_t offset, int32_t value) {
    code_[count_++] = {static_cast<uint8_t>(code), static_cast<uint8_t>(to & 15),
                       static_cast<uint8_t>(from & 15), offset, value};
  }

  bpf_insn code_[64];
  uint32_t count_ = 0;
};

constexpr int kResult = 0, kArgument1 = 1, kFree1 = 1, kFree2 = 2, kFree3 = 3;
constexpr int kPacket = 6, kLength = 7, kCounts = 8;

void police(Program& program, bool outgoing, uint64_t bandwidth) {
  const uint64_t at_once_ns = std::max(kLeastAtOnceNs, kLeastAtOnce * kSecond / bandwidth);
  program.call(BPF_FUNC_ktime_get_ns);
  program.load(BPF_DW, kFree1, kCounts, offsetof(Counts, paid_at));
  program.skip_if(BPF_JGE, kFree1, kResult, 2);
  program.move(kFree1, kResult);  // all has been paid for: nothing is saved up
  program.store(BPF_DW, kCounts, offsetof(Counts, paid_at), kFree1);
  program.set_long(kFree2, at_once_ns);
  program.compute(BPF_ADD, kFree2, kResult);
  program.skip_if(BPF_JLE, kFree1, kFree2, Program::kAnswerSize);
  program.answer(outgoing ? kDropAndSlowDown : kDrop);
  program.move(kFree1, kLength);
  program.set_long(kFree3, kSecond);
  program.compute(BPF_MUL, kFree1, kFree3);
  program.set_long(kFree3, bandwidth);
  program.compute(BPF_DIV, kFree1, kFree3);
  program.add_at(kCounts, offsetof(Counts, paid_at), kFree1);
}

void assemble(Program& program, int map, bool outgoing, uint64_t bandwidth) {
  const size_t mine = outgoing ? offsetof(BothCounts, sent) : offsetof(BothCounts, received);
  program.move(kPacket, kArgument1);
  program.load(BPF_W, kResult, kPacket, offsetof(__sk_buff, ifindex));
  program.answer_unless(BPF_JNE, kResult, kLoopback, kPass);
  program.load(BPF_W, kLength, kPacket, offsetof(__sk_buff, len));
  program.address_in_map(kCounts, map, mine);
  if (bandwidth > 0) police(program, outgoing, bandwidth);
  program.add_at(kCounts, offsetof(Counts, bytes), kLength);
  program.answer(kPass);
}

int make_map() {
  bpf_attr how = {};
  how.map_type = BPF_MAP_TYPE_ARRAY;
  how.key_size = sizeof(uint32_t);
  how.value_size = sizeof(BothCounts);
  how.max_entries = 1;
  strcpy(how.map_name, "sublet_traffic");
  return bpf(BPF_MAP_CREATE, how);
}

}  // namespace

bool Traffic::attach(int cgroup, bool outgoing, uint64_t bandwidth) const {
  Program program;
  assemble(program, counts_.get(), outgoing, bandwidth);
  const UniqueFd loaded(program.load_into_kernel(outgoing));
  if (!loaded.valid()) return false;
  bpf_attr how = {};
  how.target_fd = static_cast<uint32_t>(cgroup);
  how.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
  how.attach_type = outgoing ? BPF_CGROUP_INET_EGRESS : BPF_CGROUP_INET_INGRESS;
  how.attach_flags = BPF_F_ALLOW_MULTI;  // beside the service manager's of the folders above
  return bpf(BPF_PROG_ATTACH, how) == 0;
}

bool Traffic::start(const char* cgroup, uint64_t bandwidth) {
  const UniqueFd folder(open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return false;
  counts_.reset(make_map());
  if (counts_.valid() && attach(folder.get(), true, bandwidth) &&
      attach(folder.get(), false, bandwidth))
    return true;
  const int error = errno;
  counts_.reset();
  errno = error;
  return false;
}

int64_t Traffic::bytes() const {
  if (!counts_.valid()) return -1;
  const uint32_t key = 0;
  BothCounts counts = {};
  bpf_attr how = {};
  how.map_fd = static_cast<uint32_t>(counts_.get());
  how.key = reinterpret_cast<uintptr_t>(&key);
  how.value = reinterpret_cast<uintptr_t>(&counts);
  if (bpf(BPF_MAP_LOOKUP_ELEM, how) != 0) return -1;
  return static_cast<int64_t>(counts.sent.bytes + counts.received.bytes);
}

}  // namespace sublet

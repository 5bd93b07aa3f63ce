#include "attempt/traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sublet {
namespace {

// What programs and we share, in one value of a map.
struct Counts {
  uint64_t sent;
  uint64_t received;
};

constexpr uint32_t kLoopback = 1;  // its index in every network namespace

// What a program answers.
constexpr int32_t kDrop = 0;
constexpr int32_t kPass = 1;

int bpf(bpf_cmd command, bpf_attr& how) {
  return static_cast<int>(syscall(SYS_bpf, command, &how, sizeof how));
}

// Assembles a program. The kernel's registers: 0 has the result, 1 to 5 the arguments of calls,
// which do not survive these; 6 to 9 do.
class Program {
 public:
  void move(int to, int from) { put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(int to, int32_t value) { put(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  // size: BPF_W, BPF_DW, ...
  void load(int size, int to, int from, size_t offset) {
    put(BPF_LDX | BPF_MEM | size, to, from, static_cast<int16_t>(offset), 0);
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
  // Unless the condition holds, ends the program with this answer.
  void answer_unless(int condition, int reg, int32_t value, int32_t answer) {
    put(BPF_JMP | condition | BPF_K, reg, 0, 2, value);
    this->answer(answer);
  }
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

constexpr int kResult = 0, kArgument1 = 1, kPacket = 6, kLength = 7, kCounts = 8;

void assemble(Program& program, int map, bool outgoing) {
  const size_t mine = outgoing ? offsetof(Counts, sent) : offsetof(Counts, received);
  program.move(kPacket, kArgument1);
  program.load(BPF_W, kResult, kPacket, offsetof(__sk_buff, ifindex));
  program.answer_unless(BPF_JNE, kResult, kLoopback, kPass);
  program.load(BPF_W, kLength, kPacket, offsetof(__sk_buff, len));
  program.address_in_map(kCounts, map, 0);
  program.add_at(kCounts, mine, kLength);
  program.answer(kPass);
}

int make_map() {
  bpf_attr how = {};
  how.map_type = BPF_MAP_TYPE_ARRAY;
  how.key_size = sizeof(uint32_t);
  how.value_size = sizeof(Counts);
  how.max_entries = 1;
  strcpy(how.map_name, "sublet_traffic");
  return bpf(BPF_MAP_CREATE, how);
}

}  // namespace

bool Traffic::attach(int cgroup, bool outgoing) const {
  Program program;
  assemble(program, counts_.get(), outgoing);
  const UniqueFd loaded(program.load_into_kernel(outgoing));
  if (!loaded.valid()) return false;
  bpf_attr how = {};
  how.target_fd = static_cast<uint32_t>(cgroup);
  how.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
  how.attach_type = outgoing ? BPF_CGROUP_INET_EGRESS : BPF_CGROUP_INET_INGRESS;
  how.attach_flags = BPF_F_ALLOW_MULTI;  // beside the service manager's of the folders above
  return bpf(BPF_PROG_ATTACH, how) == 0;
}

bool Traffic::start(const char* cgroup) {
  const UniqueFd folder(open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return false;
  counts_.reset(make_map());
  if (counts_.valid() && attach(folder.get(), true) && attach(folder.get(), false)) return true;
  const int error = errno;
  counts_.reset();
  errno = error;
  return false;
}

int64_t Traffic::bytes() const {
  if (!counts_.valid()) return -1;
  const uint32_t key = 0;
  Counts counts = {};
  bpf_attr how = {};
  how.map_fd = static_cast<uint32_t>(counts_.get());
  how.key = reinterpret_cast<uintptr_t>(&key);
  how.value = reinterpret_cast<uintptr_t>(&counts);
  if (bpf(BPF_MAP_LOOKUP_ELEM, how) != 0) return -1;
  return static_cast<int64_t>(counts.sent + counts.received);
}

}  // namespace sublet

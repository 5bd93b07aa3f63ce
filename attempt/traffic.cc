#include "attempt/traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

constexpr char kName[] = "sublet_traffic";  // of programs and map
constexpr uint32_t kLoopback = 1;           // its index in every network namespace

// What a program answers.
constexpr int32_t kDrop = 0;
constexpr int32_t kPass = 1;
constexpr int32_t kDropAndSlowDown = 2;  // only of what is sent: TCP is told

int bpf(bpf_cmd command, bpf_attr& how) {
  return static_cast<int>(syscall(SYS_bpf, command, &how, sizeof how));
}

// Of version 4 or 6; the bytes in the order of the network.
struct Address {
  int family;  // AF_UNSPEC: none
  unsigned char bytes[16];
  uint16_t port;
};

Address parse(const char* text) {
  Address out = {};
  char host[INET6_ADDRSTRLEN] = {};
  const char* const colon = strrchr(text, ':');
  if (!colon) return out;
  const bool brackets = *text == '[' && colon[-1] == ']';
  const char* const from = text + brackets;
  const auto length = static_cast<size_t>(colon - brackets - from);
  if (length >= sizeof host) return out;
  memcpy(host, from, length);
  out.port = htons(static_cast<uint16_t>(atoi(colon + 1)));
  const int family = brackets ? AF_INET6 : AF_INET;
  if (inet_pton(family, host, out.bytes) == 1) out.family = family;
  return out;
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
  // In the rest of the register.
  void keep_bits(int reg, int32_t bits) { put(BPF_ALU64 | BPF_AND | BPF_K, reg, 0, 0, bits); }
  // A 32 bit value, as load() gives it.
  void set_word(int to, uint32_t value) {
    put(BPF_ALU | BPF_MOV | BPF_K, to, 0, 0, static_cast<int32_t>(value));
  }
  void add(int to, int32_t value) { put(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value); }
  // A condition on words that answer_if_all() knows.
  struct Word {
    size_t offset;
    uint32_t bits, value;
  };
  // If the words at `base` have these values in these bits, ends the program with this answer.
  void answer_if_all(int base, const Word* words, int16_t count, int32_t answer) {
    constexpr int16_t kPerWord = 4;
    for (int16_t left = count; left > 0; --left, ++words) {
      load(BPF_W, 1, base, words->offset);
      put(BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, static_cast<int32_t>(words->bits));
      set_word(2, words->value);
      skip_if(BPF_JNE, 1, 2, static_cast<int16_t>((left - 1) * kPerWord + kAnswerSize));
    }
    this->answer(answer);
  }
  // Unless both are equal, ends the program with this answer.
  void answer_unless_equal(int left, int right, int32_t answer) {
    skip_if(BPF_JEQ, left, right, kAnswerSize);
    this->answer(answer);
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

  // Returns its descriptor, or -1 with errno.
  int load_into_kernel(bpf_prog_type type, bpf_attach_type where) const {
    bpf_attr how = {};
    how.prog_type = type;
    how.expected_attach_type = where;
    how.insns = reinterpret_cast<uintptr_t>(code_);
    how.insn_cnt = count_;
    how.license = reinterpret_cast<uintptr_t>("");
    strcpy(how.prog_name, kName);
    return bpf(BPF_PROG_LOAD, how);
  }

 private:
  void put(int code, int to, int from, int16_t offset, int32_t value) {
    code_[count_++] = {static_cast<uint8_t>(code), static_cast<uint8_t>(to & 15),
                       static_cast<uint8_t>(from & 15), offset, value};
  }

  bpf_insn code_[128];
  uint32_t count_ = 0;
};

constexpr int kResult = 0, kArgument1 = 1, kFree1 = 1, kFree2 = 2, kFree3 = 3;
constexpr int kPacket = 6, kLength = 7, kCounts = 8, kStackEnd = 10;
constexpr int32_t kStackUsed = sizeof(ip6_hdr);

// Copies these bytes of the packet to the top of the stack.
void copy(Program& program, int32_t from, int32_t size) {
  program.move(kArgument1, kPacket);
  program.set(2, from);
  program.move(3, kStackEnd);
  program.add(3, -kStackUsed);
  program.set(4, size);
  program.call(BPF_FUNC_skb_load_bytes);
  program.answer_unless(BPF_JEQ, kResult, 0, kDrop);
}

void load_copied(Program& program, int size, size_t offset) {
  program.load(size, kFree1, kStackEnd, offset - kStackUsed);
}

// Headers that may lead elsewhere, IPv4's options and IPv6's extensions, are not permitted.
void permit_only(Program& program, bool outgoing, const Address& server) {
  const bool four = server.family == AF_INET;
  const int32_t header = four ? sizeof(iphdr) : sizeof(ip6_hdr);
  const size_t ours = four ? offsetof(iphdr, saddr) : offsetof(ip6_hdr, ip6_src);
  const size_t bytes = four ? sizeof(in_addr) : sizeof(in6_addr);
  copy(program, 0, header);
  load_copied(program, BPF_B, 0);
  if (!four) program.keep_bits(kFree1, 0xf0);
  program.answer_unless(BPF_JEQ, kFree1, four ? 0x45 : 0x60, kDrop);
  load_copied(program, BPF_B, four ? offsetof(iphdr, protocol) : offsetof(ip6_hdr, ip6_nxt));
  program.answer_unless(BPF_JEQ, kFree1, IPPROTO_TCP, kDrop);
  for (size_t at = 0; at < bytes; at += sizeof(uint32_t)) {
    uint32_t word;
    memcpy(&word, server.bytes + at, sizeof word);
    load_copied(program, BPF_W, ours + (outgoing ? bytes : 0) + at);
    program.set_word(kFree2, word);
    program.answer_unless_equal(kFree1, kFree2, kDrop);
  }
  copy(program, header, 2 * sizeof(uint16_t));
  load_copied(program, BPF_H, outgoing ? sizeof(uint16_t) : 0);
  program.answer_unless(BPF_JEQ, kFree1, server.port, kDrop);
}

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

void assemble(Program& program, int map, bool outgoing, const TrafficTerms& terms) {
  const size_t mine = outgoing ? offsetof(BothCounts, sent) : offsetof(BothCounts, received);
  program.move(kPacket, kArgument1);
  program.load(BPF_W, kResult, kPacket, offsetof(__sk_buff, ifindex));
  program.answer_unless(BPF_JNE, kResult, kLoopback, kPass);
  const Address server = parse(terms.server);
  if (terms.only_server && server.family == AF_UNSPEC) return program.answer(kDrop);
  if (terms.only_server) permit_only(program, outgoing, server);
  program.load(BPF_W, kLength, kPacket, offsetof(__sk_buff, len));
  program.address_in_map(kCounts, map, mine);
  if (terms.bandwidth > 0) police(program, outgoing, terms.bandwidth);
  program.add_at(kCounts, offsetof(Counts, bytes), kLength);
  program.answer(kPass);
}

uint32_t word_of(const Address& address, size_t number) {
  uint32_t word;
  memcpy(&word, address.bytes + number * sizeof word, sizeof word);
  return word;
}

constexpr uint32_t kAllBits = ~0u;

// Of a connection of version 4, or of 6 to an address of version 4: where that is.
void permit_four(Program& program, const Address& server, size_t offset, bool mapped) {
  using Word = Program::Word;
  const size_t six = offsetof(bpf_sock_addr, user_ip6);
  const Word before[] = {
      {six, kAllBits, 0}, {six + 4, kAllBits, 0}, {six + 8, kAllBits, htonl(0xffff)}};
  const int16_t skipped = mapped ? 0 : 3;
  Word words[5];
  memcpy(words, before, sizeof before);
  words[3] = {offset, htonl(0xff000000), htonl(INADDR_LOOPBACK & 0xff000000)};
  program.answer_if_all(kPacket, words + skipped, static_cast<int16_t>(4 - skipped), kPass);
  words[3] = {offset, kAllBits, word_of(server, 0)};
  words[4] = {offsetof(bpf_sock_addr, user_port), kAllBits, server.port};
  if (server.family == AF_INET)
    program.answer_if_all(kPacket, words + skipped, static_cast<int16_t>(5 - skipped), kPass);
}

// Connections that permit_only() would let wait for an answer in vain are refused at once.
void assemble_connect(Program& program, bool four, const Address& server) {
  program.move(kPacket, kArgument1);
  program.load(BPF_W, kResult, kPacket, offsetof(bpf_sock_addr, type));
  program.answer_unless(BPF_JEQ, kResult, SOCK_STREAM, kPass);
  const size_t six = offsetof(bpf_sock_addr, user_ip6);
  permit_four(program, server, four ? offsetof(bpf_sock_addr, user_ip4) : six + 12, !four);
  if (four) return program.answer(kDrop);
  const Program::Word loopback[] = {{six, kAllBits, 0},
                                    {six + 4, kAllBits, 0},
                                    {six + 8, kAllBits, 0},
                                    {six + 12, kAllBits, htonl(1)}};
  program.answer_if_all(kPacket, loopback, 4, kPass);
  Program::Word to_server[5];
  for (size_t i = 0; i < 4; ++i) to_server[i] = {six + 4 * i, kAllBits, word_of(server, i)};
  to_server[4] = {offsetof(bpf_sock_addr, user_port), kAllBits, server.port};
  if (server.family == AF_INET6) program.answer_if_all(kPacket, to_server, 5, kPass);
  program.answer(kDrop);
}

bool attach(const Program& program, int cgroup, bpf_prog_type type, bpf_attach_type where) {
  const UniqueFd loaded(program.load_into_kernel(type, where));
  if (!loaded.valid()) return false;
  bpf_attr how = {};
  how.target_fd = static_cast<uint32_t>(cgroup);
  how.attach_bpf_fd = static_cast<uint32_t>(loaded.get());
  how.attach_type = where;
  how.attach_flags = BPF_F_ALLOW_MULTI;  // beside the service manager's of the folders above
  return bpf(BPF_PROG_ATTACH, how) == 0;
}

bool watch_packets(int cgroup, int map, bool outgoing, const TrafficTerms& terms) {
  Program program;
  assemble(program, map, outgoing, terms);
  return attach(program, cgroup, BPF_PROG_TYPE_CGROUP_SKB,
                outgoing ? BPF_CGROUP_INET_EGRESS : BPF_CGROUP_INET_INGRESS);
}

bool watch_connections(int cgroup, bool four, const TrafficTerms& terms) {
  Program program;
  assemble_connect(program, four, parse(terms.server));
  return attach(program, cgroup, BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
                four ? BPF_CGROUP_INET4_CONNECT : BPF_CGROUP_INET6_CONNECT);
}

bool watch(int cgroup, int map, const TrafficTerms& terms) {
  return watch_packets(cgroup, map, true, terms) && watch_packets(cgroup, map, false, terms) &&
         (!terms.only_server ||
          (watch_connections(cgroup, true, terms) && watch_connections(cgroup, false, terms)));
}

int make_map() {
  bpf_attr how = {};
  how.map_type = BPF_MAP_TYPE_ARRAY;
  how.key_size = sizeof(uint32_t);
  how.value_size = sizeof(BothCounts);
  how.max_entries = 1;
  strcpy(how.map_name, kName);
  return bpf(BPF_MAP_CREATE, how);
}

// Of the program with this number, if it is one of ours.
UniqueFd map_of(uint32_t number) {
  bpf_attr how = {};
  how.prog_id = number;
  const UniqueFd program(bpf(BPF_PROG_GET_FD_BY_ID, how));
  if (!program.valid()) return {};
  uint32_t map = 0;
  bpf_prog_info about = {};
  about.map_ids = reinterpret_cast<uintptr_t>(&map);
  about.nr_map_ids = 1;
  how = {};
  how.info.bpf_fd = static_cast<uint32_t>(program.get());
  how.info.info_len = sizeof about;
  how.info.info = reinterpret_cast<uintptr_t>(&about);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, how) != 0 || strcmp(about.name, kName) != 0) return {};
  how = {};
  how.map_id = map;
  return UniqueFd(bpf(BPF_MAP_GET_FD_BY_ID, how));
}

}  // namespace

UniqueFd watch_traffic(const char* cgroup, const TrafficTerms& terms) {
  const UniqueFd folder(open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return {};
  UniqueFd counts(make_map());
  if (counts.valid() && watch(folder.get(), counts.get(), terms)) return counts;
  const int error = errno;
  counts.reset();
  errno = error;
  return {};
}

int64_t traffic_in(int counts) {
  const uint32_t key = 0;
  BothCounts both = {};
  bpf_attr how = {};
  how.map_fd = static_cast<uint32_t>(counts);
  how.key = reinterpret_cast<uintptr_t>(&key);
  how.value = reinterpret_cast<uintptr_t>(&both);
  if (bpf(BPF_MAP_LOOKUP_ELEM, how) != 0) return -1;
  return static_cast<int64_t>(both.sent.bytes + both.received.bytes);
}

int64_t traffic_of(const char* cgroup) {
  const UniqueFd folder(open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  uint32_t programs[8];
  bpf_attr how = {};
  how.query.target_fd = static_cast<uint32_t>(folder.get());
  how.query.attach_type = BPF_CGROUP_INET_EGRESS;
  how.query.prog_ids = reinterpret_cast<uintptr_t>(programs);
  how.query.prog_cnt = sizeof programs / sizeof *programs;
  if (!folder.valid() || bpf(BPF_PROG_QUERY, how) != 0) return -1;
  const uint32_t count = how.query.prog_cnt;
  for (uint32_t i = 0; i < count; ++i) {
    const UniqueFd map = map_of(programs[i]);
    if (map.valid()) return traffic_in(map.get());
  }
  return -1;
}

}  // namespace sublet

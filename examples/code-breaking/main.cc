// Searches a range of keys for the one that was used. All output is printed at the end, so
// that the last attempt of an interrupted run prints the same as an uninterrupted run.
// Exit status: 0 (found or not), 1 (failed), 2 (bad command line), 75 (saved and left
// because asked to).
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>

#include "examples/code-breaking/options.h"
#include "examples/code-breaking/search.h"
#include "examples/code-breaking/self_test.h"

namespace sublet::code_breaking {
namespace {

// Prints ASCII characters unchanged, everything else as \xNN.
void print_text(const Bytes& text) {
  for (const std::uint8_t byte : text) {
    if (byte >= ' ' && byte <= '~' && byte != '\\') {
      std::putchar(byte);
    } else {
      std::printf("\\x%02x", byte);
    }
  }
  std::putchar('\n');
}

void write_found(const std::string& path, const std::string& key) {
  std::ofstream out(path, std::ios::trunc);
  out << key << '\n';
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

void run(const Options& options) {
  Search search(options.message, options.range, options.packet);
  search.start(options.checkpoint);
  const auto match = search.run();
  if (match) {
    const Bytes key = key_bytes(*match, options.range.length);
    std::printf("found %s\nkeys tried: %" PRIu64 "\ntext: ", to_hex(key).c_str(), search.tried());
    print_text(Rc5(key).decrypt_chained(options.message.iv, options.message.ciphertext));
  } else {
    std::printf("not here: %" PRIu64 " keys tried\n", search.tried());
  }
  if (std::fflush(stdout) != 0) throw std::runtime_error("cannot print the result");
  if (match) write_found(options.found, to_hex(key_bytes(*match, options.range.length)));
  search.finish();
}

}  // namespace
}  // namespace sublet::code_breaking

int main(int argc, char** argv) {
  using namespace sublet::code_breaking;
  Options options;
  try {
    options = parse_options(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "code-breaking: %s\n%s", error.what(), kUsage);
    return 2;
  }
  if (options.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    if (options.self_test) return self_test(options.packet) ? 0 : 1;
    run(options);
  } catch (const sublet::CheckpointRefused&) {
    return 1;  // start() has printed the reason
  } catch (const std::exception& error) {
    std::fprintf(stderr, "code-breaking: %s\n", error.what());
    return 1;
  }
  return 0;
}

#include "client/machine/gpus.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace sublet::client {
namespace {

// The numbers N of the files PREFIXN in the folder, ascending.
std::vector<uint32_t> numbered(const std::string& folder, std::string_view prefix) {
  std::vector<uint32_t> numbers;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    uint32_t number = 0;
    const char* const last = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), last, number);
    if (error == std::errc() && rest == last) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace

std::vector<std::string> find_gpus(const std::string& root) {
  std::vector<std::string> gpus;
  for (const uint32_t number : numbered(root + "/dev", "nvidia"))
    gpus.push_back(std::to_string(number));
  if (!gpus.empty()) return gpus;
  const size_t nodes = numbered(root + "/dev/dri", "renderD").size();
  for (size_t i = 0; i < nodes; ++i) gpus.push_back(std::to_string(i));
  return gpus;
}

}  // namespace sublet::client

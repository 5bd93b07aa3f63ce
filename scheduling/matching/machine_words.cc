#include "scheduling/matching/machine_words.h"

#include <array>

#include "scheduling/matching/suitability.h"

namespace sublet::scheduling {

const rules::Vocabulary& machine_vocabulary() {
  using rules::Type;
  // In the order of the values in `holds`.
  static const rules::Vocabulary vocabulary({
      {"os", Type::kText, "operating system, as `uname -s`, lower case"},
      {"architecture", Type::kText, "as `uname -m`"},
      {"cores", Type::kNumber, "that it offers"},
      {"memory_mb", Type::kNumber, "that it has, MiB"},
      {"slots", Type::kNumber, "jobs that it takes at the same time"},
  });
  return vocabulary;
}

rules::Rule parse_requirement(const std::string& text) {
  return rules::Rule::parse(text, machine_vocabulary());
}

bool holds(const rules::Rule& rule, const MachineKind& kind) {
  using rules::Value;
  const std::array<Value, 5> values = {
      Value::of(std::string_view(kind.os)),        Value::of(std::string_view(kind.architecture)),
      Value::of(static_cast<int64_t>(kind.cores)), Value::of(static_cast<int64_t>(kind.memory_mb)),
      Value::of(static_cast<int64_t>(kind.slots)),
  };
  return rule.evaluate(values) == rules::Truth::kTrue;
}

}  // namespace sublet::scheduling

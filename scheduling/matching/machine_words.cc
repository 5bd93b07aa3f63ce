#include "scheduling/matching/machine_words.h"

#include <array>

#include "scheduling/matching/suitability.h"

namespace sublet::scheduling {

const rules::Vocabulary& machine_vocabulary() {
  using rules::Type;
  // In the order of values_of.
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

rules::Formula parse_preference(const std::string& text) {
  return rules::Formula::parse(text, machine_vocabulary());
}

namespace {
std::array<rules::Value, 5> values_of(const MachineKind& kind) {
  using rules::Value;
  return {
      Value::of(std::string_view(kind.os)),        Value::of(std::string_view(kind.architecture)),
      Value::of(static_cast<int64_t>(kind.cores)), Value::of(static_cast<int64_t>(kind.memory_mb)),
      Value::of(static_cast<int64_t>(kind.slots)),
  };
}
}  // namespace

bool holds(const rules::Rule& rule, const MachineKind& kind) {
  return rule.evaluate(values_of(kind)) == rules::Truth::kTrue;
}

std::optional<double> value_for(const rules::Formula& formula, const MachineKind& kind) {
  return formula.evaluate(values_of(kind));
}

}  // namespace sublet::scheduling

// What an expression of a job may say of a machine: what it offers, not what is free at present.
#ifndef SUBLET_SCHEDULING_MATCHING_MACHINE_WORDS_H_
#define SUBLET_SCHEDULING_MATCHING_MACHINE_WORDS_H_

#include <optional>
#include <string>

#include "rules/rule.h"

namespace sublet::scheduling {

struct MachineKind;

const rules::Vocabulary& machine_vocabulary();

// The expression of Requirements::require. Throws RuleError.
rules::Rule parse_requirement(const std::string& text);
// The expression of Requirements::prefer. Throws RuleError.
rules::Formula parse_preference(const std::string& text);
// Whether it holds for machines of this kind: what is not known does not.
bool holds(const rules::Rule& rule, const MachineKind& kind);
// Its value for machines of this kind. std::nullopt: it is not known.
std::optional<double> value_for(const rules::Formula& formula, const MachineKind& kind);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_MACHINE_WORDS_H_

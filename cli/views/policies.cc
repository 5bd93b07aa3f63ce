#include "cli/views/policies.h"

#include "base/text.h"
#include "cli/views/output.h"

namespace sublet::cli {

std::string policy_line(const Policies& policies, int64_t now, size_t width) {
  std::string line = "policy ";
  for (const auto& [name, value] : policies.parameters)
    if (name == "jobs") line += value;
  line += policies.by.empty() ? ", by the settings" : ", set by " + policies.by;
  if (policies.since_us != 0)
    line += (policies.by.empty() ? " for " : " ") + age(policies.since_us, now) +
            (policies.by.empty() ? "" : " ago");
  line = escape_for_terminal(line);
  return width != 0 && display_width(line) > width ? fit(line, width) : line;
}

std::string policies_table(const Policies& policies, size_t width, bool colour) {
  std::vector<Row> rows;
  for (const auto& [name, value] : policies.parameters) rows.push_back({{name, value}});
  return list_table({{"PARAMETER", false, 9, 9}, {"VALUE", false, 8, 8}}, rows, width, colour);
}

void write_json(JsonWriter& json, const Policies& policies) {
  json.begin_object().key("parameters").begin_object();
  for (const auto& [name, value] : policies.parameters) json.field(name, value);
  json.end_object().field("since_us", policies.since_us).field("by", policies.by).end_object();
}

}  // namespace sublet::cli

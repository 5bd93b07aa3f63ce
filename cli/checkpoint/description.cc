#include "cli/checkpoint/description.h"

#include "base/text.h"
#include "cli/checkpoint/values.h"
#include "cli/views/output.h"

namespace sublet::cli {

namespace {

constexpr size_t kValuesInTable = 3;
constexpr size_t kValuesInJson = 8;
constexpr size_t kPrintAtOnce = size_t{1} << 16;

std::string values_cell(const CheckpointFile& file, const CheckpointSection& section) {
  if (section.count == 0) return "";
  if (section.type == SUBLET_STREAM) return stream_beginning(file, section);
  std::string cell;
  for (const std::string& value : first_values(file, section, kValuesInTable))
    cell += (cell.empty() ? "" : " ") + value;
  return cell + (section.count > kValuesInTable ? " …" : "");
}

Row row_of(const CheckpointFile& file, const CheckpointSection& section) {
  Row row = {{section.name, checkpoint_type_name(section.type), std::to_string(section.count),
              std::to_string(section.bytes), values_cell(file, section), "", "", "", ""}};
  const Spread spread = spread_of(file, section);
  if (spread.not_numbers != 0) row.cells[8] = std::to_string(spread.not_numbers);
  if (section.count == 1 || !spread.least) return row;  // one value says it all
  row.cells[5] = *spread.least;
  row.cells[6] = *spread.most;
  row.cells[7] = *spread.mean;
  return row;
}

void write_section(JsonWriter& json, const CheckpointFile& file, const CheckpointSection& section,
                   size_t values) {
  const Spread spread = spread_of(file, section);
  json.begin_object().field("name", section.name);
  json.field("type", checkpoint_type_name(section.type)).field("count", section.count);
  json.field("bytes", section.bytes).field("offset", section.offset);
  if (spread.least)
    json.field("least", *spread.least).field("most", *spread.most).field("mean", *spread.mean);
  json.field("nans", spread.not_numbers).key("values").begin_array();
  for (const std::string& value : first_values(file, section, values)) json.value(value);
  json.end_array().end_object();
}

// Collects text and prints it in large parts.
class Printer {
 public:
  Printer& operator<<(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPrintAtOnce) flush();
    return *this;
  }
  void flush() {
    print(text_);
    text_.clear();
  }

 private:
  std::string text_;
};

}  // namespace

std::string checkpoint_text(const CheckpointFile& file, size_t width, bool colour) {
  const sublet_header& h = file.header();
  std::string progress = percent(h.progress_ppm);
  std::string text = format_table(
      {{"program", escape_for_terminal(h.program)},
       {"layout", std::to_string(h.layout)},
       {"generation", std::to_string(h.generation)},
       {"saved", format_instant_ms(h.saved_utc_us)},
       {"progress", progress.empty() ? "not known" : progress},
       {"format", "version " + std::to_string(h.version)},
       {"size", std::to_string(file.bytes()) + " bytes, " + counted(h.sections, "section")}},
      {false, false}, width);
  std::vector<Row> rows;
  for (const CheckpointSection& section : file.sections()) rows.push_back(row_of(file, section));
  if (rows.empty()) return text;
  return text + "\n" +
         list_table({{"SECTION", false, 8, 9},
                     {"TYPE", false, 4, 8},
                     {"COUNT", true, 4, 7},
                     {"BYTES", true, 4, 1},
                     {"VALUES", false, 8, 6},
                     {"LEAST", true, 4, 4},
                     {"MOST", true, 4, 4},
                     {"MEAN", true, 4, 3},
                     {"NAN", true, 3, 5}},
                    rows, width, colour);
}

void write_json(JsonWriter& json, const CheckpointFile& file) {
  const sublet_header& h = file.header();
  json.begin_object().field("file", file.path()).field("program", std::string(h.program));
  json.field("layout", h.layout).field("generation", h.generation);
  json.field("saved_us", h.saved_utc_us).field("progress_ppm", h.progress_ppm);
  json.field("format_version", h.version).field("bytes", file.bytes());
  json.key("sections").begin_array();
  for (const CheckpointSection& section : file.sections())
    write_section(json, file, section, kValuesInJson);
  json.end_array().end_object();
}

void print_values(const CheckpointFile& file, const CheckpointSection& section, bool json) {
  Printer out;
  if (!json) {
    for_each_value(file, section, [&](auto value) { out << value_text(value) << "\n"; });
    out.flush();
    return;
  }
  // The values may be more than fit in memory: they are put into the array while it is printed.
  constexpr std::string_view kEnd = "]}";
  JsonWriter head;
  write_section(head, file, section, 0);
  out << std::string_view(head.str()).substr(0, head.str().size() - kEnd.size());
  bool first = true;
  for_each_value(file, section, [&](auto value) {
    out << (first ? "\"" : ",\"") << value_text(value) << "\"";
    first = false;
  });
  out << kEnd << "\n";
  out.flush();
}

}  // namespace sublet::cli

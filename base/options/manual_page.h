// Manual pages: a program's command line and its settings as roff for man(1).
// Pure functions.
//
// In all texts `words in backquotes` are set in bold.
#ifndef SUBLET_BASE_OPTIONS_MANUAL_PAGE_H_
#define SUBLET_BASE_OPTIONS_MANUAL_PAGE_H_

#include <string>
#include <vector>

#include "base/options/argument_table.h"
#include "base/options/settings.h"

namespace sublet {

struct ManualItem {
  std::string term;  // "": a paragraph
  std::string text;
};
struct ManualSection {
  std::string title;  // "FILES"
  std::vector<ManualItem> items;
};
// Contents of a page in addition to the command line.
struct Manual {
  int section = 1;  // of the manual: 1 commands, 8 daemons
  std::vector<ManualSection> more;
};

// NAME, SYNOPSIS, DESCRIPTION, OPTIONS, COMMANDS and the additional sections.
std::string manual_page(const ArgumentTable& program, const std::string& version,
                        const Manual& manual);

// A section SETTINGS: `intro`, then every setting with its allowed values and its
// default.
ManualSection settings_section(const std::string& intro, const Settings& settings);

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_MANUAL_PAGE_H_

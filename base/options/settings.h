// A daemon's settings: it declares them with defaults, which the TOML file and KEY=VALUE
// arguments of the command line override. A key that is not declared, or a value of
// another type or out of range, is an error that gives its place and what is allowed.
// Read once at start, then constant and thread-safe.
#ifndef SUBLET_BASE_OPTIONS_SETTINGS_H_
#define SUBLET_BASE_OPTIONS_SETTINGS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/options/toml_document.h"

namespace sublet {

enum class SettingType {
  boolean,   // true, false
  integer,   // 7
  real,      // 0.5
  text,      // "abc"
  texts,     // ["a", "b"]; as default or override: a,b
  duration,  // "30 s", "2 min", 30 (seconds); range and value in ms
  size,      // "64 MiB", 4096; range and value in bytes
  reals,     // a table with arbitrary keys: [shares] anna = 2; no default
  sizes,     // the same of sizes, in bytes: [quotas] anna = "10 GiB"
};

struct SettingSpec {
  std::string key = {};  // "log.level": table "log", key "level"
  SettingType type = SettingType::text;
  std::string default_value = {};                         // in the form of an override
  double min = -std::numeric_limits<double>::infinity();  // of numbers, of each of reals, sizes;
  double max = std::numeric_limits<double>::infinity();   // of texts: their number
  std::string doc = {};                                   // one line
  std::vector<std::string> choices = {};                  // of a text; empty: any
};

// what() states the file, line and column or the override, and what is allowed.
class SettingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Settings {
 public:
  // All defaults. A default that violates its own spec: std::logic_error.
  explicit Settings(std::vector<SettingSpec> specs);

  // Each throws SettingError, also for a file that is missing, forbidden or not valid TOML.
  // Later loads override earlier ones. load_file also throws FileError, for errors that may
  // be gone at the next try.
  void load_file(const std::string& path);
  void load_text(const std::string& toml, const std::string& file);
  // "key.path=value"; for reals and sizes "shares.anna=2". Texts are used verbatim, without quotes.
  void override_with(const std::string& assignment);

  // Each throws std::logic_error for a key that was not declared with that type.
  bool boolean(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;
  const std::string& text(const std::string& key) const;
  const std::vector<std::string>& texts(const std::string& key) const;
  int64_t duration_ms(const std::string& key) const;
  uint64_t size_bytes(const std::string& key) const;
  const std::map<std::string, double>& reals(const std::string& key) const;
  const std::map<std::string, double>& sizes(const std::string& key) const;  // bytes
  // False while it has its default.
  bool is_set(const std::string& key) const;
  // To be thrown by a daemon if the combination of these settings is unusable: states the
  // place in the file of the first of them that was set in a file.
  SettingError wrong(const std::vector<std::string>& keys, const std::string& problem) const;

  // All settings, in the order of declaration.
  struct Description {
    std::string key, doc;
    std::string takes;          // "a whole number from 1 to 64"
    std::string default_value;  // as in TOML; "" for a table with arbitrary keys
  };
  std::vector<Description> descriptions() const;
  // The values in effect as a commented TOML file that load_file accepts.
  void print(std::ostream& out) const;

 private:
  struct Entry {
    SettingSpec spec;
    bool set = false;
    std::string place;  // "FILE:LINE:COLUMN: "; empty: not from a file
    bool boolean = false;
    int64_t integer = 0;  // also ms and bytes
    double real = 0;
    std::string text;  // also a duration or size as it was written
    std::vector<std::string> texts;
    std::map<std::string, double> reals;  // or sizes
  };

  const Entry& get(const std::string& key, SettingType type) const;
  std::string unknown(const std::string& key) const;
  void apply_table(const TomlValue& table, const std::string& prefix, const std::string& file);
  static void apply_named(Entry& entry, const TomlMember& table, const std::string& file);
  static Entry from_toml(const Entry& old, const TomlValue& value);
  static void set_from_text(Entry& entry, const std::string& text);
  static void check(const Entry& entry);
  static std::string to_toml(const Entry& entry);
  static void print_named(const Entry& entry, std::ostream& out);

  std::map<std::string, Entry> entries_;
  std::vector<std::string> order_;
};

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_SETTINGS_H_

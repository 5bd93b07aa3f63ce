#include "loadmon/facts/facts.h"

#include <ctime>

namespace sublet::loadmon {
namespace {

using rules::Type;
using rules::Value;

constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::span<const std::string_view> kWorkdays(kDays.data() + 1, 5);

Value of(const std::optional<double>& number) { return number ? Value::of(*number) : Value(); }

}  // namespace

const rules::Vocabulary& facts_vocabulary() {
  static const rules::Vocabulary words({
      {"cpu", Type::kNumber, "cores in use, without what jobs use"},
      {"load", Type::kNumber, "load average over a minute, without the jobs' part"},
      {"input_idle", Type::kNumber, "seconds since the last key, pointer or touch"},
      {"media", Type::kBoolean,
       "sound, an open camera, or a program that keeps the screen on or fills it"},
      {"hour", Type::kNumber, "0 to 23, local time"},
      {"minute", Type::kNumber, "0 to 59"},
      {"day", Type::kText, "'mon' to 'sun'"},
      {"workdays", Type::kTexts, "'mon' to 'fri'"},
      {"users", Type::kTexts, "who is logged in, also over ssh"},
      {"programs", Type::kTexts, "names of running programs that are no job's; 15 letters at most"},
      {"memory_available", Type::kNumber, "MiB that programs can still have"},
      {"memory_pressure", Type::kNumber,
       "per cent of the last 10 s in which some waited for memory"},
      {"disk_pressure", Type::kNumber, "the same for disks"},
      {"disk_busy", Type::kNumber, "part of the time in which the busiest disk worked, 0 to 1"},
      {"disk_free", Type::kNumber, "MiB free in the state folder's file system"},
      {"network", Type::kNumber, "MiB a second, both directions"},
      {"on_battery", Type::kBoolean, "no mains"},
      {"battery", Type::kNumber, "per cent"},
      {"temperature", Type::kNumber, "degrees Celsius of the warmest part"},
  });
  return words;
}

bool is_of_machine(Fact fact) { return fact >= Fact::kUsers; }

void Facts::set_time(int64_t utc_us) {
  const time_t seconds = utc_us / 1'000'000;
  tm local = {};
  if (localtime_r(&seconds, &local) == nullptr) return;
  value(Fact::kHour) = Value::of(int64_t{local.tm_hour});
  value(Fact::kMinute) = Value::of(int64_t{local.tm_min});
  value(Fact::kDay) = Value::of(kDays.at(static_cast<size_t>(local.tm_wday)));
  value(Fact::kWorkdays) = Value::of(kWorkdays);
}

void Facts::set_machine(const MachineState* state) {
  for (auto fact = static_cast<size_t>(Fact::kUsers); fact < values_.size(); ++fact)
    values_[fact] = Value();
  if (state == nullptr) return;
  machine_ = *state;
  users_.assign(machine_.users.begin(), machine_.users.end());
  programs_.assign(machine_.programs.begin(), machine_.programs.end());
  value(Fact::kUsers) = Value::of(std::span<const std::string_view>(users_));
  value(Fact::kPrograms) = Value::of(std::span<const std::string_view>(programs_));
  value(Fact::kMemoryAvailable) = of(machine_.memory_available);
  value(Fact::kMemoryPressure) = of(machine_.memory_pressure);
  value(Fact::kDiskPressure) = of(machine_.disk_pressure);
  value(Fact::kDiskBusy) = of(machine_.disk_busy);
  value(Fact::kDiskFree) = of(machine_.disk_free);
  value(Fact::kNetwork) = of(machine_.network);
  value(Fact::kOnBattery) = Value::of(machine_.on_battery);
  value(Fact::kBattery) = of(machine_.battery);
  value(Fact::kTemperature) = of(machine_.temperature);
}

void Facts::set_sample(const protocol::PresenceSample& sample) {
  value(Fact::kCpu) = sample.cpu < 0 ? Value() : Value::of(sample.cpu);
  value(Fact::kLoad) = sample.load[0] < 0 ? Value() : Value::of(sample.load[0]);
  // Without a terminal or a device there never was any.
  const int64_t idle_ms =
      sample.input_age_ms < 0 ? sample.instant / 1'000'000 : sample.input_age_ms;
  value(Fact::kInputIdle) = Value::of(static_cast<double>(idle_ms) / 1000);
  value(Fact::kMedia) = Value::of(sample.attends);
}

}  // namespace sublet::loadmon

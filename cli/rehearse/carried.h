// What goes from one attempt to the next: the newest whole generation of the checkpoint, and the
// files of a program that saves itself. Also the generation before, for a run that loses the
// newest. One thread.
#ifndef SUBLET_CLI_REHEARSE_CARRIED_H_
#define SUBLET_CLI_REHEARSE_CARRIED_H_

#include <cstdint>
#include <map>
#include <string>

#include "cli/rehearse/attempt.h"

namespace sublet::cli {

class Carried {
 public:
  // Puts it into the folder of the next attempt. Throws FileError.
  void put_into(const AttemptFolder& folder) const;
  // Takes what an attempt has left that ended by leaving. True: that is something new. The
  // attempt's folder must stay as it is.
  bool take_from(const AttemptFolder& folder, const AttemptEnded& ended);
  // False: there is none before, and nothing is carried from now on.
  bool lose_newest();

  uint64_t generation() const { return now_.generation; }  // 0: none
  bool is_something() const { return !now_.checkpoint.empty() || !now_.files.empty(); }
  uint64_t bytes() const;  // of all of it
  // The checkpoint's file; "": none.
  const std::string& checkpoint() const { return now_.checkpoint; }

 private:
  struct State {
    uint64_t generation = 0;
    std::string checkpoint;                    // a file
    std::map<std::string, std::string> files;  // names -> files
  };
  bool take_checkpoint(const AttemptFolder& folder);
  bool has_all(const AttemptEnded& ended) const;
  bool take_files(const AttemptEnded& ended);
  void replace_by(State next);

  State now_, before_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_CARRIED_H_

// What a run leaves for its user: the exit status, stdout and the outputs; and what differs between
// two runs. Reads files; one thread.
#ifndef SUBLET_CLI_REHEARSE_OUTCOME_H_
#define SUBLET_CLI_REHEARSE_OUTCOME_H_

#include <map>
#include <string>
#include <vector>

#include "job/description.h"

namespace sublet::cli {

struct Outcome {
  std::string end;                           // "exit status 0", "killed by signal 11", ...
  std::map<std::string, std::string> files;  // "stdout", names of outputs -> where they are
};

// The outputs of a run that ended in this folder: names -> paths. Links are not followed.
std::map<std::string, std::string> find_outputs(const std::string& folder,
                                                const std::vector<OutputFile>& outputs);
// The same of names and patterns.
std::map<std::string, std::string> find_files(const std::string& folder,
                                              const std::vector<std::string>& names);

// A sentence for each difference, none if they are the same byte by byte. Throws FileError.
std::vector<std::string> differences(const Outcome& undisturbed, const Outcome& interrupted);

// The same by the user's own command, which gets two folders with stdout and the outputs, made in
// `folder`, and ends with 0 if they agree. Only the exit status is compared here.
std::vector<std::string> differences_by(const std::string& command, const Outcome& undisturbed,
                                        const Outcome& interrupted, const std::string& folder);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_OUTCOME_H_

// What sublet(1) says besides the command line.
#include "cli/commands/commands.h"

namespace sublet::cli {

Manual command_manual() {
  return {
      1,
      {{"JOBS",
        {{"",
          "Ids of jobs are written `17`, `17-20` or `17,19`; several words may follow one "
          "another."},
         {"",
          "Sizes are written as `2 GiB`, `500 MB` or a number of bytes, times as `1 h 30 min`, "
          "`90 s` or a number of seconds."}}},
       {"ENVIRONMENT",
        {{"`SUBLET_SERVER`", "The server, where `--server` is not given."},
         {"`NO_COLOR`", "If set, nothing is coloured."},
         {"`COLUMNS`", "The width of tables, in place of the terminal's."}}},
       {"FILES",
        {{"`~/.config/sublet/config.toml`",
          "`server = \"...\"`: the server, where neither `--server` nor `SUBLET_SERVER` says."},
         {"`~/.config/sublet/pools/`", "Memberships of pools elsewhere, from `sublet join`."},
         {"`~/.local/state/sublet/`", "How far `sublet return` has come."},
         {"`/run/sublet/server.sock`", "The server, where nothing else is said."}}},
       {"EXIT STATUS",
        {{"`0`", "Done."},
         {"`1`", "Waited for, or followed by `logs`, and at least one job failed or was removed."},
         {"`2`", "The command line is wrong."},
         {"`3`", "Something given is wrong: a batch file, an input, a name."},
         {"`4`", "There is no such job or batch, or it is kept no longer."},
         {"`5`", "Not permitted."},
         {"`6`", "Not in its present state."},
         {"`7`", "Too much, too large, or a disk is full."},
         {"`8`", "The server does not answer."},
         {"`124`", "`wait --timeout` ended first."},
         {"`129`, `130`, `143`", "Interrupted: SIGHUP, SIGINT, SIGTERM."},
         {"`141`", "Whoever read the output has gone."}}},
       {"EXAMPLES",
        {{"`sublet submit --wait -- sh -c 'echo hello from $(hostname)'`",
          "Runs one program somewhere and prints what it writes."},
         {"`seq 100 | sublet submit --each -- ./prog {}`", "A job for each line."},
         {"`sublet submit letters.toml`", "The jobs of a batch file."},
         {"`sublet rm --mine --state waiting`", "Takes back all that has not begun."}}},
       {"SEE ALSO",
        {{"",
          "`sublet-batch`(5), `sublet-checkpoint`(7), `sublet_checkpoint`(3), `sublet-server`(8), "
          "`sublet-client`(8), `sublet-loadmon`(8)"}}}}};
}

}  // namespace sublet::cli

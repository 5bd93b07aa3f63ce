// The text of sublet(1) besides the options.
#include "cli/commands/commands.h"

namespace sublet::cli {

Manual command_manual() {
  return {
      1,
      {{"JOBS",
        {{"", "Job ids are written `17`, `17-20` or `17,19`; several may be given."},
         {"",
          "Sizes are written as `2 GiB`, `500 MiB` or a number of bytes, times as `1 h 30 min`, "
          "`90 s` or a number of seconds."}}},
       {"ENVIRONMENT",
        {{"`SUBLET_SERVER`", "The server, if `--server` is not given."},
         {"`SUBLET_CHECKPOINT_DIR`",
          "The folder in which `checkpoint save` and `load` find their files; set in a job."},
         {"`NO_COLOR`", "If set, no colours are used."},
         {"`COLUMNS`", "The width of tables, instead of the terminal's."}}},
       {"FILES",
        {{"`~/.config/sublet/config.toml`",
          "`server = \"...\"`: the server, if neither `--server` nor `SUBLET_SERVER` is given."},
         {"`~/.config/sublet/pools/`", "Memberships of remote pools, from `sublet join`."},
         {"`~/.local/state/sublet/`", "What `sublet fetch --follow` has fetched."},
         {"`/run/sublet/server.sock`", "The default server."}}},
       {"EXIT STATUS",
        {{"`0`", "Success."},
         {"`1`",
          "Waited for, or followed by `logs`, and at least one job failed or was removed. Of "
          "`checkpoint verify`: not every file is whole; of `checkpoint diff`: they differ; of "
          "`checkpoint load`: there is no checkpoint; of `rehearse`: it did not pass."},
         {"`2`", "The command line is wrong. Of `checkpoint diff`: a file cannot be read."},
         {"`3`", "Something given is wrong: a batch file, an input, a name, a damaged checkpoint."},
         {"`4`", "There is no such job or batch, or it is no longer kept."},
         {"`5`", "Not permitted."},
         {"`6`", "Not possible in its present state."},
         {"`7`", "Too many, too large, or a disk is full."},
         {"`8`", "The server does not answer."},
         {"`124`", "`wait --timeout` expired."},
         {"`129`, `130`, `143`", "Interrupted: SIGHUP, SIGINT, SIGTERM."},
         {"`141`", "The reader of the output has gone."}}},
       {"EXAMPLES",
        {{"`sublet submit --wait -- sh -c 'echo hello from $(hostname)'`",
          "Run one program on some machine and print what it writes."},
         {"`seq 100 | sublet submit --each -- ./prog {}`", "Submit a job for each line."},
         {"`sublet submit letters.toml`", "Submit the jobs of a batch file."},
         {"`sublet rm --mine --state waiting`", "Remove all jobs that have not started."}}},
       {"SEE ALSO",
        {{"",
          "`sublet-batch`(5), `sublet-checkpoint`(7), `sublet_checkpoint`(3), `sublet-server`(8), "
          "`sublet-client`(8), `sublet-loadmon`(8)"}}}}};
}

}  // namespace sublet::cli

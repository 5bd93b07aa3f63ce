// Compares the spool folder with the contents that the database describes.
//
// Threads: any; a server may be using the folder.
#ifndef SUBLET_SERVER_SPOOL_SPOOL_CHECK_H_
#define SUBLET_SERVER_SPOOL_SPOOL_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "server/commit/changes.h"

namespace sublet::server {

struct SpoolFindings {
  std::vector<std::string> damage;  // a sentence for each content that is missing or altered
  std::vector<std::string> unused;  // paths of files that no content refers to
};

// `contents` reads the rows of the database; it is called again if something is found, because a
// running server may have removed the content meanwhile. `bytes`: also reads all files and
// compares their digests, which takes as long as reading the spool from disk. Throws FileError,
// and what `contents` throws.
SpoolFindings check_spool(Files& files, const std::string& spool,
                          const std::function<std::vector<ContentRow>()>& contents, bool bytes);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_SPOOL_CHECK_H_

// The account that this process acts for.
#ifndef SUBLET_BASE_ACCOUNT_H_
#define SUBLET_BASE_ACCOUNT_H_

#include <string>

namespace sublet {

// For root at work in a folder that belongs to another account: gives up root's rights for
// those of the folder's owner, for good, so that links planted there lead nowhere that the
// owner could not go alone. Changes nothing for other accounts, and in folders that are root's or
// do not exist. Call it while the process has one thread. Throws OsError.
void become_owner_of(const std::string& folder);

}  // namespace sublet

#endif  // SUBLET_BASE_ACCOUNT_H_

// Which folders of the machine a job does not see (client/shepherd/walls/places.h), if each slot
// has an account of its own. Main thread.
#ifndef SUBLET_CLIENT_MACHINE_HIDDEN_FOLDERS_H_
#define SUBLET_CLIENT_MACHINE_HIDDEN_FOLDERS_H_

#include <string>
#include <vector>

namespace sublet::client {

// /home, /root, /run/user, /run/dbus, the state folders of this client (with what other slots
// have) and of a server, and the home folders of people (user ids 1000 to 59999) in `passwd`, a
// file in the format of /etc/passwd. Their real paths, none in another. Not: a home that is a
// system folder. At most SUBLET_MAX_PLACES; *left_out is the number of those beyond.
std::vector<std::string> folders_to_hide(const std::string& state_folder, const std::string& passwd,
                                         size_t* left_out);

// The places of the setting `grants`, which jobs do see; absolute paths. Throws SettingError for
// one that does not exist, or leads through a symbolic link.
void check_grants(const std::vector<std::string>& grants);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_HIDDEN_FOLDERS_H_

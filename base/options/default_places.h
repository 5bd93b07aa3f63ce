// Where server, workstation and command of one machine find each other unless
// they are told otherwise.
#ifndef SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_
#define SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_

namespace sublet {

inline constexpr char kMachinesServer[] = "/run/sublet/server.sock";  // root's, or a service's

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_

// Default paths by which server, client and command of one machine find each other.
#ifndef SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_
#define SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_

namespace sublet {

inline constexpr char kMachinesServer[] = "/run/sublet/server.sock";  // run by root or a service

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_

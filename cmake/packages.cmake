# The libraries used (docs/architecture.md), all Debian 12 packages, each as one
# imported target. Their headers are system headers: no warnings.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS log log_setup thread filesystem)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

pkg_check_modules(OMNIORB REQUIRED IMPORTED_TARGET omniORB4 omniConnectionMgmt4)
pkg_check_modules(ACE REQUIRED IMPORTED_TARGET ACE)
pkg_check_modules(CPPUNIT REQUIRED IMPORTED_TARGET cppunit)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(XCB REQUIRED IMPORTED_TARGET xcb xcb-sync)
pkg_check_modules(XCB_XTEST REQUIRED IMPORTED_TARGET xcb xcb-xtest) # for tests
pkg_check_modules(WAYLAND REQUIRED IMPORTED_TARGET wayland-client)
pkg_check_modules(WAYLAND_SERVER REQUIRED IMPORTED_TARGET wayland-server) # for tests
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp) # while building
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
find_program(OMNIIDL omniidl REQUIRED)

# Only for the checkpoint API's module and its example.
include(CheckLanguage)
check_language(Fortran)
if(CMAKE_Fortran_COMPILER)
  enable_language(Fortran)
endif()

# omniORB's internal headers, which the guarded transport subclasses.
find_path(OMNIORB_INTERNAL_DIR SocketCollection.h PATH_SUFFIXES omniORB4/internal REQUIRED)

# SOCI and RapidCheck ship no pkg-config file in Debian 12.
find_path(SOCI_DIR soci.h PATH_SUFFIXES soci REQUIRED)
find_library(SOCI_CORE soci_core REQUIRED)
find_library(SOCI_SQLITE3 soci_sqlite3 REQUIRED)
add_library(sublet_soci INTERFACE)
target_include_directories(sublet_soci SYSTEM INTERFACE ${SOCI_DIR})
target_link_libraries(sublet_soci INTERFACE ${SOCI_CORE} ${SOCI_SQLITE3} PkgConfig::SQLITE)

find_path(RAPIDCHECK_DIR rapidcheck.h REQUIRED)
find_library(RAPIDCHECK rapidcheck REQUIRED)
add_library(sublet_rapidcheck INTERFACE)
target_include_directories(sublet_rapidcheck SYSTEM INTERFACE ${RAPIDCHECK_DIR})
target_link_libraries(sublet_rapidcheck INTERFACE ${RAPIDCHECK})

# sublet_wayland_protocol(NAME FOLDER FILE): headers and code of a Wayland protocol, from its
# description in a Debian package: NAME-client-protocol.h, NAME-server-protocol.h.
find_program(WAYLAND_SCANNER wayland-scanner REQUIRED)
set(WAYLAND_GENERATED ${CMAKE_BINARY_DIR}/wayland)
file(MAKE_DIRECTORY ${WAYLAND_GENERATED})
function(sublet_wayland_protocol name folder file)
  find_file(WAYLAND_${name}_XML ${file} PATHS /usr/share /usr/local/share
            PATH_SUFFIXES ${folder} REQUIRED)
  set(xml ${WAYLAND_${name}_XML})
  set(out ${WAYLAND_GENERATED}/${name})
  foreach(kind client-header server-header private-code)
    string(REPLACE "-header" "-protocol.h" suffix ${kind})
    string(REPLACE "private-code" "protocol.c" suffix ${suffix})
    add_custom_command(OUTPUT ${out}-${suffix}
      COMMAND ${WAYLAND_SCANNER} ${kind} ${xml} ${out}-${suffix} DEPENDS ${xml} VERBATIM)
    list(APPEND made ${out}-${suffix})
  endforeach()
  set(WAYLAND_MADE ${WAYLAND_MADE} ${made} PARENT_SCOPE)
endfunction()
sublet_wayland_protocol(ext-idle-notify-v1 wayland-protocols/staging/ext-idle-notify
                        ext-idle-notify-v1.xml)
sublet_wayland_protocol(xdg-shell wayland-protocols/stable/xdg-shell xdg-shell.xml) # for tests
sublet_wayland_protocol(kde-idle plasma-wayland-protocols idle.xml)
sublet_wayland_protocol(kde-fake-input plasma-wayland-protocols fake-input.xml) # for tests
add_library(sublet_wayland_protocols STATIC ${WAYLAND_MADE})
target_include_directories(sublet_wayland_protocols SYSTEM PUBLIC ${WAYLAND_GENERATED})
target_link_libraries(sublet_wayland_protocols PUBLIC PkgConfig::WAYLAND)

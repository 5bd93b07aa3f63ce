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
find_program(OMNIIDL omniidl REQUIRED)

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

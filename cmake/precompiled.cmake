# Headers of others that most files read, read once: a third of the time to compile. Every
# file still includes what it uses: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows who forgot.
set(SUBLET_STANDARD_HEADERS <algorithm> <atomic> <chrono> <functional> <map> <memory> <mutex>
    <optional> <set> <sstream> <stdexcept> <string> <thread> <vector>)
# Tests' own code is half of what a check compiles, and needs no speed.
set(SUBLET_TEST_OPTIONS -O0)
if(SUBLET_SANITIZE STREQUAL "address")
  list(APPEND SUBLET_TEST_OPTIONS -fno-sanitize=undefined)
endif()

# Headers can be shared among targets of equal options only.
function(sublet_precompiled name)
  cmake_parse_arguments(A "" "" "HEADERS;LINKS;OPTIONS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE sublet_options ${A_LINKS})
  target_compile_options(${name} PRIVATE ${A_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${A_HEADERS})
endfunction()
sublet_precompiled(sublet_precompiled_tests
  HEADERS ${SUBLET_STANDARD_HEADERS} <cppunit/extensions/HelperMacros.h> <rapidcheck.h>
  LINKS PkgConfig::CPPUNIT sublet_rapidcheck OPTIONS ${SUBLET_TEST_OPTIONS})

# Not where the optimizer sees them: its false alarms in headers of the system are held back,
# in precompiled ones they are not (g++ 12).
if(SUBLET_SANITIZE)
  sublet_precompiled(sublet_precompiled_libraries HEADERS ${SUBLET_STANDARD_HEADERS})
endif()

# C knows no such headers; CMake wants targets of both languages to do without.
function(sublet_use_precompiled name headers)
  get_target_property(sources ${name} SOURCES)
  if(TARGET ${headers} AND NOT sources MATCHES "\\.c(;|$)")
    target_precompile_headers(${name} REUSE_FROM ${headers})
  endif()
endfunction()

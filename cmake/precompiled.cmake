# Precompiled third-party headers that most files include; this saves a third of the compile
# time. Every file still includes what it uses: check with
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON.
set(SUBLET_STANDARD_HEADERS <algorithm> <atomic> <chrono> <functional> <map> <memory> <mutex>
    <optional> <set> <sstream> <stdexcept> <string> <thread> <vector>)
# Test code is half of what a check compiles, and need not be fast.
set(SUBLET_TEST_OPTIONS -O0)
if(SUBLET_SANITIZE STREQUAL "address")
  list(APPEND SUBLET_TEST_OPTIONS -fno-sanitize=undefined)
endif()

# Precompiled headers can only be shared among targets with the same options.
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

# Not with optimization: g++ 12 suppresses the optimizer's false alarms in system headers, but
# not in precompiled ones.
if(SUBLET_SANITIZE)
  sublet_precompiled(sublet_precompiled_libraries HEADERS ${SUBLET_STANDARD_HEADERS})
endif()

# These headers are C++ only, and CMake would also use them for a target's C sources.
function(sublet_use_precompiled name headers)
  get_target_property(sources ${name} SOURCES)
  if(TARGET ${headers} AND NOT sources MATCHES "\\.c(;|$)")
    target_precompile_headers(${name} REUSE_FROM ${headers})
  endif()
endfunction()

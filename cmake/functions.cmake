# sublet_library(NAME SOURCES... LINKS...)     a static library of ours
# sublet_program(NAME SOURCES... LINKS...)     a program, into build/bin
# sublet_unit_test(NAME SOURCES... LINKS...)   CppUnit tests, one CTest test;
#                                              RapidCheck may be used inside
# Sources are relative to the calling folder; LINKS are targets.
function(sublet_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC sublet_options ${A_LINKS} PRIVATE ${A_PRIVATE_LINKS})
endfunction()

function(sublet_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE sublet_options ${A_LINKS})
endfunction()

function(sublet_unit_test name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${A_SOURCES} ${CMAKE_SOURCE_DIR}/test/unit_main.cc)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
  target_link_libraries(${name} PRIVATE sublet_options PkgConfig::CPPUNIT sublet_rapidcheck ${A_LINKS})
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES TIMEOUT 300 LABELS unit)
endfunction()

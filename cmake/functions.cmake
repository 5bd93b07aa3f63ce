# sublet_library(NAME SOURCES... LINKS...)     a static library of ours
# sublet_program(NAME SOURCES... LINKS...)     a program, into build/bin
# sublet_unit_test(NAME SOURCES... LINKS...)   CppUnit tests, one CTest test;
#                                              RapidCheck may be used inside
#                                              TSAN: also in ./check tsan
# sublet_daemon_test(NAME SCRIPT [args])       whole daemons, a Python script
# sublet_python_test(NAME MODULE [NUMPY])      unittest of a Python module, relative to the
#                                              calling folder; NUMPY: with an interpreter
#                                              that has NumPy, if there is one
# sublet_long_test(NAME [ENVIRONMENT...] COMMAND...)  in ./check long only
# Sources are relative to the calling folder; LINKS are targets.
function(sublet_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC sublet_options ${A_LINKS} PRIVATE ${A_PRIVATE_LINKS})
  sublet_use_precompiled(${name} sublet_precompiled_libraries)
endfunction()

add_custom_target(programs) # all of them, without tests
function(sublet_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE sublet_options ${A_LINKS})
  add_dependencies(programs ${name})
endfunction()

# ./check looks for reports there.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/sanitizer)
string(CONCAT SUBLET_TSAN_OPTIONS "suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp"
       ":halt_on_error=1:log_path=${CMAKE_BINARY_DIR}/sanitizer/report")

function(sublet_unit_test name)
  cmake_parse_arguments(A "TSAN" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${A_SOURCES} ${CMAKE_SOURCE_DIR}/test/unit_main.cc)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
  target_link_libraries(${name} PRIVATE sublet_options PkgConfig::CPPUNIT sublet_rapidcheck ${A_LINKS})
  target_compile_options(${name} PRIVATE ${SUBLET_TEST_OPTIONS})
  sublet_use_precompiled(${name} sublet_precompiled_tests)
  add_test(NAME unit.${name} COMMAND ${name})
  # Unit tests compute, whole daemons mostly wait: a unit test counts as two of those.
  set_tests_properties(unit.${name} PROPERTIES TIMEOUT 600 LABELS unit PROCESSORS 2
    ENVIRONMENT "TSAN_OPTIONS=${SUBLET_TSAN_OPTIONS}")
  # Properties are tried 100 times, but where that takes several times as long.
  if(SUBLET_SANITIZE)
    set_property(TEST unit.${name} APPEND PROPERTY ENVIRONMENT "RC_PARAMS=max_success=30")
  endif()
  if(A_TSAN)
    set_tests_properties(unit.${name} PROPERTIES LABELS "unit;tsan")
    if(NOT TARGET tsan_tests)
      add_custom_target(tsan_tests)
    endif()
    add_dependencies(tsan_tests ${name})
  endif()
endfunction()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(sublet_daemon_test name script)
  add_test(NAME daemon.${name} COMMAND ${Python3_EXECUTABLE} -B ${script} ${ARGN} -v
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/test)
  set_tests_properties(daemon.${name} PROPERTIES TIMEOUT 1500 LABELS daemon
    ENVIRONMENT "SUBLET_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endfunction()

# The python3 of the path may have no NumPy.
set(SUBLET_NUMPY_PYTHON ${Python3_EXECUTABLE})
foreach(interpreter ${Python3_EXECUTABLE} /usr/bin/python3)
  execute_process(COMMAND ${interpreter} -c "import numpy" RESULT_VARIABLE missing
                  OUTPUT_QUIET ERROR_QUIET)
  if(NOT missing)
    set(SUBLET_NUMPY_PYTHON ${interpreter})
    break()
  endif()
endforeach()
function(sublet_python_test name module)
  set(interpreter ${Python3_EXECUTABLE})
  if("NUMPY" IN_LIST ARGN)
    set(interpreter ${SUBLET_NUMPY_PYTHON})
  endif()
  add_test(NAME python.${name} COMMAND ${interpreter} -B -m unittest -v ${module}
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(python.${name} PROPERTIES TIMEOUT 600 LABELS unit ENVIRONMENT
    "SUBLET_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};PYTHONPATH=${CMAKE_SOURCE_DIR}/python")
endfunction()

function(sublet_long_test name)
  cmake_parse_arguments(A "" "" "ENVIRONMENT;COMMAND" ${ARGN})
  add_test(NAME long.${name} CONFIGURATIONS long COMMAND ${A_COMMAND}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/test)
  set_tests_properties(long.${name} PROPERTIES TIMEOUT 7200 LABELS long
    ENVIRONMENT "SUBLET_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};${A_ENVIRONMENT}")
endfunction()

# The ORB's start-up and the guard around it. Two files reach into internal classes
# of omniORB and need their headers.
sublet_library(sublet_orb
  SOURCES connection_guard.cc giop_filter.cc guard_state.cc guarded_transport.cc orb.cc orb_network.cc
          unopened_endpoint.cc
  LINKS sublet_base sublet_tls PkgConfig::OMNIORB
  PRIVATE_LINKS Threads::Threads)
set_property(SOURCE guarded_transport.cc orb.cc APPEND PROPERTY COMPILE_OPTIONS
  -isystem${OMNIORB_INTERNAL_DIR})

set(echo_stub ${CMAKE_CURRENT_BINARY_DIR}/echoSK.cc)
add_custom_command(
  OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/echo.hh ${echo_stub}
  COMMAND ${OMNIIDL} -bcxx -C${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/testing/echo.idl
  DEPENDS testing/echo.idl)
add_library(sublet_echo_idl STATIC ${echo_stub})
target_include_directories(sublet_echo_idl SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(sublet_echo_idl PUBLIC PkgConfig::OMNIORB)

sublet_unit_test(giop_filter_test
  SOURCES giop_filter_test.cc giop_filter.cc testing/giop_mutator.cc)
sublet_unit_test(guarded_transport_test
  SOURCES guarded_transport_test.cc testing/echo_world.cc LINKS sublet_orb sublet_echo_idl)
sublet_unit_test(guarded_hostile_test
  SOURCES guarded_hostile_test.cc testing/echo_world.cc testing/giop_mutator.cc
  LINKS sublet_orb sublet_echo_idl)
sublet_unit_test(guarded_tls_test
  SOURCES guarded_tls_test.cc testing/echo_world.cc testing/giop_mutator.cc
  LINKS sublet_orb sublet_echo_idl)

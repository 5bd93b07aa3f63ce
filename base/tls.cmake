sublet_library(sublet_tls
  SOURCES epoll_thread.cc loopback_door.cc membership.cc membership_file.cc tls_authority.cc tls_connect.cc tls_dial.cc
          tls_door.cc tls_joining.cc tls_relay.cc tls_session.cc
  LINKS sublet_base
  PRIVATE_LINKS OpenSSL::SSL OpenSSL::Crypto Threads::Threads)

sublet_unit_test(tls_test TSAN
  SOURCES loopback_door_test.cc tls_authority_test.cc tls_connect_test.cc tls_door_test.cc
  LINKS sublet_tls)

# Run by `cmake --install` for one component. Files that contain paths are written for
# /usr, with settings in /etc; with another prefix, which is known only now, the paths are
# changed to lie below it. Existing settings are kept.
set(settings /etc)
set(user_units ${CMAKE_INSTALL_PREFIX}/lib/systemd/user)
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(settings ${CMAKE_INSTALL_PREFIX}/etc)
  # systemd also looks there below ~/.local and /usr/local.
  set(user_units ${CMAKE_INSTALL_PREFIX}/share/systemd/user)
endif()

function(install_with_places file folder)
  get_filename_component(name ${file} NAME)
  file(READ ${SUBLET_SOURCE}/${file} text)
  string(REPLACE "/etc/sublet/" "${settings}/sublet/" text "${text}")
  string(REPLACE "/usr/" "${CMAKE_INSTALL_PREFIX}/" text "${text}")
  string(REPLACE "@VERSION@" "${SUBLET_VERSION}" text "${text}")
  string(REPLACE "@LIBDIR@" "${SUBLET_LIBDIR}" text "${text}")
  file(WRITE ${SUBLET_BINARY}/installed/${name} "${text}")
  file(INSTALL ${SUBLET_BINARY}/installed/${name} DESTINATION ${folder})
endfunction()

function(install_settings name)
  if(EXISTS $ENV{DESTDIR}${settings}/sublet/${name})
    message(STATUS "Kept: $ENV{DESTDIR}${settings}/sublet/${name}")
  else()
    install_with_places(etc/${name} ${settings}/sublet)
  endif()
endfunction()

if(SUBLET_COMPONENT STREQUAL "server")
  install_settings(server.toml)
  install_with_places(etc/systemd/sublet-server.service ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
  install_with_places(etc/tmpfiles.d/sublet-server.conf ${CMAKE_INSTALL_PREFIX}/lib/tmpfiles.d)
elseif(SUBLET_COMPONENT STREQUAL "client")
  install_settings(client.toml)
  install_settings(loadmon.toml)
  install_with_places(etc/systemd/sublet-client.service ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
  install_with_places(etc/systemd/user/sublet-client.service ${user_units})
elseif(SUBLET_COMPONENT STREQUAL "checkpoint")
  install_with_places(checkpoint-api/sublet-checkpoint.pc
                      ${CMAKE_INSTALL_PREFIX}/${SUBLET_LIBDIR}/pkgconfig)
endif()

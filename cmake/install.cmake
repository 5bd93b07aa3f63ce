# `cmake --install` and the Debian packages: installed files. A component is a package:
# server, client, command (sublet), checkpoint (libsublet-checkpoint-dev),
# checkpoint_library (libsublet-checkpoint0), python (python3-sublet).
include(GNUInstallDirs)
add_custom_target(installed) # builds what is installed, and nothing else

function(sublet_install_program component folder)
  foreach(target ${ARGN})
    if(TARGET ${target}) # SUBLET_ROOMS may exclude some
      install(TARGETS ${target} RUNTIME DESTINATION ${folder} COMPONENT ${component})
      add_dependencies(installed ${target})
    endif()
  endforeach()
endfunction()

# In the client's own folder, where it looks for them.
sublet_install_program(server ${CMAKE_INSTALL_SBINDIR} sublet-server)
sublet_install_program(client ${CMAKE_INSTALL_SBINDIR} sublet-client sublet-loadmon sublet-shepherd)
sublet_install_program(client ${CMAKE_INSTALL_BINDIR} sublet-agent)
sublet_install_program(command ${CMAKE_INSTALL_BINDIR} sublet)

if(TARGET manual)
  add_dependencies(installed manual)
endif()
if(TARGET sublet_checkpoint)
  add_dependencies(installed sublet_checkpoint sublet_checkpoint_shared)
  install(TARGETS sublet_checkpoint ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT checkpoint)
  install(TARGETS sublet_checkpoint_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT checkpoint_library NAMELINK_COMPONENT checkpoint)
  include(CMakePackageConfigHelpers)
  set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/SubletCheckpoint)
  set(config ${CMAKE_BINARY_DIR}/installed/SubletCheckpointConfig)
  configure_package_config_file(checkpoint-api/SubletCheckpointConfig.cmake.in ${config}.cmake
    INSTALL_DESTINATION ${config_folder}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
  write_basic_package_version_file(${config}Version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${config}.cmake ${config}Version.cmake DESTINATION ${config_folder}
          COMPONENT checkpoint)
  install(FILES checkpoint-api/sublet_checkpoint.h checkpoint-api/sublet_checkpoint.hpp
                checkpoint-api/sublet_status.h checkpoint-api/sublet_checkpoint.f90
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sublet COMPONENT checkpoint)
endif()

# Where Debian's Python looks for packages, of any version of Python 3.
install(DIRECTORY python/sublet DESTINATION lib/python3/dist-packages COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "*_test.py" EXCLUDE PATTERN "testing.py" EXCLUDE
        PATTERN "__pycache__" EXCLUDE)

function(sublet_install_docs component package)
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/docs/)
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endfunction()
sublet_install_docs(server sublet-server administrator.md membership.md fair-share.md transport.md)
sublet_install_docs(client sublet-client guide-owner.md client.md load-monitor.md
                    rules.md shepherd.md)
sublet_install_docs(command sublet guide-user.md command.md batch-files.md errors.md json.md)
sublet_install_docs(checkpoint libsublet-checkpoint-dev checkpoint-api.md checkpoint-format.md)
sublet_install_docs(python python3-sublet checkpoint-api.md checkpoint-format.md)
# Licence and changes, which Debian wants in every package.
execute_process(COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/packaging/changelog
                OUTPUT_FILE ${CMAKE_BINARY_DIR}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packaging/changelog)
foreach(package server:sublet-server client:sublet-client command:sublet
                checkpoint:libsublet-checkpoint-dev checkpoint_library:libsublet-checkpoint0
                python:python3-sublet)
  string(REPLACE ":" ";" names ${package})
  list(GET names 0 component)
  list(GET names 1 name)
  install(FILES packaging/copyright ${CMAKE_BINARY_DIR}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endforeach()
# The public contract, for other clients.
install(DIRECTORY idl/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sublet/idl COMPONENT command
        FILES_MATCHING PATTERN "*.idl")

# Files that contain paths: settings, units, the library's description.
foreach(component server client checkpoint)
  install(CODE "set(SUBLET_SOURCE \"${CMAKE_SOURCE_DIR}\")
set(SUBLET_BINARY \"${CMAKE_BINARY_DIR}\")
set(SUBLET_VERSION \"${PROJECT_VERSION}\")
set(SUBLET_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
set(SUBLET_COMPONENT ${component})
include(\"${CMAKE_SOURCE_DIR}/cmake/install_places.cmake\")" COMPONENT ${component})
endforeach()

include(cmake/debian.cmake)

# Debian packages: `cpack` in the build folder writes them to packages/ there
# (docs/administrator.md).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sublet)
set(CPACK_PACKAGE_VENDOR "The Sublet project")
set(CPACK_PACKAGE_CONTACT "The Sublet project <sublet@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
# Independent of the builder's umask.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL server client command checkpoint checkpoint_library python)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME sublet-server)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "server of a pool of idle workstations
Sublet lends idle workstations to batch jobs: they start when a machine's owner is
away, and save a small checkpoint and leave as soon as the owner comes back.

This is the central server, which queues jobs and shares the machines among users.")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS sublet)

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME sublet-client)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "lends this workstation to a Sublet pool while it is idle
Sublet lends idle workstations to batch jobs: they start when a machine's owner is
away, and save a small checkpoint and leave as soon as the owner comes back.

This is the daemon of a workstation, with its load monitor and its shepherds.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS "sublet, sublet-server")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME sublet)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "submits and follows jobs on idle workstations
Sublet lends idle workstations to batch jobs: they start when a machine's owner is
away, and save a small checkpoint and leave as soon as the owner comes back.

This is the command for users, owners and administrators, and the public contract
in IDL.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "sublet-server, sublet-client")

set(CPACK_DEBIAN_CHECKPOINT_PACKAGE_NAME libsublet-checkpoint-dev)
set(CPACK_DEBIAN_CHECKPOINT_DESCRIPTION "small checkpoints for programs that run on borrowed machines
A program names the variables that hold its state and calls one cheap function; it
then saves itself when asked to leave, and resumes on another machine, even of another
architecture.

This is what is needed to build programs in C and C++: the static library, which needs
nothing but the C library, and the headers.")
set(CPACK_DEBIAN_CHECKPOINT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CHECKPOINT_PACKAGE_DEPENDS "libc6-dev, libsublet-checkpoint0")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-sublet)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "small checkpoints for Python programs on borrowed machines
A program names the arrays and values that hold its state and loops over a range of
this package; it then saves itself when asked to leave, and resumes on another machine.

NumPy is not needed, but its arrays and generators can be saved.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-numpy)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${CMAKE_SOURCE_DIR}/packaging/python3-sublet/postinst;${CMAKE_SOURCE_DIR}/packaging/python3-sublet/prerm")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CHECKPOINT_LIBRARY_PACKAGE_NAME libsublet-checkpoint0)
set(CPACK_DEBIAN_CHECKPOINT_LIBRARY_DESCRIPTION "small checkpoints for programs, shared library
A program names the variables that hold its state and calls one cheap function; it
then saves itself when asked to leave, and resumes on another machine, even of another
architecture.

This is the shared library, for programs that are linked with it or load it.")
set(CPACK_DEBIAN_CHECKPOINT_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

foreach(component SERVER CLIENT COMMAND CHECKPOINT_LIBRARY)
  set(CPACK_DEBIAN_${component}_PACKAGE_SHLIBDEPS ON)
endforeach()
foreach(component SERVER CLIENT)
  set(folder ${CMAKE_SOURCE_DIR}/packaging/${CPACK_DEBIAN_${component}_PACKAGE_NAME})
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA
      "${folder}/postinst;${folder}/prerm;${folder}/postrm;${folder}/conffiles")
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_STRICT_PERMISSION ON)
endforeach()
include(CPack)

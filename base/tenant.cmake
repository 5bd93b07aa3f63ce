# What client and monitor know of an attempt: its folder, its processes, its
# cgroups. Included by base/CMakeLists.txt.
sublet_library(sublet_tenant
  SOURCES attempt_format.c attempt_folder.cc attempt_processes.cc cgroup.cc tenant.cc
  LINKS sublet_base)

sublet_unit_test(attempt_folder_test SOURCES attempt_folder_test.cc LINKS sublet_tenant)

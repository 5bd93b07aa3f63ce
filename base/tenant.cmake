# What client and monitor know of an attempt: its folder, its processes, its
# cgroups. Included by base/CMakeLists.txt. (Tenant and AttemptProcesses are
# tested on real attempts: client/shepherd/failure_test.cc.)
sublet_library(sublet_tenant
  SOURCES attempt_format.c attempt_folder.cc attempt_processes.cc cgroup.cc tenant.cc
  LINKS sublet_base)

sublet_unit_test(attempt_folder_test
  SOURCES attempt_folder_test.cc cgroup_test.cc
  LINKS sublet_tenant)

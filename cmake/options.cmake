# The compiler options of all our targets. Sanitizers are selected by the
# presets asan and tsan (CMakePresets.json).
set(SUBLET_SANITIZE "" CACHE STRING "address, thread or empty")

add_library(sublet_options INTERFACE)
target_compile_options(sublet_options INTERFACE -Wall -Wextra -Werror -fno-common
  -Wno-maybe-uninitialized # false alarms on std::optional in g++ 12
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
target_include_directories(sublet_options INTERFACE ${CMAKE_SOURCE_DIR})

# Functions of libraries are looked up when a program starts, not when they are first called: not
# while an owner waits, and the libraries' symbol tables need not stay in memory.
add_link_options(-Wl,-z,now)

if(SUBLET_SANITIZE STREQUAL "address")
  # Excluded: checks that the address sanitizer does anyway, at the access (they take a third
  # of the compile time); and vptr, which needs type information that SOCI hides, and
  # sometimes a descriptor.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(SUBLET_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()
if(SUBLET_SANITIZE)
  # Such programs are several times slower: while many tests run, a load monitor that works may be
  # silent for longer than a real one ever is, and a job would be evicted that a test does not expect.
  add_compile_definitions(SUBLET_MONITOR_SILENCE_NS=5000000000ll)
endif()

# What runs on somebody's workstation all the time is compiled to be small: what is at rest there
# is in memory, and its time is that of system calls. Functions that a program does not use are
# left out. Memory at run time: base/start_up_memory.h.
set(SUBLET_SMALL $<$<CONFIG:RelWithDebInfo>:-Os> -ffunction-sections -fdata-sections)
if(NOT SUBLET_SANITIZE)
  add_link_options(-Wl,--gc-sections)
endif()
# sublet_small(TARGETS...), sublet_small_sources(SOURCES...)
function(sublet_small)
  if(NOT SUBLET_SANITIZE)
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE ${SUBLET_SMALL})
    endforeach()
  endif()
endfunction()
function(sublet_small_sources)
  if(NOT SUBLET_SANITIZE)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${SUBLET_SMALL})
  endif()
endfunction()

# sublet_inner_loops(SOURCES...): the arithmetic of guest programs, which tests of whole
# daemons wait for; compiled for full speed even with sanitizers.
function(sublet_inner_loops)
  if(SUBLET_SANITIZE)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -O2 -fno-sanitize=all)
  endif()
  # These sources have their own options and instruction sets.
  set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # Needed to cache precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

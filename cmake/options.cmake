# What every target of ours is compiled with. Sanitizers are chosen by the
# presets asan and tsan (CMakePresets.json).
set(SUBLET_SANITIZE "" CACHE STRING "address, thread or empty")

add_library(sublet_options INTERFACE)
target_compile_options(sublet_options INTERFACE -Wall -Wextra -Werror -fno-common
  -Wno-maybe-uninitialized # false alarms on std::optional in g++ 12
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
target_include_directories(sublet_options INTERFACE ${CMAKE_SOURCE_DIR})

if(SUBLET_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(SUBLET_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# 64-bit x86 Linux of any distribution: static programs with musl, by zig.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(zig_target x86_64-linux-musl)
include("${CMAKE_CURRENT_LIST_DIR}/zig_cross.cmake")
# Its programs run on this machine as they are.
if(CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(CMAKE_CROSSCOMPILING_EMULATOR env)
endif()

# 64-bit x86 Linux with glibc 2.17 or newer, by zig: what the Python wheel is built with.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(zig_target x86_64-linux-gnu.2.17)
include("${CMAKE_CURRENT_LIST_DIR}/zig_cross.cmake")

# 64-bit ARM Linux with glibc 2.17 or newer, by zig: what the Python wheel is built with; programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(zig_target aarch64-linux-gnu.2.17)
include("${CMAKE_CURRENT_LIST_DIR}/zig_cross.cmake")

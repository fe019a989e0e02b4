# 64-bit ARM Linux, Debian's cross compiler (g++-aarch64-linux-gnu); programs run under qemu-user.
set(debian_triple aarch64-linux-gnu)
include("${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake")
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;/usr/${debian_triple}")

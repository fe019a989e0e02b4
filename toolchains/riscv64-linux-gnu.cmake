# 64-bit RISC-V Linux without the vector extension, Debian's cross compiler (g++-riscv64-linux-gnu); programs run under qemu-user.
set(debian_triple riscv64-linux-gnu)
include("${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake")
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-riscv64;-L;/usr/${debian_triple}")

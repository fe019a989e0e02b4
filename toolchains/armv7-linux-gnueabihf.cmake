# 32-bit ARM Linux with NEON and VFPv4 (Cortex-A7 and later), Debian's cross compiler (g++-arm-linux-gnueabihf); programs run under
# qemu-user.
set(debian_triple arm-linux-gnueabihf)
include("${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake")
# XNNPACK chooses its sources by this name; plain "arm" or "armv7" would leave it without kernels.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=hard")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wno-psabi")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-arm;-L;/usr/${debian_triple}")

# Included by the files of this folder with `cortex_flags` set: Arm microcontrollers without an operating system, Debian's compiler
# (gcc-arm-none-eabi) and newlib (libstdc++-arm-none-eabi-newlib).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
# A program needs a linker script, which is the application's.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(CMAKE_C_FLAGS_INIT "${cortex_flags}")
set(CMAKE_CXX_FLAGS_INIT "${cortex_flags}")
set(CMAKE_ASM_FLAGS_INIT "${cortex_flags}")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Cortex-M4 with its single-precision unit, without an operating system.
set(CMAKE_SYSTEM_PROCESSOR cortex-m4)
set(cortex_flags "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake")

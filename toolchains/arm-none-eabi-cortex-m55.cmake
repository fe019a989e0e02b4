# Cortex-M55 with Helium for integers and floats, without an operating system.
set(CMAKE_SYSTEM_PROCESSOR cortex-m55)
set(cortex_flags "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard")
include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake")

# WebAssembly with 128-bit vectors and WASI, by zig; programs run under Node.js (wasi.mjs).
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/zig")  # Platform/WASI.cmake, which CMake has since 3.31
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(zig_target wasm32-wasi)
include("${CMAKE_CURRENT_LIST_DIR}/zig_cross.cmake")
# Sinter throws nothing, and there is nothing here to throw with.
string(APPEND CMAKE_C_FLAGS_INIT " -msimd128")
string(APPEND CMAKE_CXX_FLAGS_INIT " -msimd128 -fno-exceptions")
set(CMAKE_CROSSCOMPILING_EMULATOR "node;--no-warnings;${CMAKE_CURRENT_LIST_DIR}/wasi.mjs")

# Included by the files of this folder with `zig_target` set: clang, the C library and libc++ of zig, which compiles the libraries of a
# target when they are first linked (a minute or two) and links programs statically. zig/ has the programs that CMake calls.
set(CMAKE_C_COMPILER "${CMAKE_CURRENT_LIST_DIR}/zig/zig-cc")
set(CMAKE_CXX_COMPILER "${CMAKE_CURRENT_LIST_DIR}/zig/zig-c++")
set(CMAKE_ASM_COMPILER "${CMAKE_CURRENT_LIST_DIR}/zig/zig-cc")
set(CMAKE_AR "${CMAKE_CURRENT_LIST_DIR}/zig/zig-ar")
set(CMAKE_RANLIB "${CMAKE_CURRENT_LIST_DIR}/zig/zig-ranlib")
foreach(language C CXX ASM)
  set(CMAKE_${language}_COMPILER_TARGET ${zig_target})
  # zig's linker lacks the option by which CMake asks for the files that it reads.
  set(CMAKE_${language}_LINKER_DEPFILE_SUPPORTED FALSE)
  set(CMAKE_${language}_LINK_DEPENDS_USE_LINKER FALSE)
  # zig compiles with debug information unless it is told otherwise.
  string(APPEND CMAKE_${language}_FLAGS_INIT " -g0")
endforeach()

set(CMAKE_EXE_LINKER_FLAGS_RELEASE_INIT -s)
set(CMAKE_SHARED_LINKER_FLAGS_RELEASE_INIT -s)
set(CMAKE_EXE_LINKER_FLAGS_MINSIZEREL_INIT -s)
# A static program cannot open NVIDIA's driver, and the wheel has no kernels for it.
set(SINTER_CUDA_BACKEND OFF CACHE BOOL "")

set(CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Included by the files of this folder with `debian_triple` set: Debian's cross compiler of that name, and where to search.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${debian_triple}-gcc)
set(CMAKE_CXX_COMPILER ${debian_triple}-g++)
set(CMAKE_ASM_COMPILER ${debian_triple}-gcc)

# Libraries and packages of the target are searched in the compiler's folder and in CMAKE_PREFIX_PATH, programs on this machine.
set(CMAKE_FIND_ROOT_PATH /usr/${debian_triple} ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

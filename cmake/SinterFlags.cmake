# Language, warnings and code generation, the same for every target below this folder; a parent project keeps its own.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT SINTER_BARE_METAL)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  else()
    set(CMAKE_BUILD_TYPE Release)  # In these folders: the parent project's own choice stays.
  endif()
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SINTER_CCACHE ccache)
  mark_as_advanced(SINTER_CCACHE)
  if(SINTER_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER "${SINTER_CCACHE}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SINTER_CCACHE}")
  endif()
endif()

# What results depend on: no fused multiply-add unless a kernel calls for one by name.
add_compile_options(-ffp-contract=off)

add_compile_options(-Wall -Wextra)
if(SINTER_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of g++ 12 in inlined std::string and std::vector code (GCC bugs 105651, 105329, 107852).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>)
endif()
# g++ collects its garbage from 128 MB on, which takes a seventh of the time of large sources; where memory is plenty, it starts later.
# Debug information takes that memory itself.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND SINTER_UNITY AND CMAKE_BUILD_TYPE STREQUAL "Release")
  cmake_host_system_information(RESULT sinter_host QUERY TOTAL_PHYSICAL_MEMORY NUMBER_OF_LOGICAL_CORES)
  list(POP_BACK sinter_host sinter_cores)
  math(EXPR sinter_memory_per_core "${sinter_host} / ${sinter_cores}")  # in MiB
  if(sinter_memory_per_core GREATER_EQUAL 3500)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1048576>")
  endif()
endif()
# Notes of 32-bit ARM compilers on a changed calling convention are not warnings about our code.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(arm|cortex)")
  add_compile_options(-Wno-psabi)
endif()

if(SINTER_SANITIZE)
  add_compile_options(-fsanitize=${SINTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SINTER_SANITIZE})
  if(SINTER_SANITIZE MATCHES "undefined")
    # The check of virtual tables needs RTTI, which the runtime is built without. What the others report, AddressSanitizer
    # reports when the pointer is used; they took a third of the time of compilation.
    set(unchecked -fno-sanitize=vptr,pointer-overflow,object-size,null)
    add_compile_options(${unchecked})
    add_link_options(${unchecked})
  endif()
endif()

if(APPLE)
  add_link_options(-Wl,-dead_strip)
else()
  add_link_options(-Wl,--gc-sections)
endif()
# What is only run here is linked by lld where there is one: a sixth of the time.
if(CMAKE_BUILD_TYPE MATCHES "^(RelWithDebInfo|Sanitize)$" AND NOT CMAKE_CROSSCOMPILING)
  find_program(SINTER_LLD ld.lld)
  mark_as_advanced(SINTER_LLD)
  if(SINTER_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

# The device side: see "Who uses it" in docs/design.md.
add_library(sinter_device_flags INTERFACE)
target_compile_options(sinter_device_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-threadsafe-statics> -ffunction-sections -fdata-sections)
# No function takes more of the stack. Without optimization and with sanitizers frames are larger.
set(SINTER_STACK_LIMIT)
if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$" AND NOT SINTER_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(SINTER_STACK_LIMIT -Wstack-usage=4096)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(SINTER_STACK_LIMIT -Wframe-larger-than=4096)
  endif()
  target_compile_options(sinter_device_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${SINTER_STACK_LIMIT}>)
endif()

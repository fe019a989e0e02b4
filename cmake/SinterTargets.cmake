# Libraries made of all sources below some folders, so that a new file touches no list.

# sinter_sources(OUT FOLDER... [EXCLUDE REGEX...]): all .cc files below, paths relative to the caller's folder.
function(sinter_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCLUDE")
  set(files)
  foreach(folder IN LISTS arg_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    string(REGEX REPLACE "/$" "" folder "${folder}")
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${folder}/*.cc")
    list(APPEND files ${found})
  endforeach()
  foreach(pattern IN LISTS arg_EXCLUDE)
    list(FILTER files EXCLUDE REGEX "${pattern}")
  endforeach()
  if(NOT files)
    # A library needs one source; it goes as soon as the folder has one.
    set(placeholder "${CMAKE_CURRENT_BINARY_DIR}/empty.cc")
    file(CONFIGURE OUTPUT "${placeholder}" CONTENT "// Nothing here yet.\n")
    set(files "${placeholder}")
  endif()
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

# sinter_device_library(NAME SOURCE...): a static library under the runtime's rules; it is installed.
function(sinter_device_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sinter>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:sinter_device_flags>)
  add_library(Sinter::${name} ALIAS ${name})  # The installed package's name.
  set_property(GLOBAL APPEND PROPERTY SINTER_DEVICE_LIBRARIES ${name})
endfunction()

# sinter_unity(TARGET [COUNT]): with SINTER_UNITY, up to COUNT sources of one folder (8 by default) are compiled as one. What these
# keep to themselves must have different names.
function(sinter_unity target)
  set(most 8)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  if(NOT SINTER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(before)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    if(NOT folder STREQUAL before)
      set(before "${folder}")
      set(count 0)
    endif()
    math(EXPR part "${count} / ${most}")
    math(EXPR count "${count} + 1")
    file(RELATIVE_PATH group "${PROJECT_SOURCE_DIR}" "${folder}")
    string(REPLACE "/" "_" group "${group}_${part}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes the sources for headers, which others might include too.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# sinter_highway_unity(TARGET): with SINTER_UNITY, up to six sources that Highway compiles once per instruction set are
# compiled as one, so that its headers are read once per instruction set for all six. CMake's own groups do not serve:
# Highway includes the whole group again for each set. The sources of a group ask for the same instruction sets (config.h).
function(sinter_highway_unity target)
  if(NOT SINTER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(own TABLES)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(own "TABLES|DOTS")
  endif()
  set(kinds)
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" loops REGEX "hwy/foreach_target.h")
    file(STRINGS "${source}" sets REGEX "#define SINTER_SIMD_BYTE_(${own})")
    # Elsewhere some of them have the same names for their own.
    if(loops AND (NOT sets OR CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$"))
      string(MAKE_C_IDENTIFIER "of_${sets}" kind)
      list(APPEND kinds ${kind})
      string(JOIN "\n" head_${kind} ${sets})
      list(APPEND members_${kind} "${source}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES kinds)
  set(part 0)
  foreach(kind IN LISTS kinds)
    while(members_${kind})
      list(SUBLIST members_${kind} 0 6 group)
      list(REMOVE_ITEM members_${kind} ${group})
      set(name "${target}_${part}.cc")
      set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}")
      set(again "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${name}\"\n")
      # Paths without the checkout's own, so that the compiler cache serves all checkouts.
      set(includes)
      foreach(source IN LISTS group)
        file(RELATIVE_PATH source "${PROJECT_SOURCE_DIR}" "${source}")
        string(APPEND includes "#include \"${source}\"\n")
      endforeach()
      file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT
        "${head_${kind}}\n#include \"platforms/simd/isa/config.h\"\n${again}#include \"hwy/foreach_target.h\"\n${includes}${again}")
      set_source_files_properties(${group} PROPERTIES HEADER_FILE_ONLY ON)
      target_sources(${target} PRIVATE "${file}")
      math(EXPR part "${part} + 1")
    endwhile()
  endforeach()
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()

# sinter_source_digest(TARGET FILE...): TARGET's sources may include "source_digest.h", where kSourceDigest is a number for the
# contents of these files, of the headers beside them, of what they use of the runtime, and of the libraries' versions, the same on
# every machine.
function(sinter_source_digest target)
  set(files ${ARGN} "${PROJECT_SOURCE_DIR}/scripts/deps.sha256")
  set(folders "${PROJECT_SOURCE_DIR}/runtime/core" "${PROJECT_SOURCE_DIR}/runtime/backend")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND folders "${folder}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h" "${folder}/*.def")
    list(APPEND files ${headers})
  endforeach()
  list(REMOVE_DUPLICATES files)
  list(SORT files)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_digest")
  file(CONFIGURE OUTPUT "${folder}/files.txt" CONTENT "@files@" @ONLY)
  add_custom_command(
    OUTPUT "${folder}/source_digest.h"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${folder}/files.txt" "-DOUT=${folder}/source_digest.h"
      -P "${PROJECT_SOURCE_DIR}/cmake/source_digest.cmake"
    DEPENDS ${files} "${folder}/files.txt" "${PROJECT_SOURCE_DIR}/cmake/source_digest.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${folder}/source_digest.h")
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()

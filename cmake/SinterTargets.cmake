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
    $<INSTALL_INTERFACE:include/sinter>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:sinter_device_flags>)
  set_property(GLOBAL APPEND PROPERTY SINTER_DEVICE_LIBRARIES ${name})
endfunction()

# sinter_unity(TARGET): with SINTER_UNITY, up to eight sources of one folder are compiled as one. What a folder's sources keep
# to themselves must have different names.
function(sinter_unity target)
  if(NOT SINTER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(before)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL before)
      set(before "${folder}")
      set(count 0)
    endif()
    math(EXPR part "${count} / 8")
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

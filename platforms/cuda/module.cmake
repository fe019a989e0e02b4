# The module of compiled kernels, libsinter_cuda.so: it takes minutes to compile, and is built on request only (the preset
# cuda).
#
#   SINTER_CUDA                 ON builds it, with nvcc
#   SINTER_CUDA_ARCHITECTURES   compute capabilities, each as code and as PTX; PTX of 7.5 is included in any case

option(SINTER_CUDA "Build the module of CUDA kernels (needs a toolkit, 12 or later)" OFF)
set(SINTER_CUDA_ARCHITECTURES "80;120" CACHE STRING "Compute capabilities that CUDA kernels are compiled for; all: 75 to 120")
set(cuda_all 75 80 86 87 89 90 100 120)

if(NOT SINTER_CUDA)
  return()
endif()
find_program(SINTER_NVCC nvcc PATHS /usr/local/cuda/bin)
mark_as_advanced(SINTER_NVCC)
if(NOT SINTER_NVCC)
  message(FATAL_ERROR "Sinter: SINTER_CUDA=ON needs nvcc; put the CUDA toolkit's bin folder on PATH")
endif()

# Drivers of the toolkit's major version, or of later ones, run its code.
execute_process(COMMAND "${SINTER_NVCC}" --version OUTPUT_VARIABLE version)
string(REGEX MATCH "release ([0-9]+)\\." matched "${version}")
set(sinter_cuda_toolkit "${CMAKE_MATCH_1}")
if(NOT sinter_cuda_toolkit GREATER_EQUAL 12)
  message(FATAL_ERROR "Sinter: ${SINTER_NVCC} is not of CUDA 12 or later; install a later toolkit or set SINTER_CUDA=OFF")
endif()

# A test includes the toolkit's headers.
get_filename_component(toolkit "${SINTER_NVCC}" REALPATH)
get_filename_component(toolkit "${toolkit}/../../include" ABSOLUTE)
add_library(sinter_cuda_headers INTERFACE)
target_include_directories(sinter_cuda_headers SYSTEM INTERFACE "${toolkit}")
set_property(GLOBAL PROPERTY SINTER_TEST_LIBRARIES_cuda sinter_cuda_headers)

# Device code does not depend on the host; nvcc takes its own compiler if the target has another one.
set(ccbin)
if(NOT CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ccbin -ccbin "${CMAKE_CXX_COMPILER}")
endif()

set(architectures ${SINTER_CUDA_ARCHITECTURES})
if(architectures STREQUAL "all")
  set(architectures ${cuda_all})
endif()
# The code and PTX of each; the PTX of the lowest supported one serves every other device.
set(generate)
foreach(architecture IN LISTS architectures)
  if(NOT architecture MATCHES "^[0-9]+$" OR architecture LESS 75)
    message(FATAL_ERROR "Sinter: SINTER_CUDA_ARCHITECTURES has '${architecture}'; give numbers from 75 on, such as 80;90, or all")
  endif()
  list(APPEND generate -gencode arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])
endforeach()
if(NOT "75" IN_LIST architectures)
  list(APPEND generate -gencode arch=compute_75,code=compute_75)
endif()

file(STRINGS kernels/units.def unit_rows REGEX "^SINTER_CUDA_UNIT")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS kernels/units.def)
set(images)
set(externs)
set(table)
foreach(row IN LISTS unit_rows)
  string(REGEX REPLACE "^SINTER_CUDA_UNIT\\(([a-z0-9_]+)\\)$" "\\1" unit "${row}")
  file(GLOB source "${CMAKE_CURRENT_SOURCE_DIR}/kernels/*/${unit}.cu")
  set(image "${CMAKE_CURRENT_BINARY_DIR}/${unit}.fatbin")
  add_custom_command(OUTPUT "${image}"
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${SINTER_NVCC}" ${ccbin} -std=c++20 -O3 -fmad=false
      --expt-relaxed-constexpr -Werror all-warnings -I "${PROJECT_SOURCE_DIR}" -I "${PROJECT_SOURCE_DIR}/runtime/include"
      ${generate} -fatbin -MD -MF "${image}.d" -o "${image}" "${source}"
    DEPENDS "${source}" DEPFILE "${image}.d"
    COMMENT "Compiling CUDA kernels of ${unit}" VERBATIM)
  list(APPEND images "${image}")
  string(APPEND externs "extern const unsigned char sinter_cuda_image_${unit}[];\n__asm__(\".section .rodata\\n.balign 64\\n"
    ".global sinter_cuda_image_${unit}\\nsinter_cuda_image_${unit}:\\n.incbin \\\"${image}\\\"\\n.previous\");\n")
  string(APPEND table "    sinter_cuda_image_${unit},\n")
endforeach()
set(sinter_cuda_externs "${externs}")
set(sinter_cuda_table "${table}")
configure_file(module.cc.in "${CMAKE_CURRENT_BINARY_DIR}/module.cc" @ONLY)
add_library(sinter_cuda_module SHARED "${CMAKE_CURRENT_BINARY_DIR}/module.cc")
set_property(SOURCE "${CMAKE_CURRENT_BINARY_DIR}/module.cc" APPEND PROPERTY OBJECT_DEPENDS "${images}")
set_target_properties(sinter_cuda_module PROPERTIES OUTPUT_NAME sinter_cuda LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
target_link_libraries(sinter_cuda_module PRIVATE sinter_device_flags)
target_include_directories(sinter_cuda_module PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/runtime/include")
if(SINTER_INSTALL)
  # The program alone can be built and installed without it.
  install(TARGETS sinter_cuda_module LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" OPTIONAL)
  install(CODE "if(NOT EXISTS \"$<TARGET_FILE:sinter_cuda_module>\")
  message(WARNING \"Sinter: no CUDA kernels are installed; cmake --build ${PROJECT_BINARY_DIR} builds them\")
endif()")
endif()
set_property(GLOBAL APPEND PROPERTY SINTER_OPENED_LIBRARIES sinter_cuda_module)

# What is built. As a part of another project: the device side alone, and nothing that the project has not asked for.

# The processor as the platforms name it: x86_64, aarch64, armv7, or the toolchain file's word for any other.
set(SINTER_PROCESSOR "${CMAKE_SYSTEM_PROCESSOR}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(SINTER_PROCESSOR x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(SINTER_PROCESSOR aarch64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^armv[78]")
  set(SINTER_PROCESSOR armv7)
endif()

# Bare metal: no files, no threads, no heap to allocate from (docs/microcontroller.md).
set(SINTER_BARE_METAL OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Generic")
  set(SINTER_BARE_METAL ON)
endif()

set(sinter_here OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING)
  set(sinter_here ON)
endif()
option(SINTER_BUILD_CONVERTER "Build the converter and the sinter program (needs protobuf, fmt, CLI11, ...)" ${sinter_here})
option(SINTER_PYTHON "Build the extension module of the Python package (needs nanobind; `pip install .` sets it)" OFF)
option(SINTER_BUILD_TESTS "Build the tests (needs GoogleTest)" ${sinter_here})
option(SINTER_BUILD_FUZZERS "Build the libFuzzer targets of tests/fuzz (needs clang)" OFF)
option(SINTER_BUILD_BENCH "Build the C++ benchmarks (needs Google Benchmark)" OFF)
option(SINTER_INSTALL "Install rules for the libraries and the package" ${PROJECT_IS_TOP_LEVEL})
option(SINTER_SHARED "Build libsinter.so, the C API, besides the archives" OFF)
option(SINTER_UNITY "Compile several sources at a time: half the work from scratch, more for one change" OFF)
option(SINTER_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(SINTER_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=, e.g. address,undefined")

# Lean builds: docs/cross-compile.md.
set(sinter_threads ON)
# Apple's linker lacks what the builds of pthreadpool and XNNPACK use.
if(SINTER_BARE_METAL OR APPLE OR CMAKE_SYSTEM_NAME STREQUAL "WASI")
  set(sinter_threads OFF)
endif()
option(SINTER_THREADS "Compute on several threads; OFF: PthreadPool has one, and no thread library is linked" ${sinter_threads})
# Files for other processors (--target portable) name reference kernels alone, and Highway's emulation of vectors, which would be
# all that g++ has there, is too small for these kernels.
set(sinter_vectors OFF)
if(SINTER_PROCESSOR MATCHES "^(x86_64|aarch64|armv7|wasm32)$")
  set(sinter_vectors ON)
endif()
option(SINTER_SIMD "Build the simd backend (Highway)" ${sinter_vectors})
# Nor can the tools of Windows and WebAssembly join XNNPACK's objects to one.
set(sinter_xnnpack ${sinter_vectors})
if(APPLE OR CMAKE_SYSTEM_NAME MATCHES "^(Windows|WASI)$")
  set(sinter_xnnpack OFF)
endif()
option(SINTER_XNNPACK "Build the XNNPACK backend" ${sinter_xnnpack})
if(NOT sinter_vectors)
  message(STATUS "Sinter: the processor '${SINTER_PROCESSOR}' computes with the reference kernels "
    "(convert with --target portable); SINTER_SIMD and SINTER_XNNPACK are ${SINTER_SIMD} and ${SINTER_XNNPACK}")
endif()
# The device side opens the driver and the module of kernels by name, so it needs no CUDA toolkit.
set(sinter_cuda OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND SINTER_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  set(sinter_cuda ON)
endif()
option(SINTER_CUDA_BACKEND "Build the CUDA backend, which opens NVIDIA's driver by name (64-bit Linux)" ${sinter_cuda})
set(sinter_device_memory ON)
if(SINTER_BARE_METAL)
  set(sinter_device_memory OFF)
endif()
option(SINTER_DEVICE_MEMORY "Run plans that use the memory of a device, such as a GPU's" ${sinter_device_memory})
if(SINTER_CUDA_BACKEND AND NOT SINTER_DEVICE_MEMORY)
  message(FATAL_ERROR "Sinter: the CUDA backend computes in device memory; with SINTER_DEVICE_MEMORY=OFF, set SINTER_CUDA_BACKEND=OFF")
endif()

# Only what a program's models need: `sinter embed` writes both lists. Empty: everything.
set(SINTER_OPERATIONS "" CACHE STRING "The operations that are built, as schemas/ops.def names them; empty: all")
set(SINTER_ELEMENT_TYPES "" CACHE STRING "The element types that are built, such as float32;int8; empty: all")
option(SINTER_SEALED "Open trusted files alone: digests are checked, the structure is not verified (docs/security.md)" OFF)

# The system's or the sysroot's libsodium; scripts/deps.sh builds it where there is none.
find_library(SINTER_LIBSODIUM sodium)
find_path(SINTER_SODIUM_INCLUDE sodium.h)
mark_as_advanced(SINTER_LIBSODIUM SINTER_SODIUM_INCLUDE)
set(sinter_signatures OFF)
if(sinter_here AND SINTER_LIBSODIUM AND SINTER_SODIUM_INCLUDE)
  set(sinter_signatures ON)
endif()
option(SINTER_SIGNATURES "Open signed model files with a public key (libsodium); OFF: refuse to" ${sinter_signatures})

# sinter_check_names(VARIABLE FILE REGEX): every word of the list is one that the expression finds in the file.
function(sinter_check_names variable file regex)
  file(STRINGS "${PROJECT_SOURCE_DIR}/${file}" rows REGEX "${regex}")
  string(REGEX MATCHALL "${regex}" names "${rows}")
  list(TRANSFORM names REPLACE "${regex}" "\\1")
  foreach(name IN LISTS ${variable})
    if(NOT name IN_LIST names)
      message(FATAL_ERROR "Sinter: ${variable} lists '${name}', which ${file} does not have; use the list that `sinter embed` writes")
    endif()
  endforeach()
endfunction()
sinter_check_names(SINTER_OPERATIONS schemas/ops.def "SINTER_OP\\(([A-Za-z0-9]+),")
sinter_check_names(SINTER_ELEMENT_TYPES runtime/core/dtype_names.h "\"([a-z0-9]+)\"")
if(NOT SINTER_DEVICE_MEMORY AND SINTER_BUILD_TESTS)
  message(FATAL_ERROR "Sinter: the tests have devices; with SINTER_DEVICE_MEMORY=OFF, set SINTER_BUILD_TESTS=OFF")
endif()
if((SINTER_OPERATIONS OR SINTER_ELEMENT_TYPES OR SINTER_SEALED) AND (SINTER_BUILD_CONVERTER OR SINTER_BUILD_TESTS))
  message(FATAL_ERROR "Sinter: the converter and the tests need all operations, all element types and the verifier; with "
    "SINTER_OPERATIONS, SINTER_ELEMENT_TYPES or SINTER_SEALED, set SINTER_BUILD_CONVERTER=OFF and SINTER_BUILD_TESTS=OFF")
endif()

if(NOT SINTER_SIMD AND (SINTER_BUILD_CONVERTER OR SINTER_BUILD_TESTS))
  message(FATAL_ERROR "Sinter: the converter plans with the simd backend's kernels; with SINTER_SIMD=OFF, set "
    "SINTER_BUILD_CONVERTER=OFF and SINTER_BUILD_TESTS=OFF")
endif()

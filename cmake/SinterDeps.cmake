# Imported targets for what scripts/deps.sh built:
#   sinter_deps::flatbuffers (headers), sinter_deps::xxhash (header), sinter_deps::hwy, sinter_deps::pthreadpool,
#   sinter_deps::xnnpack (with cpuinfo and pthreadpool inside), and sinter_deps::onednn where it was built.
# SINTER_DEPS_PREFIX (cache or environment) names the prefix; SINTER_FLATC is the schema compiler of this machine.

if(NOT SINTER_DEPS_PREFIX)
  if(DEFINED ENV{SINTER_DEPS_PREFIX} AND NOT "$ENV{SINTER_DEPS_PREFIX}" STREQUAL "")
    set(SINTER_DEPS_PREFIX "$ENV{SINTER_DEPS_PREFIX}")
  else()
    set(SINTER_DEPS_PREFIX "${PROJECT_SOURCE_DIR}/build/deps")
  endif()
endif()
set(SINTER_DEPS_PREFIX "${SINTER_DEPS_PREFIX}" CACHE PATH "Prefix that scripts/deps.sh filled")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(SINTER_TRIPLE x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(SINTER_TRIPLE aarch64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(SINTER_TRIPLE armv7)
else()
  message(FATAL_ERROR "Sinter: no dependencies for processor '${CMAKE_SYSTEM_PROCESSOR}'")
endif()

set(SINTER_DEPS_DIR "${SINTER_DEPS_PREFIX}/${SINTER_TRIPLE}")
set(SINTER_FLATC "${SINTER_DEPS_PREFIX}/host/bin/flatc")
if(NOT EXISTS "${SINTER_DEPS_DIR}/include/flatbuffers/flatbuffers.h")
  message(FATAL_ERROR "Sinter: ${SINTER_DEPS_DIR} is not filled; run scripts/deps.sh --triple ${SINTER_TRIPLE}")
endif()

find_package(Threads REQUIRED)

# Headers live in one folder; SYSTEM keeps their warnings out of -Werror.
function(sinter_deps_headers name)
  add_library(sinter_deps::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(sinter_deps::${name} SYSTEM INTERFACE "${SINTER_DEPS_DIR}/include")
endfunction()

function(sinter_deps_archive name file)
  add_library(sinter_deps::${name} STATIC IMPORTED GLOBAL)
  set_target_properties(sinter_deps::${name} PROPERTIES IMPORTED_LOCATION "${SINTER_DEPS_DIR}/lib/${file}")
  target_include_directories(sinter_deps::${name} SYSTEM INTERFACE "${SINTER_DEPS_DIR}/include")
endfunction()

sinter_deps_headers(flatbuffers)
sinter_deps_headers(xxhash)
sinter_deps_archive(hwy libhwy.a)
target_compile_definitions(sinter_deps::hwy INTERFACE HWY_STATIC_DEFINE)

# Signed model files. The system's libsodium, which applications find for themselves (SinterConfig.cmake.in).
if(SINTER_SIGNATURES)
  if(NOT SINTER_LIBSODIUM OR NOT SINTER_SODIUM_INCLUDE)
    message(FATAL_ERROR "Sinter: SINTER_SIGNATURES needs libsodium (libsodium-dev); install it or switch the option off")
  endif()
  add_library(sinter_deps::sodium UNKNOWN IMPORTED GLOBAL)
  set_target_properties(sinter_deps::sodium PROPERTIES IMPORTED_LOCATION "${SINTER_LIBSODIUM}")
  target_include_directories(sinter_deps::sodium SYSTEM INTERFACE "${SINTER_SODIUM_INCLUDE}")
endif()

# The archives' symbols carry the prefix sinter_; the forced header gives their declarations the same names.
sinter_deps_archive(pthreadpool libsinter_pthreadpool.a)
target_compile_options(sinter_deps::pthreadpool INTERFACE -include sinter_deps_names.h)
target_link_libraries(sinter_deps::pthreadpool INTERFACE Threads::Threads)
sinter_deps_archive(xnnpack libsinter_xnnpack.a)
target_compile_options(sinter_deps::xnnpack INTERFACE -include sinter_deps_names.h)
target_link_libraries(sinter_deps::xnnpack INTERFACE sinter_deps::pthreadpool m)
# A C++ library, whose exceptions and RTTI stay inside. Its names are prefixed in the same way.
if(EXISTS "${SINTER_DEPS_DIR}/lib/libsinter_onednn.a")
  sinter_deps_archive(onednn libsinter_onednn.a)
  target_compile_options(sinter_deps::onednn INTERFACE -include sinter_onednn_names.h)
  target_link_libraries(sinter_deps::onednn INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
endif()

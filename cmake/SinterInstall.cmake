# cmake --install: the device libraries, the archives that they need, the public headers, a config package for
# find_package(Sinter), and the sinter program where it is built.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(device_libraries GLOBAL PROPERTY SINTER_DEVICE_LIBRARIES)
list(FILTER device_libraries EXCLUDE REGEX "^sinter_template") # a platform to copy, built for its tests
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Sinter")

install(TARGETS ${device_libraries} EXPORT SinterTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT SinterTargets NAMESPACE Sinter:: DESTINATION "${config_dir}")
# Everything below one folder, so that nothing but include/sinter appears in a shared prefix. The public headers use
# those of the core and of the backend interface.
set(include_root "${CMAKE_INSTALL_INCLUDEDIR}/sinter")
foreach(folder runtime application)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/include/" DESTINATION "${include_root}" FILES_MATCHING PATTERN "*.h")
endforeach()
foreach(folder runtime/core runtime/backend)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/" DESTINATION "${include_root}/${folder}"
    FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/runtime/kernels/reference.h" DESTINATION "${include_root}/runtime/kernels")
# What an application names to link a platform's kernels.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/platforms" DESTINATION "${include_root}" FILES_MATCHING
  PATTERN "simd_kernels.h" PATTERN "*_backend.h" PATTERN "template" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/schemas/ops.def" DESTINATION "${include_root}/schemas")
# Binaries are passed on with these.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

set(archives "${SINTER_DEPS_DIR}/lib/libhwy.a")
if(SINTER_XNNPACK)
  list(APPEND archives "${SINTER_DEPS_DIR}/lib/libsinter_xnnpack.a" "${SINTER_DEPS_DIR}/lib/libsinter_pthreadpool.a")
endif()
if(TARGET sinter_onednn)
  list(APPEND archives "${SINTER_DEPS_DIR}/lib/libsinter_onednn.a")
endif()
install(FILES ${archives} DESTINATION "${CMAKE_INSTALL_LIBDIR}/sinter")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/SinterConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/SinterConfig.cmake" INSTALL_DESTINATION "${config_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/SinterConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/SinterConfig.cmake" "${PROJECT_BINARY_DIR}/SinterConfigVersion.cmake"
  DESTINATION "${config_dir}")

if(TARGET sinter)
  install(TARGETS sinter RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

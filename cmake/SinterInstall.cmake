# cmake --install: the device libraries, the archives that they need, the public headers, a package for find_package(Sinter)
# and one for pkg-config, and the sinter program where it is built.

include(CMakePackageConfigHelpers)

get_property(device_libraries GLOBAL PROPERTY SINTER_DEVICE_LIBRARIES)
list(FILTER device_libraries EXCLUDE REGEX "^sinter_template") # a platform to copy, built for its tests
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Sinter")

install(TARGETS ${device_libraries} sinter_all EXPORT SinterTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
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
foreach(name IN LISTS SINTER_BUILT_PLATFORMS)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/platforms/${name}" DESTINATION "${include_root}/platforms" FILES_MATCHING
    PATTERN "simd_kernels.h" PATTERN "*_backend.h")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/schemas/ops.def" DESTINATION "${include_root}/schemas")
# Binaries are passed on with these.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# What linking all of it takes, in order: ours, the archives of sinter_deps::, the system's. SinterConfig.cmake makes the
# sinter_deps:: targets again from NAME=FILE and NAME=WHAT IT LINKS; pkg-config takes plain flags.
set(package_archives)
set(package_needs)
set(SINTER_FINDS_SODIUM OFF)
set(pc_libraries)
set(pc_system)
sinter_link_order(order sinter_all)
foreach(item IN LISTS order)
  if(item MATCHES "^sinter_deps::(.+)$")
    set(name ${CMAKE_MATCH_1})
    get_target_property(file ${item} IMPORTED_LOCATION)
    if(name STREQUAL "sodium" AND NOT file MATCHES "^${SINTER_DEPS_DIR}")
      list(APPEND pc_system -lsodium)
      set(SINTER_FINDS_SODIUM ON)
      continue()
    endif()
    install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/sinter")
    get_filename_component(file "${file}" NAME)
    list(APPEND package_archives "${name}=${file}")
    get_target_property(needs ${item} INTERFACE_LINK_LIBRARIES)
    foreach(need IN LISTS needs)
      if(need)
        list(APPEND package_needs "${name}=${need}")
      endif()
    endforeach()
    list(APPEND pc_libraries "\${libdir}/sinter/${file}")
  elseif(item STREQUAL "Threads::Threads")
    list(APPEND pc_system -pthread)
  elseif(item STREQUAL "sinter_all" OR item STREQUAL "sinter_device_flags")
    continue()
  elseif(TARGET ${item})
    list(APPEND pc_libraries "-l${item}")
  else()
    list(APPEND pc_system "-l${item}")
  endif()
endforeach()
# C programs link the C++ library as well.
set(cxx_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(REMOVE_ITEM cxx_libraries ${CMAKE_C_IMPLICIT_LINK_LIBRARIES} m)
foreach(library IN LISTS cxx_libraries)
  list(APPEND pc_system "-l${library}")
endforeach()
list(APPEND pc_system -lm)
list(JOIN pc_libraries " " pc_libraries)
list(JOIN pc_system " " pc_system)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/SinterConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/SinterConfig.cmake" INSTALL_DESTINATION "${config_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/SinterConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/SinterConfig.cmake" "${PROJECT_BINARY_DIR}/SinterConfigVersion.cmake"
  DESTINATION "${config_dir}")
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sinter.pc.in" "${PROJECT_BINARY_DIR}/sinter.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sinter.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET sinter)
  install(TARGETS sinter RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

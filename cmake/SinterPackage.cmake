# Sinter::sinter, all of the device side: the same name in this build, as a part of another project, and installed.

set(SINTER_COMPONENTS runtime kernels threads ${SINTER_BUILT_PLATFORMS} backends)
if(TARGET sinter_application)
  list(APPEND SINTER_COMPONENTS application)
endif()
add_library(sinter_all INTERFACE)
set_target_properties(sinter_all PROPERTIES EXPORT_NAME sinter)
list(TRANSFORM SINTER_COMPONENTS PREPEND sinter_ OUTPUT_VARIABLE parts)
target_link_libraries(sinter_all INTERFACE ${parts})
add_library(Sinter::sinter ALIAS sinter_all)

# libsinter.so: the C API and everything that it needs. A function is exported if sinter_c.h declares it with SINTER_API, so these
# sources are compiled again, with the macro that makes it so; sinter.map keeps all other symbols in, those of the C++ library's
# templates among them.
if(SINTER_SHARED)
  get_target_property(sources sinter_application SOURCES)
  add_library(sinter_shared SHARED ${sources})
  set(exports "${PROJECT_SOURCE_DIR}/cmake/sinter.map")
  set_target_properties(sinter_shared PROPERTIES OUTPUT_NAME sinter EXPORT_NAME shared VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS "${exports}")
  target_compile_definitions(sinter_shared PRIVATE SINTER_SHARED SINTER_VERSION="${PROJECT_VERSION}"
    $<$<BOOL:${SINTER_THREADS}>:SINTER_THREADS>)
  target_compile_options(sinter_shared PRIVATE $<TARGET_PROPERTY:sinter_device_flags,INTERFACE_COMPILE_OPTIONS>)
  target_compile_features(sinter_shared PRIVATE cxx_std_20)
  target_include_directories(sinter_shared
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/application/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sinter>
    PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/runtime/include")
  target_link_options(sinter_shared PRIVATE "LINKER:--version-script=${exports}" "LINKER:--no-undefined")
  target_link_libraries(sinter_shared PRIVATE sinter_backends sinter_kernels sinter_runtime)
  add_library(Sinter::shared ALIAS sinter_shared)
endif()

set(SINTER_PACKAGE_COMPONENTS ${SINTER_COMPONENTS})
if(SINTER_SHARED)
  list(APPEND SINTER_PACKAGE_COMPONENTS shared)
endif()

# sinter_link_order(OUT TARGET): everything that linking a target takes, each before what it needs; targets and plain words.
function(sinter_link_order out target)
  set_property(GLOBAL PROPERTY SINTER_LINK_ORDER)
  sinter_link_order_of(${target})
  get_property(order GLOBAL PROPERTY SINTER_LINK_ORDER)
  list(REVERSE order)
  set(${out} ${order} PARENT_SCOPE)
endfunction()
function(sinter_link_order_of item)
  get_property(done GLOBAL PROPERTY SINTER_LINK_ORDER)
  if(item IN_LIST done OR item MATCHES "^\\$<")
    return()
  endif()
  if(TARGET ${item})
    get_target_property(type ${item} TYPE)
    set(property INTERFACE_LINK_LIBRARIES)
    if(type STREQUAL "STATIC_LIBRARY")
      get_target_property(imported ${item} IMPORTED)
      if(NOT imported)
        set(property LINK_LIBRARIES)
      endif()
    endif()
    get_target_property(needs ${item} ${property})
    if(needs)
      foreach(need IN LISTS needs)
        sinter_link_order_of(${need})
      endforeach()
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY SINTER_LINK_ORDER ${item})
endfunction()

# A device with memory of its own; also for tests/fuzz, which the preset of the fuzzers builds without the other tests.
include_guard(GLOBAL)
find_package(Threads REQUIRED)
add_library(sinter_far STATIC "${CMAKE_CURRENT_LIST_DIR}/far_backend.cc")
target_include_directories(sinter_far PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/runtime/include")
target_link_libraries(sinter_far PUBLIC sinter_kernels sinter_runtime Threads::Threads)

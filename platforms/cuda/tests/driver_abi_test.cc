// The declarations of driver/api.h against the toolkit's, if there is one.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>

#include "platforms/cuda/driver/api.h"

namespace sinter::cuda {
namespace {

// True if an argument of one type is passed like one of the other.
template <class Ours, class Theirs>
constexpr bool kAlike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template <class Result, class... Ours, class TheirResult, class... Theirs>
constexpr bool alike(Result (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return kAlike<Result, TheirResult> && (kAlike<Ours, Theirs> && ...);
}

constexpr bool alike_all() {
  bool all = true;
#define SINTER_CUDA_ENTRY(field, symbol, ...) \
  all = all &&                                \
        alike(static_cast<DriverResult (*)(__VA_ARGS__)>(nullptr), static_cast<decltype(&symbol)>(nullptr));
#include "platforms/cuda/driver/entry_points.def"
#undef SINTER_CUDA_ENTRY
  return all;
}
static_assert(alike_all());

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(alignof(LaunchAttribute) == alignof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, threads) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

TEST(DriverApi, HasTheToolkitsNumbers) {
  EXPECT_EQ(kDriverSuccess, CUDA_SUCCESS);
  EXPECT_EQ(kDriverOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kDriverNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(kDriverNoCode, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(kVirtualArchitecture, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  EXPECT_EQ(kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(kEventWithoutTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(kProgrammaticSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
}

}  // namespace
}  // namespace sinter::cuda
#else
TEST(DriverApi, HasTheToolkitsNumbers) { GTEST_SKIP() << "the CUDA toolkit is not installed"; }
#endif

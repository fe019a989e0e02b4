// The part of the CUDA driver's interface that this platform uses. The driver is a library of the machine on
// which a program runs (libcuda.so.1); it is opened by name, so that nothing here needs a toolkit to build or
// a device to start. tests/driver_abi_test.cc compares these declarations with the toolkit's cuda.h if there
// is one. Source: CUDA Driver API, version 12.0 and later.
#pragma once

#include <cstddef>
#include <cstdint>

// The driver's opaque types.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace sinter::cuda {

using DriverResult = int;  // CUresult
inline constexpr DriverResult kDriverSuccess = 0, kDriverOutOfMemory = 2, kDriverNoDevice = 100,
                              kDriverNoCode = 209;

using DeviceNumber = int;                   // CUdevice
using DeviceAddress = unsigned long long;   // CUdeviceptr
using ContextHandle = ::CUctx_st*;          // CUcontext
using ModuleHandle = ::CUmod_st*;           // CUmodule
using FunctionHandle = ::CUfunc_st*;        // CUfunction
using StreamHandle = ::CUstream_st*;        // CUstream
using EventHandle = ::CUevent_st*;          // CUevent
using GraphHandle = ::CUgraph_st*;          // CUgraph
using GraphExecHandle = ::CUgraphExec_st*;  // CUgraphExec

// The values of the enumerations of the same names.
enum DeviceAttribute : int {
  kMultiprocessorCount = 16,  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
  kCapabilityMajor = 75,      // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  kCapabilityMinor = 76,      // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
};
enum FunctionAttribute : int {
  kVirtualArchitecture = 5,    // CU_FUNC_ATTRIBUTE_PTX_VERSION: 90 for compute_90
  kMaxDynamicSharedBytes = 8,  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
};
inline constexpr unsigned kStreamNonBlocking = 1;   // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventWithoutTiming = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr int kCaptureThreadLocal = 1;       // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr unsigned kHostAllocPortable = 1;   // CU_MEMHOSTALLOC_PORTABLE

enum LaunchAttributeId : int {
  kProgrammaticSerialization = 6,  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
};
struct alignas(8) LaunchAttribute {  // CUlaunchAttribute
  LaunchAttributeId id = kProgrammaticSerialization;
  char padding[8 - sizeof(LaunchAttributeId)] = {};
  union {
    char bytes[64] = {};
    int allowed;  // 1: the launch may begin while the one before it in the stream ends
  } value;
};
struct LaunchConfig {  // CUlaunchConfig
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

struct EntryPoints {
#define SINTER_CUDA_ENTRY(field, symbol, ...) DriverResult (*field)(__VA_ARGS__) = nullptr;
#include "platforms/cuda/driver/entry_points.def"
#undef SINTER_CUDA_ENTRY
};

}  // namespace sinter::cuda

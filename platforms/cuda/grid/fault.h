// Errors that only a run can find, such as an index that is out of range.
//
// A session has one FaultKey in device memory, with all bits set. A kernel that finds a fault lowers the key
// to the fault's own (report_fault.h), so that the first step that fails is reported, with the first of its
// elements, whatever the order of threads. A kernel that fails writes only within its operands.
#pragma once

#include <cstdint>

namespace sinter::cuda {

enum class FaultCode : uint8_t {
  kNone,
  kIndex,   // an index is out of range
  kLength,  // a length is out of range
};

using FaultKey = unsigned long long;
inline constexpr FaultKey kNoFault = ~0ull;
inline constexpr int kFaultCodeBits = 8, kFaultPositionBits = 36;

// The place to which kernels report: an argument of those that can fail.
struct FaultPlace {
  FaultKey* key = nullptr;
  uint32_t step = 0;
};

}  // namespace sinter::cuda

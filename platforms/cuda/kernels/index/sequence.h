// Arguments of kernels/index/sequence.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/grid/fault.h"

namespace sinter::cuda {

// Computes to[.., t, ..] = from[.., length - 1 - t, ..] if t is below the row's length, else from[.., t, ..].
struct ReverseSequenceArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* lengths = nullptr;
  Box box;
  Steps steps[4];              // of `to`, `from` and the lengths; and 1 along the time axis
  int64_t time = 0;            // steps along that axis
  int64_t from_time_step = 0;  // bytes
  int32_t length_width = 8, width = 4;
  FaultPlace fault;
};

// Computes to = past, with `steps` of its `capacity` steps taken from `update`. All are dense: [batches,
// rows, capacity, block].
struct CacheUpdateArguments {
  std::byte* to = nullptr;
  const std::byte* past = nullptr;
  const std::byte* update = nullptr;
  const std::byte* starts = nullptr;  // of each batch; null: 0
  Divider rows, capacity, block;
  int32_t steps = 0;
  uint32_t size = 0;
  int32_t start_width = 8, circular = 0, width = 4;
  FaultPlace fault;
};

// Reports numbers that are not from 0 to `most`.
struct CheckRangeArguments {
  const std::byte* numbers = nullptr;
  int64_t step = 0, most = 0;  // step: bytes
  uint32_t count = 0;
  int32_t width = 8;
  FaultCode code = FaultCode::kLength;
  FaultPlace fault;
};

}  // namespace sinter::cuda

// Copies of rows of bytes from places that are evenly spaced or listed.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

// Row i goes from `from + (index != nullptr ? index[i] : i) * from_step` to `to + i * to_step`. Steps are in
// bytes and may be 0 or negative. A row may be its own target; otherwise source and target do not overlap.
struct RowCopy {
  const std::byte* from;
  std::byte* to;
  int64_t from_step, to_step;
  size_t bytes, rows;
  const int64_t* index = nullptr;
};

void copy_rows(const RowCopy& copy);

// Copies `in`, which broadcasts to `out`, in pieces on several threads. Both have elements of one type, of
// whole bytes.
void copy_view(const TensorView& out, const TensorView& in, ThreadPool* threads);

}  // namespace sinter::simd

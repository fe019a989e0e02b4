// The rows of ExpertFullyConnected by expert, so that a kernel reads the weights of each expert that some row
// has chosen once, and no others.
#pragma once

#include <algorithm>
#include <span>

#include "runtime/backend/index.h"
#include "runtime/core/checked.h"
#include "runtime/core/tensor_view.h"

namespace sinter {

// Groups of rows with the same expert, in ascending order of the expert; rows of a group keep their order.
struct ExpertRows {
  struct Group {
    int64_t expert = 0;
    std::span<const int64_t> rows;
  };
  std::span<const int64_t> order;   // the numbers of all rows
  std::span<const int64_t> starts;  // the start of each group in `order`, then the number of rows
  const std::byte* experts = nullptr;

  int64_t groups() const { return static_cast<int64_t>(starts.size()) - 1; }
  Group group(int64_t i) const {
    const auto at = static_cast<size_t>(starts[static_cast<size_t>(i)]),
               end = static_cast<size_t>(starts[static_cast<size_t>(i) + 1]);
    return {load_index(experts + order[at] * int64_t{sizeof(int64_t)}, DType::kInt64),
            order.subspan(at, end - at)};
  }
};

// Writes the lists' bytes in the workspace, a multiple of kBufferAlignment; returns false on overflow.
[[nodiscard]] inline bool expert_rows_bytes(int64_t rows, size_t* bytes) {
  int64_t n = 0;
  if (!checked_mul<int64_t>(rows, 2, &n) || !checked_add<int64_t>(n, 1, &n) ||
      !checked_mul<int64_t>(n, sizeof(int64_t), &n) || !checked_add<int64_t>(n, kBufferAlignment - 1, &n))
    return false;
  *bytes = static_cast<size_t>(n) / kBufferAlignment * kBufferAlignment;
  return true;
}

// Builds the lists in the workspace. `experts` is int64 [rows], dense. Fails with kOutOfRange if one of them
// is not 0 .. count - 1, with kOutOfMemory if the workspace is too small.
inline Status sort_by_expert(const TensorView& experts, int64_t count, std::span<std::byte> workspace,
                             ExpertRows* sorted) {
  const int64_t rows = experts.dims[0];
  size_t bytes = 0;
  SINTER_RETURN_UNLESS(expert_rows_bytes(rows, &bytes) && workspace.size() >= bytes,
                       error(Code::kOutOfMemory, "the workspace is too small"));
  const auto expert_of = [&](int64_t row) {
    return load_index(experts.data + row * int64_t{sizeof(int64_t)}, DType::kInt64);
  };
  auto* order = reinterpret_cast<int64_t*>(workspace.data());
  int64_t* starts = order + rows;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t e = expert_of(row);
    SINTER_RETURN_UNLESS(e >= 0 && e < count,
                         error(Code::kOutOfRange, "expert %a is not below the %b experts", e, count));
    order[row] = row;
  }
  std::sort(order, order + rows, [&](int64_t a, int64_t b) {
    const int64_t first = expert_of(a), second = expert_of(b);
    return first != second ? first < second : a < b;
  });
  size_t groups = 0;
  for (int64_t i = 0; i < rows; ++i)
    if (i == 0 || expert_of(order[i]) != expert_of(order[i - 1])) starts[groups++] = i;
  starts[groups] = rows;
  sorted->order = {order, static_cast<size_t>(rows)};
  sorted->starts = {starts, groups + 1};
  sorted->experts = experts.data;
  return ok_status();
}

}  // namespace sinter

// Unique: the distinct elements, or the distinct slices along an axis, in ascending (slices: lexicographic)
// order or in order of first appearance. NaN equals NaN and comes last.
#include <algorithm>

#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

// The shape of x as [outer, items, inner]; an item's elements are compared outer first.
struct Items {
  int64_t outer = 1, items = 1, inner = 1;
};

Items split(const TensorView& x, int64_t axis) {
  if (axis < 0) return {1, x.size(), 1};
  const auto k = static_cast<int>(axis);
  const int64_t outer = x.size() == 0 ? 0 : product(x, 0, k), inner = product(x, k + 1, x.rank);
  return {outer, x.dims[k], inner};
}

Status infer_unique(OpCall& call) {
  const auto& a = call.attrs<UniqueAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype) || x.dtype == DType::kBool));
  SINTER_RETURN_IF_ERROR(check_code(a.sorted, 2));
  if (a.axis != -1) SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  int64_t size = 1;
  for (const int64_t d : x.shape())
    SINTER_RETURN_UNLESS(checked_mul(size, d, &size), invalid("the input is too large"));
  const int64_t items[] = {a.axis < 0 ? size : x.dims[a.axis]};
  SINTER_RETURN_IF_ERROR(
      give_output(call, 0, x.dtype, a.axis < 0 ? std::span<const int64_t>(items) : x.shape()));
  for (size_t i = 1; i <= 3; ++i) SINTER_RETURN_IF_ERROR(give_output(call, i, DType::kInt64, items));
  return give_output(call, 4, DType::kInt64, {});
}

// The lists: the items in sorted order; for each distinct item, its first index, count and output place.
constexpr int64_t kLists = 4;

Status unique_workspace(const OpCall& call, int, size_t* bytes) {
  const Items s = split(call.in(0), call.attrs<UniqueAttrs>().axis);
  SINTER_RETURN_UNLESS(checked_mul(static_cast<size_t>(s.items), size_t{kLists * sizeof(int64_t)}, bytes),
                       unsupported("too many elements"));
  return ok_status();
}

// Returns -1, 0 or 1; NaN is the largest.
template <class T>
int compare(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  if constexpr (std::is_floating_point_v<T>) return static_cast<int>(a != a) - static_cast<int>(b != b);
  return 0;
}

template <class T>
int compare_items(const TensorView& x, const Items& s, int64_t i, int64_t j) {
  constexpr int64_t kWidth = sizeof(T);
  for (int64_t o = 0; o < s.outer; ++o) {
    const std::byte *p = x.data + (o * s.items + i) * s.inner * kWidth,
                    *q = x.data + (o * s.items + j) * s.inner * kWidth;
    for (int64_t k = 0; k < s.inner; ++k)
      if (const int c = compare(load<T>(p + k * kWidth), load<T>(q + k * kWidth)); c != 0) return c;
  }
  return 0;
}

Status run_unique(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<UniqueAttrs>();
  const TensorView& x = call.in(0);
  const Items s = split(x, a.axis);
  auto* order = reinterpret_cast<int64_t*>(context.workspace.data());
  int64_t *first = order + s.items, *counts = first + s.items, *place = counts + s.items;
  const auto output = [&](size_t i) { return call.has_output(i) ? call.out(i).as<int64_t>() : nullptr; };
  int64_t *firsts_out = output(1), *inverse_out = output(2), *counts_out = output(3), *count_out = output(4);
  int64_t groups = 0;
  SINTER_RETURN_IF_ERROR(for_number_or_bool(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < s.items; ++i) order[i] = i;
    std::sort(order, order + s.items, [&](int64_t i, int64_t j) {
      const int c = compare_items<T>(x, s, i, j);
      return c != 0 ? c < 0 : i < j;
    });
    for (int64_t k = 0; k < s.items; ++k) {
      if (k == 0 || compare_items<T>(x, s, order[k - 1], order[k]) != 0) {
        first[groups] = order[k];
        counts[groups++] = 0;
      }
      ++counts[groups - 1];
    }
    return ok_status();
  }));

  // place[g] is the output place of the g-th distinct item in ascending order.
  for (int64_t g = 0; g < groups; ++g) place[g] = g;
  if (inverse_out != nullptr)  // holds the sorted group for now
    for (int64_t k = 0, g = -1; k < s.items; ++k) {
      if (g + 1 < groups && order[k] == first[g + 1]) ++g;
      inverse_out[order[k]] = g;
    }
  if (a.sorted == 0) {
    int64_t* by_first = order;  // no longer needed
    for (int64_t g = 0; g < groups; ++g) by_first[g] = g;
    std::sort(by_first, by_first + groups, [&](int64_t g, int64_t h) { return first[g] < first[h]; });
    for (int64_t k = 0; k < groups; ++k) place[by_first[k]] = k;
  }
  if (inverse_out != nullptr)
    for (int64_t i = 0; i < s.items; ++i) inverse_out[i] = place[inverse_out[i]];
  for (int64_t g = 0; g < groups; ++g) {
    if (firsts_out != nullptr) firsts_out[place[g]] = first[g];
    if (counts_out != nullptr) counts_out[place[g]] = counts[g];
  }
  if (firsts_out != nullptr) std::fill(firsts_out + groups, firsts_out + s.items, 0);
  if (counts_out != nullptr) std::fill(counts_out + groups, counts_out + s.items, 0);
  if (count_out != nullptr) *count_out = groups;
  if (call.has_output(0)) {
    const TensorView& y = call.out(0);
    const size_t item = static_cast<size_t>(s.inner) * byte_width(x.dtype);
    if (y.size() > 0) std::memset(y.data, 0, static_cast<size_t>(y.dense_bytes()));
    for (int64_t o = 0; o < s.outer && item > 0; ++o)
      for (int64_t g = 0; g < groups; ++g)
        std::memcpy(y.data + static_cast<size_t>(o * s.items + place[g]) * item,
                    x.data + static_cast<size_t>(o * s.items + first[g]) * item, item);
  }
  return ok_status();
}

}  // namespace

const Kernel kUniqueKernel = reference_kernel({Op::kUnique, infer_unique, unique_workspace, run_unique});

}  // namespace sinter

// Compare and Where, broadcasting: every row has operands that are contiguous or one element. Results have
// the bits of the reference kernels.
#include <cstring>

#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/select.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#ifndef SINTER_SIMD_SELECT_ONCE
#define SINTER_SIMD_SELECT_ONCE
namespace sinter::simd {

// The operands of one row. Steps are in elements, 1 or 0.
struct CompareRow {
  const void *a, *b;
  uint8_t* y;
  int64_t a_step, b_step;
};
struct WhereRow {
  const uint8_t* condition;
  const void *a, *b;
  void* y;
  int64_t condition_step, a_step, b_step;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class Fn>
HWY_INLINE void compare_with(const CompareRow& row, size_t n, Fn fn) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<int8_t, decltype(d)> narrow;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto one = hn::Set(bytes, 1);
  const auto *a = static_cast<const T*>(row.a), *b = static_cast<const T*>(row.b);
  const auto first_a = hn::Set(d, *a), first_b = hn::Set(d, *b);
  const auto truth = [&](auto x, auto y) SINTER_SIMD_LAMBDA {
    const auto all = hn::BitCast(di, hn::VecFromMask(d, fn(x, y)));
    return hn::And(hn::BitCast(bytes, hn::DemoteTo(narrow, all)), one);
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (row.a_step != 0 && row.b_step != 0)
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(truth(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), bytes, row.y + i);
  else if (row.a_step != 0)
    for (; i + lanes <= n; i += lanes) hn::StoreU(truth(hn::LoadU(d, a + i), first_b), bytes, row.y + i);
  else
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(truth(first_a, row.b_step != 0 ? hn::LoadU(d, b + i) : first_b), bytes, row.y + i);
  if (i == n) return;
  const size_t rest = n - i;
  hn::StoreN(truth(row.a_step != 0 ? hn::LoadN(d, a + i, rest) : first_a,
                   row.b_step != 0 ? hn::LoadN(d, b + i, rest) : first_b),
             bytes, row.y + i, rest);
}

template <class T>
void compare_as(CompareFn fn, const CompareRow& row, size_t n) {
  switch (fn) {
    case CompareFn::kEqual:
      return compare_with<T>(row, n, [](auto x, auto y) SINTER_SIMD_LAMBDA { return hn::Eq(x, y); });
    case CompareFn::kNotEqual:  // hn::Ne is false for NaN
      return compare_with<T>(row, n, [](auto x, auto y) SINTER_SIMD_LAMBDA { return hn::Not(hn::Eq(x, y)); });
    case CompareFn::kLess:
      return compare_with<T>(row, n, [](auto x, auto y) SINTER_SIMD_LAMBDA { return hn::Lt(x, y); });
    case CompareFn::kLessOrEqual:
      return compare_with<T>(row, n, [](auto x, auto y) SINTER_SIMD_LAMBDA { return hn::Le(x, y); });
    case CompareFn::kGreater:
      return compare_with<T>(row, n, [](auto x, auto y) SINTER_SIMD_LAMBDA { return hn::Gt(x, y); });
    case CompareFn::kGreaterOrEqual:
      return compare_with<T>(row, n, [](auto x, auto y) SINTER_SIMD_LAMBDA { return hn::Ge(x, y); });
  }
}

void run_compare_row(DType type, CompareFn fn, const CompareRow& row, size_t n) {
  if (type == DType::kFloat32) return compare_as<float>(fn, row, n);
  if (type == DType::kInt32) return compare_as<int32_t>(fn, row, n);
  return compare_as<int64_t>(fn, row, n);
}

// A condition is true for every number but zero.
template <class D>
HWY_INLINE hn::Mask<D> holds(D d, const uint8_t* p) {
  if constexpr (sizeof(hn::TFromD<D>) == 1)
    return hn::Ne(hn::LoadU(d, p), hn::Zero(d));
  else
    return hn::Ne(hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint8_t, D>(), p)), hn::Zero(d));
}

template <class T>
void where_as(const WhereRow& row, size_t n) {
  const auto *a = static_cast<const T*>(row.a), *b = static_cast<const T*>(row.b);
  auto* y = static_cast<T*>(row.y);
  const hn::ScalableTag<T> d;
  const auto first_a = hn::Set(d, *a), first_b = hn::Set(d, *b);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (row.condition_step == 0) {
    const T* from = *row.condition != 0 ? a : b;
    if ((*row.condition != 0 ? row.a_step : row.b_step) != 0) {
      if (from != y) std::memcpy(y, from, n * sizeof(T));
      return;
    }
    const auto value = hn::Set(d, *from);
    for (; i + lanes <= n; i += lanes) hn::StoreU(value, d, y + i);
    if (i < n) hn::StoreN(value, d, y + i, n - i);
    return;
  }
  if (row.a_step == 0 && row.b_step == 0) {
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::IfThenElse(holds(d, row.condition + i), first_a, first_b), d, y + i);
  } else {
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::IfThenElse(holds(d, row.condition + i), row.a_step != 0 ? hn::LoadU(d, a + i) : first_a,
                                row.b_step != 0 ? hn::LoadU(d, b + i) : first_b),
                 d, y + i);
  }
  for (; i < n; ++i)
    y[i] = row.condition[i] != 0 ? a[static_cast<int64_t>(i) * row.a_step]
                                 : b[static_cast<int64_t>(i) * row.b_step];
}

void run_where_row(size_t width, const WhereRow& row, size_t n) {
  switch (width) {
    case 1:
      return where_as<uint8_t>(row, n);
    case 2:
      return where_as<uint16_t>(row, n);
    case 4:
      return where_as<uint32_t>(row, n);
    default:
      return where_as<uint64_t>(row, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(run_compare_row);
HWY_EXPORT(run_where_row);

constexpr int64_t kSelectPiece = 16384;

// The axes of the result, merged where every operand walks them as one, outermost first; strides in elements.
template <size_t kN>
struct Axes {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, strides[kN][kMaxRank] = {};

  explicit Axes(const OpCall& call) {
    const TensorView& y = call.out(0);
    for (int axis = 0; axis < y.rank; ++axis) {
      if (y.dims[axis] == 1) continue;
      int64_t step[kN];
      bool merges = rank > 0;
      for (size_t k = 0; k < kN; ++k) {
        const TensorView& v = call.in(k);
        const int own = axis - (y.rank - v.rank);
        step[k] =
            own < 0 || v.dims[own] == 1 ? 0 : v.strides[own] / static_cast<int64_t>(byte_width(v.dtype));
        merges = merges && strides[k][rank - 1] == step[k] * y.dims[axis];
      }
      if (!merges) dims[rank++] = 1;
      dims[rank - 1] *= y.dims[axis];
      for (size_t k = 0; k < kN; ++k) strides[k][rank - 1] = step[k];
    }
  }
};

// Calls row(offsets of the operands, offset of the result, steps, count), offsets in elements.
template <size_t kN, class Row>
void for_rows(const OpCall& call, RunContext& context, Row row) {
  const int64_t size = call.out(0).size();
  if (size == 0) return;
  const Axes<kN> axes(call);
  const int inner = std::max(axes.rank - 1, 0);
  const int64_t length = axes.rank > 0 ? axes.dims[inner] : 1;
  int64_t steps[kN];
  for (size_t k = 0; k < kN; ++k) steps[k] = axes.strides[k][inner];
  const int64_t piece = std::min(length, kSelectPiece), pieces = divide_up(length, piece);
  parallel_for(context.threads, size / length * pieces, std::max<int64_t>(kSelectPiece / piece, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t line = unit / pieces, first = unit % pieces * piece;
                   int64_t at[kN], rest = line;
                   for (size_t k = 0; k < kN; ++k) at[k] = first * steps[k];
                   for (int i = inner - 1; i >= 0; --i) {
                     const int64_t index = rest % axes.dims[i];
                     rest /= axes.dims[i];
                     for (size_t k = 0; k < kN; ++k) at[k] += index * axes.strides[k][i];
                   }
                   row(at, line * length + first, steps,
                       static_cast<size_t>(std::min(piece, length - first)));
                 }
               });
}

const std::byte* element(const TensorView& v, int64_t i) {
  return v.data + i * static_cast<int64_t>(byte_width(v.dtype));
}

Status check_dense(const OpCall& call) {
  for (const TensorView& v : call.inputs)
    SINTER_RETURN_UNLESS(v.dense(), unsupported("the simd kernel takes dense operands"));
  SINTER_RETURN_UNLESS(call.out(0).dense(), unsupported("the simd kernel takes dense operands"));
  return ok_status();
}

Status accept_compare(const OpCall& call) {
  const DType t = call.in(0).dtype;
  SINTER_RETURN_UNLESS(t == DType::kFloat32 || t == DType::kInt32 || t == DType::kInt64,
                       unsupported("the simd kernel compares float32, int32 and int64"));
  return check_dense(call);
}
Status run_compare(const OpCall& call, RunContext& context) {
  const auto fn = static_cast<CompareFn>(call.attrs<CompareAttrs>().fn);
  const TensorView &a = call.in(0), &b = call.in(1), &y = call.out(0);
  const auto run = HWY_DYNAMIC_POINTER(run_compare_row);
  for_rows<2>(call, context, [&](const int64_t* at, int64_t to, const int64_t* steps, size_t n) {
    run(a.dtype, fn, {element(a, at[0]), element(b, at[1]), y.as<uint8_t>() + to, steps[0], steps[1]}, n);
  });
  return ok_status();
}

Status accept_where(const OpCall& call) {
  const size_t width = byte_width(call.in(1).dtype);
  SINTER_RETURN_UNLESS(width == 1 || width == 2 || width == 4 || width == 8,
                       unsupported("only elements of 1, 2, 4 or 8 bytes"));
  return check_dense(call);
}
Status run_where(const OpCall& call, RunContext& context) {
  const TensorView &condition = call.in(0), &a = call.in(1), &b = call.in(2), &y = call.out(0);
  const auto run = HWY_DYNAMIC_POINTER(run_where_row);
  const size_t width = byte_width(y.dtype);
  for_rows<3>(call, context, [&](const int64_t* at, int64_t to, const int64_t* steps, size_t n) {
    run(width,
        {condition.as<const uint8_t>() + at[0], element(a, at[1]), element(b, at[2]),
         y.data + to * static_cast<int64_t>(width), steps[0], steps[1], steps[2]},
        n);
  });
  return ok_status();
}

}  // namespace

const Kernel kCompareKernel = {Op::kCompare, nullptr, nullptr, run_compare, accept_compare};
const Kernel kWhereKernel = {Op::kWhere, nullptr, nullptr, run_where, accept_where};

}  // namespace sinter::simd
#endif  // HWY_ONCE

// Resize of dense values. The last axis that changes, with all axes after it, makes a row. For each output
// row, the input rows of the other axes' taps are combined with their weights, then the row is resampled.
// Weights are computed in double and rounded to float32; nearest elements of any type are moved.
#include <cstring>

#include "platforms/simd/move/copy_rows.h"
#include "runtime/core/resize_taps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/resize.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_RESIZE_ONCE
#define SINTER_SIMD_RESIZE_ONCE
namespace sinter::simd {

// Resamples a row to `out` items of `inner` numbers each. Item o is the sum of `taps` items of the input row.
struct ResizeLine {
  const int64_t* index;  // [out][taps]
  const float* weight;   // [out][taps]
  int64_t out, taps, inner;
  bool has_zero;  // among the weights
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes y = a * wa + b * wb, added to y or instead of it; b may be null.
void combine_rows(const float* a, float wa, const float* b, float wb, bool adds, float* y, size_t n) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const V va = set(wa), vb = set(wb);
  const auto one = [&](size_t i, auto load) SINTER_SIMD_LAMBDA {
    V s = hn::Mul(load(a + i), va);
    if (b != nullptr) s = hn::MulAdd(load(b + i), vb, s);
    return adds ? hn::Add(load(y + i), s) : s;
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(one(i, [=](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadU(d, p); }), d, y + i);
  if (i == n) return;
  const size_t rest = n - i;
  hn::StoreN(one(i, [=](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadN(d, p, rest); }), d, y + i,
             rest);
}

// Resamples items of one number. A weight of zero takes nothing, not even NaN.
HWY_INLINE void resample_numbers(const ResizeLine& r, const float* x, float* y) {
  if (r.taps == 2 && !r.has_zero) {
    for (int64_t o = 0; o < r.out; ++o) {
      const float* w = r.weight + 2 * o;
      const int64_t* index = r.index + 2 * o;
      y[o] = w[0] * x[index[0]] + w[1] * x[index[1]];
    }
    return;
  }
  for (int64_t o = 0; o < r.out; ++o) {
    float sum = 0;
    for (int64_t t = o * r.taps; t < (o + 1) * r.taps; ++t)
      if (r.weight[t] != 0) sum += r.weight[t] * x[r.index[t]];
    y[o] = sum;
  }
}

// Resamples items of more numbers, side by side in vectors.
template <class D>
HWY_INLINE void resample_items(D d, const ResizeLine& r, const float* x, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t o = 0; o < r.out; ++o, y += r.inner) {
    for (int64_t c = 0; c < r.inner; c += lanes) {
      const bool whole = c + lanes <= r.inner;
      const auto count = static_cast<size_t>(r.inner - c);
      auto sum = hn::Zero(d);
      for (int64_t t = o * r.taps; t < (o + 1) * r.taps; ++t) {
        if (r.weight[t] == 0) continue;
        const float* p = x + r.index[t] * r.inner + c;
        sum = hn::MulAdd(whole ? hn::LoadU(d, p) : hn::LoadN(d, p, count), hn::Set(d, r.weight[t]), sum);
      }
      if (whole)
        hn::StoreU(sum, d, y + c);
      else
        hn::StoreN(sum, d, y + c, count);
    }
  }
}

void resample_line(const ResizeLine& r, const float* x, float* y) {
  if (r.inner == 1) return resample_numbers(r, x, y);
  if (r.inner <= 4) return resample_items(hn::FixedTag<float, 4>(), r, x, y);
  resample_items(F(), r, x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(combine_rows);
HWY_EXPORT(resample_line);

// The axes of a call and its rows: axes before `last` count rows, those after it are the items of a row.
struct ResizeRows {
  ResizeAxis axes[kMaxRank];
  int rank = 0, last = 0;
  int64_t rows = 1, inner = 1, row_in = 1, row_out = 1;
  int before = -1;      // the one axis before `last` that changes; -2: there are more
  int64_t between = 1;  // rows of the axes between that one and `last`
  bool nearest, combines = false, has_zero = false;
  float* weights = nullptr;  // of axis `last`, where it interpolates

  explicit ResizeRows(const OpCall& call) {
    const auto& a = call.attrs<ResizeAttrs>();
    const TensorView& x = call.in(0);
    resize_axes(a, x, axes);
    nearest = static_cast<ResizeMode>(a.mode) == ResizeMode::kNearest;
    rank = x.rank;
    for (int i = 0; i < rank; ++i)
      if (!axes[i].identity) last = i;
    for (int i = 0; i < rank; ++i) {
      if (i < last) rows *= axes[i].out;
      if (i > last) inner *= axes[i].in;
      if (i < last && axes[i].taps > 1) combines = true;
      if (i < last && !axes[i].identity) before = before == -1 ? i : -2;
    }
    for (int i = before + 1; before >= 0 && i < last; ++i) between *= axes[i].in;
    if (rank > 0) row_in = axes[last].in * inner, row_out = axes[last].out * inner;
  }
  bool whole_rows() const { return rank == 0 || axes[last].identity; }

  void take_tables(BumpArena& arena) {
    for (int i = 0; i < rank; ++i) take_resize_tables(arena, &axes[i]);
    if (nearest || whole_rows()) return;
    size_t n = 0;
    if (!checked_mul(static_cast<size_t>(axes[last].out), static_cast<size_t>(axes[last].taps), &n))
      n = SIZE_MAX;
    weights = arena.allocate_array<float>(n);
  }
  void fill_tables(const ResizeAttrs& a) {
    for (int i = 0; i < rank; ++i) fill_resize_tables(a, &axes[i]);
    if (weights == nullptr) return;
    for (int64_t t = 0; t < axes[last].out * axes[last].taps; ++t) {
      weights[t] = static_cast<float>(axes[last].weight[t]);
      has_zero = has_zero || weights[t] == 0;
    }
  }

  // Calls f(input row, weight) for the input rows that an output row combines.
  template <class F>
  void for_each_source(int64_t row, F f) const {
    if (before == -1) return f(row, 1.0);
    if (before >= 0) {
      const ResizeAxis& axis = axes[before];
      const int64_t line = row / between, outer = line / axis.out, at = (line - outer * axis.out) * axis.taps;
      for (int64_t t = at; t < at + axis.taps; ++t)
        if (axis.weight[t] != 0)
          f((outer * axis.in + axis.index[t]) * between + (row - line * between), axis.weight[t]);
      return;
    }
    int64_t position[kMaxRank] = {}, tap[kMaxRank] = {};
    for (int i = last - 1; i >= 0; --i) position[i] = row % axes[i].out, row /= axes[i].out;
    for (;;) {
      int64_t source = 0;
      double weight = 1;
      for (int i = 0; i < last; ++i) {
        const ResizeAxis& axis = axes[i];
        const int64_t at = position[i] * axis.taps + tap[i];
        source = source * axis.in + (axis.identity ? position[i] : axis.index[at]);
        if (!axis.identity) weight *= axis.weight[at];
      }
      if (weight != 0) f(source, weight);
      int i = last - 1;
      for (; i >= 0; --i) {
        if (++tap[i] < axes[i].taps) break;
        tap[i] = 0;
      }
      if (i < 0) return;
    }
  }
};

Status resize_needs(const OpCall& call, int thread_count, size_t* bytes) {
  *bytes = 0;
  if (call.out(0).size() == 0) return ok_status();
  ResizeRows r(call);
  BumpArena arena;
  r.take_tables(arena);
  if (r.combines)
    for (int t = 0; t < std::max(1, thread_count); ++t)
      arena.allocate_array<float>(static_cast<size_t>(r.row_in));
  SINTER_RETURN_UNLESS(!arena.exhausted(), unsupported("the tables of this resize are too large"));
  *bytes = arena.used();
  return ok_status();
}

// An output row with the same source as the row before is a copy of it.
void nearest_rows(const ResizeRows& r, const TensorView& x, const TensorView& y, int64_t begin, int64_t end) {
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  const int64_t item = r.inner * width;
  int64_t before = -1;
  for (int64_t row = begin; row < end; ++row) {
    std::byte* to = y.data + row * r.row_out * width;
    r.for_each_source(row, [&](int64_t source, double) {
      const std::byte* from = x.data + source * r.row_in * width;
      const auto bytes = static_cast<size_t>(r.row_out * width);
      if (r.whole_rows())
        std::memcpy(to, from, bytes);
      else if (source == before)
        std::memcpy(to, to - bytes, bytes);
      else
        copy_rows({from, to, item, item, static_cast<size_t>(item), static_cast<size_t>(r.axes[r.last].out),
                   r.axes[r.last].index});
      before = source;
    });
  }
}

// `room` holds a row of the input.
void interpolate_rows(const ResizeRows& r, const float* x, float* y, float* room, int64_t begin,
                      int64_t end) {
  const auto combine = HWY_DYNAMIC_POINTER(combine_rows);
  const auto resample = HWY_DYNAMIC_POINTER(resample_line);
  const ResizeAxis& axis = r.axes[r.last];
  const ResizeLine line = {axis.index, r.weights, axis.out, axis.taps, r.inner, r.has_zero};
  const auto length = static_cast<size_t>(r.row_in);
  for (int64_t row = begin; row < end; ++row) {
    float* to = y + row * r.row_out;
    float* sums = r.whole_rows() ? to : room;
    // Sources are added two at a time.
    const float* waiting = nullptr;
    float waiting_weight = 0;
    bool adds = false;
    r.for_each_source(row, [&](int64_t source, double weight) {
      const float* from = x + source * r.row_in;
      if (waiting == nullptr) {
        waiting = from, waiting_weight = static_cast<float>(weight);
        return;
      }
      combine(waiting, waiting_weight, from, static_cast<float>(weight), adds, sums, length);
      waiting = nullptr, adds = true;
    });
    const float* combined = sums;
    if (waiting != nullptr && !adds && waiting_weight == 1)
      combined = waiting;
    else if (waiting != nullptr)
      combine(waiting, waiting_weight, nullptr, 0, adds, sums, length);
    else if (!adds)
      std::memset(sums, 0, length * sizeof(float));
    if (!r.whole_rows())
      resample(line, combined, to);
    else if (combined != to)
      std::memcpy(to, combined, length * sizeof(float));
  }
}

Status accept_resize(const OpCall& call) {
  const auto& a = call.attrs<ResizeAttrs>();
  const TensorView& x = call.in(0);
  const bool nearest = static_cast<ResizeMode>(a.mode) == ResizeMode::kNearest;
  SINTER_RETURN_UNLESS(x.dense() && call.out(0).dense(), unsupported("the simd kernel takes dense operands"));
  SINTER_RETURN_UNLESS(nearest ? byte_width(x.dtype) != 0 : x.dtype == DType::kFloat32,
                       unsupported("the simd kernel interpolates float32"));
  SINTER_RETURN_UNLESS(static_cast<ResizeCoordinates>(a.coordinates) != ResizeCoordinates::kTfCropAndResize,
                       unsupported("the simd kernel does not crop"));
  return ok_status();
}

Status run_resize(const OpCall& call, RunContext& context) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (y.size() == 0) return ok_status();
  ResizeRows r(call);
  BumpArena arena(context.workspace);
  r.take_tables(arena);
  if (arena.exhausted()) return error(Code::kInternal, "the workspace is too small");
  r.fill_tables(call.attrs<ResizeAttrs>());
  const int64_t grain = std::max<int64_t>(8192 / r.row_out, 1);
  if (r.nearest) {
    parallel_for(context.threads, r.rows, grain,
                 [&](int64_t begin, int64_t end) { nearest_rows(r, x, y, begin, end); });
    return ok_status();
  }
  const auto* from = x.as<const float>();
  auto* to = y.as<float>();
  if (!r.combines) {
    parallel_for(context.threads, r.rows, grain,
                 [&](int64_t begin, int64_t end) { interpolate_rows(r, from, to, nullptr, begin, end); });
    return ok_status();
  }
  // Each share of the rows has its own room.
  const auto row_bytes = static_cast<size_t>(r.row_in) * sizeof(float);
  const size_t used = align_up(arena.used(), alignof(float));
  SINTER_RETURN_UNLESS(used + row_bytes <= context.workspace.size(),
                       error(Code::kInternal, "the workspace is too small"));
  const auto rooms = static_cast<int64_t>((context.workspace.size() - used) / row_bytes);
  const int64_t shares = std::min({threads_of(context.threads), rooms, divide_up(r.rows, grain)});
  auto* room = reinterpret_cast<float*>(context.workspace.data() + used);
  parallel_slots(context.threads, shares, r.rows, [&](int64_t slot, int64_t begin, int64_t end) {
    interpolate_rows(r, from, to, room + slot * r.row_in, begin, end);
  });
  return ok_status();
}

}  // namespace

const Kernel kResizeKernel = {Op::kResize, nullptr, resize_needs, run_resize, accept_resize};

}  // namespace sinter::simd
#endif  // HWY_ONCE

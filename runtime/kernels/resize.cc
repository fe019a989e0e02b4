// Resize. The last axis that changes, with all axes after it, makes a row; per output row the rows that the
// other axes name are combined with their weights, then the row itself is resampled. Sums are in double.
#include <cmath>

#include "runtime/core/resize_taps.h"
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

constexpr int64_t kResizedAtOnce = 64;

// A thread's share of the rows, with its own room for a combined row.
struct Plan {
  ResizeAxis axes[kMaxRank];
  int rank = 0;
  int last = 0;  // the row's first axis
  int64_t rows = 1, inner = 1, row_in = 1, row_out = 1;
  bool combines = false;  // an axis before `last` has more than one tap
  bool empty = false;

  void make(const ResizeAttrs& a, const TensorView& x) {
    resize_axes(a, x, axes);
    rank = x.rank;
    for (int i = 0; i < rank; ++i) {
      if (!axes[i].identity) last = i;
      if (axes[i].out == 0) empty = true;
    }
    if (empty) return;
    for (int i = 0; i < rank; ++i) {
      if (i < last) rows *= axes[i].out;
      if (i > last) inner *= axes[i].in;
      if (i < last && axes[i].taps > 1) combines = true;
    }
    if (rank > 0) row_in = axes[last].in * inner, row_out = axes[last].out * inner;
  }
  void take_tables(BumpArena& arena) {
    for (int i = 0; i < rank; ++i) take_resize_tables(arena, &axes[i]);
  }
};

Status infer_resize(OpCall& call) {
  const auto& a = call.attrs<ResizeAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(a.mode, 3));
  SINTER_RETURN_IF_ERROR(check_code(a.coordinates, 7));
  SINTER_RETURN_IF_ERROR(check_code(a.nearest_mode, 4));
  SINTER_RETURN_IF_ERROR(check_code(a.exclude_outside, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.antialias, 2));
  const bool nearest = a.mode == static_cast<int64_t>(ResizeMode::kNearest);
  const bool crop = a.coordinates == static_cast<int64_t>(ResizeCoordinates::kTfCropAndResize);
  SINTER_RETURN_UNLESS(!nearest || a.antialias == 0, invalid("mode nearest cannot be antialiased"));
  if (!nearest) SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype)));
  SINTER_RETURN_UNLESS(a.sizes.size() == x.rank && a.scales.size() == x.rank,
                       invalid("%a sizes are not one for each axis of rank %b", a.sizes.size(), x.rank));
  SINTER_RETURN_UNLESS(
      crop ? a.roi.size() == 2 * x.rank : (a.roi.empty() || a.roi.size() == 2 * x.rank),
      invalid("%a numbers do not give a region of a value of rank %b", a.roi.size(), x.rank));
  for (const double r : a.roi) SINTER_RETURN_UNLESS(std::isfinite(r), invalid("the region is not finite"));
  SINTER_RETURN_UNLESS(std::isfinite(a.cubic_coeff_a), invalid("the cubic coefficient is not finite"));
  for (int i = 0; i < x.rank; ++i) {
    SINTER_RETURN_UNLESS(std::isfinite(a.scales[i]) && a.scales[i] > 0,
                         invalid("the scale of axis %a is not positive", i));
    SINTER_RETURN_UNLESS(a.antialias == 0 || a.scales[i] >= 0x1p-20,
                         unsupported("axis %a shrinks too far to antialias", i));
    SINTER_RETURN_UNLESS(a.sizes[i] >= 0 && a.sizes[i] < int64_t{1} << 40,
                         invalid("axis %a of %b elements", i, a.sizes[i]));
    SINTER_RETURN_UNLESS(x.dims[i] < int64_t{1} << 40, unsupported("axis %a of %b elements", i, x.dims[i]));
    SINTER_RETURN_UNLESS(x.dims[i] > 0 || a.sizes[i] == 0,
                         invalid("an empty axis cannot become %a elements long", a.sizes[i]));
  }
  return give_output(call, 0, x.dtype, a.sizes.span());
}

Status resize_workspace(const OpCall& call, int thread_count, size_t* bytes) {
  const auto& a = call.attrs<ResizeAttrs>();
  Plan plan;
  plan.make(a, call.in(0));
  BumpArena arena;
  if (!plan.empty) {
    plan.take_tables(arena);
    if (plan.combines)
      for (int t = 0; t < std::max(1, thread_count); ++t)
        arena.allocate_array<double>(static_cast<size_t>(plan.row_in));
  }
  SINTER_RETURN_UNLESS(!arena.exhausted(), unsupported("the tables of this resize are too large"));
  *bytes = arena.used();
  return ok_status();
}

// Rounds to the nearest representable value, ties to even.
template <class T>
T from_double(double v) {
  if constexpr (kIsFloatElement<T>) {
    return static_cast<T>(v);
  } else {
    if (v != v) return 0;
    const double r = std::nearbyint(v);
    if (r <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (r >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
  }
}

// Finds output row `row`'s position along the axes before the row.
void row_position(const Plan& plan, int64_t row, int64_t* position) {
  for (int i = plan.last - 1; i >= 0; --i) {
    position[i] = row % plan.axes[i].out;
    row /= plan.axes[i].out;
  }
}

bool row_outside(const Plan& plan, const int64_t* position) {
  for (int i = 0; i < plan.last; ++i)
    if (!plan.axes[i].identity && plan.axes[i].outside[position[i]] != 0) return true;
  return false;
}

// Calls f(input row, weight) for every input row that an output row combines.
template <class F>
void for_each_source(const Plan& plan, const int64_t* position, F&& f) {
  int64_t tap[kMaxRank] = {};
  for (;;) {
    int64_t row = 0;
    double weight = 1;
    for (int i = 0; i < plan.last; ++i) {
      const ResizeAxis& axis = plan.axes[i];
      const int64_t at = position[i] * axis.taps + tap[i];
      row = row * axis.in + (axis.identity ? position[i] : axis.index[at]);
      if (!axis.identity) weight *= axis.weight[at];
    }
    if (weight != 0) f(row, weight);
    int i = plan.last - 1;
    for (; i >= 0; --i) {
      if (++tap[i] < plan.axes[i].taps) break;
      tap[i] = 0;
    }
    if (i < 0) return;
  }
}

// Computes one row of the output from one (combined) row of the input.
template <class T, class Source>
void resample(const Plan& plan, const Source* from, T fill, T* to) {
  const int64_t inner = plan.inner;
  if (plan.rank == 0 || plan.axes[plan.last].identity) {
    for (int64_t i = 0; i < plan.row_out; ++i) to[i] = from_double<T>(static_cast<double>(from[i]));
    return;
  }
  const ResizeAxis& axis = plan.axes[plan.last];
  double sum[kResizedAtOnce];
  for (int64_t o = 0; o < axis.out; ++o, to += inner) {
    if (axis.outside[o] != 0) {
      std::fill(to, to + inner, fill);
      continue;
    }
    const int64_t* index = axis.index + o * axis.taps;
    const double* weight = axis.weight + o * axis.taps;
    if (inner == 1) {
      double total = 0;
      for (int64_t t = 0; t < axis.taps; ++t)
        if (weight[t] != 0) total += weight[t] * static_cast<double>(from[index[t]]);
      *to = from_double<T>(total);
      continue;
    }
    for (int64_t k0 = 0; k0 < inner; k0 += kResizedAtOnce) {
      const int64_t n = std::min(kResizedAtOnce, inner - k0);
      std::fill(sum, sum + n, 0.0);
      for (int64_t t = 0; t < axis.taps; ++t) {
        if (weight[t] == 0) continue;
        const Source* p = from + index[t] * inner + k0;
        for (int64_t k = 0; k < n; ++k) sum[k] += weight[t] * static_cast<double>(p[k]);
      }
      for (int64_t k = 0; k < n; ++k) to[k0 + k] = from_double<T>(sum[k]);
    }
  }
}

template <class T>
void interpolate_row(const Plan& plan, const TensorView& x, const TensorView& y, T fill, int64_t row,
                     double* room) {
  int64_t position[kMaxRank] = {};
  row_position(plan, row, position);
  T* to = y.as<T>() + row * plan.row_out;
  if (row_outside(plan, position)) {
    std::fill(to, to + plan.row_out, fill);
    return;
  }
  if (!plan.combines) {
    for_each_source(plan, position,
                    [&](int64_t from, double) { resample(plan, x.as<T>() + from * plan.row_in, fill, to); });
    return;
  }
  std::fill(room, room + plan.row_in, 0.0);
  for_each_source(plan, position, [&](int64_t from, double weight) {
    const T* p = x.as<T>() + from * plan.row_in;
    for (int64_t k = 0; k < plan.row_in; ++k) room[k] += weight * static_cast<double>(p[k]);
  });
  resample(plan, room, fill, to);
}

void nearest_row(const Plan& plan, const TensorView& x, const TensorView& y, const std::byte* fill,
                 int64_t row) {
  const size_t width = byte_width(x.dtype), item = static_cast<size_t>(plan.inner) * width;
  int64_t position[kMaxRank] = {};
  row_position(plan, row, position);
  std::byte* to = y.data + static_cast<size_t>(row * plan.row_out) * width;
  const bool all_outside = row_outside(plan, position);
  for_each_source(plan, position, [&](int64_t source, double) {
    const std::byte* from = x.data + static_cast<size_t>(source * plan.row_in) * width;
    const bool whole = plan.rank == 0 || plan.axes[plan.last].identity;
    if (whole && !all_outside) {
      std::memcpy(to, from, static_cast<size_t>(plan.row_out) * width);
      return;
    }
    const ResizeAxis* axis = plan.rank == 0 ? nullptr : &plan.axes[plan.last];
    const int64_t outs = plan.row_out / plan.inner;
    if (plan.inner == 1 && !all_outside) {
      const Status copied = for_width(width, [&](auto tag) {
        using W = typename decltype(tag)::type;
        constexpr int64_t kWidth = sizeof(W);
        for (int64_t o = 0; o < outs; ++o)
          store<W>(to + o * kWidth, load<W>(axis->outside[o] != 0 ? fill : from + axis->index[o] * kWidth));
        return ok_status();
      });
      if (copied.ok()) return;
    }
    for (int64_t o = 0; o < outs; ++o, to += item) {
      if (all_outside || axis->outside[o] != 0)
        for (size_t k = 0; k < item; k += width) std::memcpy(to + k, fill, width);
      else
        std::memcpy(to, from + static_cast<size_t>(axis->index[o]) * item, item);
    }
  });
}

Status run_resize(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<ResizeAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  if (y.size() == 0) return ok_status();
  Plan plan;
  plan.make(a, x);
  BumpArena arena(context.workspace);
  plan.take_tables(arena);
  if (arena.exhausted()) return error(Code::kInternal, "the workspace is too small");
  for (int i = 0; i < plan.rank; ++i) fill_resize_tables(a, &plan.axes[i]);

  const bool crop = a.coordinates == static_cast<int64_t>(ResizeCoordinates::kTfCropAndResize);
  if (static_cast<ResizeMode>(a.mode) == ResizeMode::kNearest) {
    std::byte fill[8] = {};
    if (crop)
      SINTER_RETURN_IF_ERROR(for_number_or_bool(x.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, bool>)
          store<T>(fill, a.extrapolation_value != 0);
        else
          store<T>(fill, from_double<T>(a.extrapolation_value));
        return ok_status();
      }));
    parallel_for(context.threads, plan.rows, std::max<int64_t>(1, 4096 / plan.row_out),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) nearest_row(plan, x, y, fill, row);
                 });
    return ok_status();
  }
  return for_number_or_half(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T fill = from_double<T>(a.extrapolation_value);
    // Each share of the rows has its own room.
    int64_t shares = context.threads != nullptr ? std::max(1, context.threads->thread_count()) : 1;
    double* room = nullptr;
    if (plan.combines) {
      const size_t used = align_up(arena.used(), alignof(double));
      const size_t row_bytes = static_cast<size_t>(plan.row_in) * sizeof(double);
      if (used + row_bytes > context.workspace.size())
        return error(Code::kInternal, "the workspace is too small");
      shares = std::min(shares, static_cast<int64_t>((context.workspace.size() - used) / row_bytes));
      room = reinterpret_cast<double*>(context.workspace.data() + used);
    }
    shares = std::min(shares, plan.rows);
    parallel_for(context.threads, shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = plan.rows / shares * s + std::min(s, plan.rows % shares),
                      last = first + plan.rows / shares + (s < plan.rows % shares ? 1 : 0);
        for (int64_t row = first; row < last; ++row)
          interpolate_row<T>(plan, x, y, fill, row, room == nullptr ? nullptr : room + s * plan.row_in);
      }
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kResizeKernel = reference_kernel({Op::kResize, infer_resize, resize_workspace, run_resize});

}  // namespace sinter

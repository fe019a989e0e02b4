// LayerNorm, RmsNorm and GroupNorm: mean, then the mean of squared distances from it, then the result.
//
// Sums run in float32 over short pieces; the pieces are added in double, in a fixed order.
#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

#ifndef SINTER_SIMD_NORM_ONCE
#define SINTER_SIMD_NORM_ONCE
namespace sinter::simd {

// Rows of n numbers. mean and inverse (1 / deviation) are per row and may be null; bias too.
struct NormRows {
  const float *x, *scale, *bias;
  float *y, *mean, *inverse;
  size_t rows, n;
  double epsilon;
  bool centered;
};

// Pixels of `channels` numbers each.
struct Pixels {
  const float* x;
  size_t count, channels;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr size_t kPieceLength = 1024;

// Sum of (x - center)^2, or of x where `squares` is false.
template <bool kSquares>
HWY_INLINE double sum_of(const float* x, size_t n, float center) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const V c = set(center);
  const auto term = [&](V v) SINTER_SIMD_LAMBDA {
    if constexpr (!kSquares) return v;
    v = hn::Sub(v, c);
    return hn::Mul(v, v);
  };
  double total = 0;
  for (size_t first = 0; first < n; first += kPieceLength) {
    const size_t end = first + kPieceLength < n ? first + kPieceLength : n;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    size_t i = first;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, term(hn::LoadU(d, x + i)));
      s1 = hn::Add(s1, term(hn::LoadU(d, x + i + lanes)));
      s2 = hn::Add(s2, term(hn::LoadU(d, x + i + 2 * lanes)));
      s3 = hn::Add(s3, term(hn::LoadU(d, x + i + 3 * lanes)));
    }
    for (; i < end; i += lanes) {
      const size_t count = end - i < lanes ? end - i : lanes;
      s0 = hn::Add(s0, hn::IfThenElseZero(hn::FirstN(d, count), term(hn::LoadN(d, x + i, count))));
    }
    total += static_cast<double>(sum4(s0, s1, s2, s3));
  }
  return total;
}

void norm_rows(const NormRows& p) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < p.rows; ++r) {
    const float* x = p.x + r * p.n;
    float* y = p.y + r * p.n;
    const double n = static_cast<double>(p.n);
    const float mean = p.centered ? static_cast<float>(sum_of<false>(x, p.n, 0) / n) : 0.0f;
    const float inverse = static_cast<float>(1 / std::sqrt(sum_of<true>(x, p.n, mean) / n + p.epsilon));
    if (p.mean != nullptr) p.mean[r] = mean;
    if (p.inverse != nullptr) p.inverse[r] = inverse;
    const V m = set(mean), k = set(inverse);
    for (size_t i = 0; i < p.n; i += lanes) {
      const size_t count = p.n - i < lanes ? p.n - i : lanes;
      const V v = hn::Mul(hn::Sub(hn::LoadN(d, x + i, count), m), k);
      const V scale = hn::LoadN(d, p.scale + i, count);
      const V result =
          p.bias != nullptr ? hn::MulAdd(v, scale, hn::LoadN(d, p.bias + i, count)) : hn::Mul(v, scale);
      hn::StoreN(result, d, y + i, count);
    }
  }
}

// Per channel: the sum over the pixels of x (center null) or of (x - center)^2.
void channel_sums(const Pixels& p, const float* center, double* sums) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kRun = 64;  // pixels summed in float32
  HWY_ALIGN float piece[hn::MaxLanes(F())];
  for (size_t c = 0; c < p.channels; ++c) sums[c] = 0;
  for (size_t first = 0; first < p.count; first += kRun) {
    const size_t end = first + kRun < p.count ? first + kRun : p.count;
    for (size_t c = 0; c < p.channels; c += lanes) {
      const size_t count = p.channels - c < lanes ? p.channels - c : lanes;
      V s = hn::Zero(d);
      const float* x = p.x + first * p.channels + c;
      if (center == nullptr) {
        for (size_t i = first; i < end; ++i, x += p.channels) s = hn::Add(s, hn::LoadN(d, x, count));
      } else {
        const V m = hn::LoadN(d, center + c, count);
        for (size_t i = first; i < end; ++i, x += p.channels) {
          const V v = hn::Sub(hn::LoadN(d, x, count), m);
          s = hn::MulAdd(v, v, s);
        }
      }
      hn::Store(s, d, piece);
      for (size_t i = 0; i < count; ++i) sums[c + i] += static_cast<double>(piece[i]);
    }
  }
}

// y = (x - mean) * factor + bias, per channel.
void channel_affine(const Pixels& p, const float* mean, const float* factor, const float* bias, float* y) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < p.count; ++i) {
    const float* x = p.x + i * p.channels;
    float* to = y + i * p.channels;
    size_t c = 0;
    for (; c + lanes <= p.channels; c += lanes) {
      const V v = hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, mean + c));
      hn::StoreU(hn::MulAdd(v, hn::LoadU(d, factor + c), hn::LoadU(d, bias + c)), d, to + c);
    }
    if (c < p.channels) {
      const size_t n = p.channels - c;
      const V v = hn::Sub(hn::LoadN(d, x + c, n), hn::LoadN(d, mean + c, n));
      hn::StoreN(hn::MulAdd(v, hn::LoadN(d, factor + c, n), hn::LoadN(d, bias + c, n)), d, to + c, n);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(norm_rows);
HWY_EXPORT(channel_sums);
HWY_EXPORT(channel_affine);

// `v` has exactly one value for each element of x's dims axis .. rank - 1.
Status check_covers(const TensorView& v, const TensorView& x, int64_t axis) {
  for (int i = 0; i < std::max(x.rank, v.rank); ++i) {
    const int64_t own = i < v.rank ? v.dims[v.rank - 1 - i] : 1;
    const int64_t needed = i < x.rank - axis ? x.dims[x.rank - 1 - i] : 1;
    SINTER_RETURN_UNLESS(own == needed, unsupported("scale or bias is broadcast"));
  }
  return ok_status();
}

Status accept_rows(const OpCall& call, int64_t axis) {
  SINTER_RETURN_IF_ERROR(accept_float_dense(call));
  for (int64_t i = axis; i < call.in(0).rank; ++i)
    SINTER_RETURN_UNLESS(call.in(0).dims[i] > 0, unsupported("the rows have no elements"));
  for (size_t i = 1; i < 3; ++i)
    if (call.has_input(i)) SINTER_RETURN_IF_ERROR(check_covers(call.in(i), call.in(0), axis));
  return ok_status();
}

Status run_rows(const OpCall& call, RunContext& context, int64_t axis, double epsilon, bool centered) {
  const TensorView& x = call.in(0);
  int64_t n = 1;
  for (int64_t i = axis; i < x.rank; ++i) n *= x.dims[i];
  if (x.size() == 0) return ok_status();
  const auto at = [&](size_t i) { return call.has_output(i) ? call.out(i).as<float>() : nullptr; };
  parallel_for(
      context.threads, x.size() / n, std::max<int64_t>(8192 / n, 1), [&](int64_t begin, int64_t end) {
        HWY_DYNAMIC_DISPATCH(norm_rows)
        ({x.as<const float>() + begin * n, call.in(1).as<const float>(),
          call.has_input(2) ? call.in(2).as<const float>() : nullptr, call.out(0).as<float>() + begin * n,
          at(1) != nullptr ? at(1) + begin : nullptr, at(2) != nullptr ? at(2) + begin : nullptr,
          static_cast<size_t>(end - begin), static_cast<size_t>(n), epsilon, centered});
      });
  return ok_status();
}

Status accept_layer(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.has_output(0), unsupported("the simd kernel does not compute statistics alone"));
  return accept_rows(call, call.attrs<LayerNormAttrs>().axis);
}
Status run_layer(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<LayerNormAttrs>();
  return run_rows(call, context, a.axis, a.epsilon, true);
}
Status accept_rms(const OpCall& call) { return accept_rows(call, call.attrs<RmsNormAttrs>().axis); }
Status run_rms(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<RmsNormAttrs>();
  return run_rows(call, context, a.axis, a.epsilon, false);
}

constexpr int64_t kChunk =
    1024;  // pixels that one thread sums; fixed, so that results do not depend on threads

struct GroupPlan {
  int64_t batch, pixels, channels, chunks;
  // Workspace: partial sums [batch * chunks, channels] as double; mean and factor [batch, channels] as float.
  int64_t partials() const { return batch * chunks * channels; }
};
GroupPlan group_plan(const OpCall& call) {
  const TensorView& x = call.in(0);
  GroupPlan p{x.dims[0], 1, x.dims[x.rank - 1], 0};
  for (int i = 1; i + 1 < x.rank; ++i) p.pixels *= x.dims[i];
  p.chunks = divide_up(p.pixels, kChunk);
  return p;
}

Status group_workspace(const OpCall& call, int, size_t* bytes) {
  const GroupPlan p = group_plan(call);
  *bytes = static_cast<size_t>(p.partials()) * sizeof(double) +
           2 * static_cast<size_t>(p.batch * p.channels) * sizeof(float);
  return ok_status();
}

Status run_group(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<GroupNormAttrs>();
  const GroupPlan p = group_plan(call);
  if (call.in(0).size() == 0) return ok_status();
  const auto *x = call.in(0).as<const float>(), *scale = call.in(1).as<const float>();
  const auto channels = static_cast<size_t>(p.channels);
  auto* partials = reinterpret_cast<double*>(context.workspace.data());
  auto* mean = reinterpret_cast<float*>(partials + p.partials());
  float* factor = mean + p.batch * p.channels;
  const auto pixels_of = [&](int64_t unit) {
    const int64_t first = unit % p.chunks * kChunk;
    return Pixels{x + (unit / p.chunks * p.pixels + first) * p.channels,
                  static_cast<size_t>(std::min(kChunk, p.pixels - first)), channels};
  };
  const auto sum = [&](bool centered) {
    parallel_for(context.threads, p.batch * p.chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) HWY_DYNAMIC_DISPATCH(channel_sums)
      (pixels_of(unit), centered ? mean + unit / p.chunks * p.channels : nullptr,
       partials + unit * p.channels);
    });
  };
  // Sum of all partials of sample b's channels first .. end - 1.
  const auto group_mean = [&](int64_t b, int64_t first, int64_t end) {
    double total = 0;
    for (int64_t chunk = b * p.chunks; chunk < (b + 1) * p.chunks; ++chunk)
      for (int64_t c = first; c < end; ++c) total += partials[chunk * p.channels + c];
    return total / static_cast<double>((end - first) * p.pixels);
  };
  const int64_t per_group = p.channels / a.groups;
  const auto each_group = [&](auto f) {
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t first = 0; first < p.channels; first += per_group) {
        const double value = group_mean(b, first, first + per_group);
        for (int64_t c = first; c < first + per_group; ++c) f(b * p.channels + c, c, value);
      }
  };
  sum(false);
  each_group([&](int64_t at, int64_t, double value) { mean[at] = static_cast<float>(value); });
  sum(true);
  each_group([&](int64_t at, int64_t c, double value) {
    factor[at] = static_cast<float>(static_cast<double>(scale[c]) / std::sqrt(value + a.epsilon));
  });
  parallel_for(context.threads, p.batch * p.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const Pixels from = pixels_of(unit);
      const int64_t b = unit / p.chunks * p.channels;
      HWY_DYNAMIC_DISPATCH(channel_affine)
      (from, mean + b, factor + b, call.in(2).as<const float>(), call.out(0).as<float>() + (from.x - x));
    }
  });
  return ok_status();
}

}  // namespace

const Kernel kLayerNormKernel = {Op::kLayerNorm, nullptr, nullptr, run_layer, accept_layer};
const Kernel kRmsNormKernel = {Op::kRmsNorm, nullptr, nullptr, run_rms, accept_rms};
const Kernel kGroupNormKernel = {Op::kGroupNorm, nullptr, group_workspace, run_group, accept_float_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE

// GroupNorm: the sums and sums of squares of each channel in one pass over memory, the result in a second.
//
// Short pieces are summed in float32, as distances from the piece's own mean; pieces are added in float64, in
// a fixed order.
#include "platforms/simd/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/group_norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

#ifndef SINTER_SIMD_GROUP_NORM_ONCE
#define SINTER_SIMD_GROUP_NORM_ONCE
namespace sinter::simd {

// Pixels of `channels` numbers each.
struct Pixels {
  const float* x;
  size_t count, channels;
};
struct Sums {
  double x, squares;
};
// y = (x - mean) * factor + bias, per channel.
struct ChannelAffine {
  const float *mean, *factor, *bias;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The pixels summed in float32, and the channels read together: a piece stays in the first cache.
constexpr size_t kPiece = 64, kTile = 64;

// Sums a tile's channels over a piece, read in the order of memory.
HWY_INLINE void piece_sums(const float* x, size_t count, size_t channels, size_t width, float* sums) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < width; c += lanes) hn::Store(hn::Zero(d), d, sums + c);
  for (size_t i = 0; i < count; i += 4, x += 4 * channels) {
    const size_t left = count - i;
    for (size_t c = 0; c < width; c += lanes) {
      const size_t n = std::min(lanes, width - c);
      const auto load = [&](size_t pixel) SINTER_SIMD_LAMBDA {
        if (pixel >= left) return hn::Zero(d);
        const float* at = x + pixel * channels + c;
        return HWY_LIKELY(n == lanes) ? hn::LoadU(d, at) : hn::LoadN(d, at, n);
      };
      const V four = hn::Add(hn::Add(load(0), load(1)), hn::Add(load(2), load(3)));
      hn::Store(hn::Add(hn::Load(d, sums + c), four), d, sums + c);
    }
  }
}

// Adds a piece of up to a vector of channels, whose sums are known, to `to`.
template <class Load>
HWY_INLINE void add_piece(const float* x, size_t count, size_t channels, size_t width, const float* sums,
                          const Load& load, Sums* to) {
  const F d;
  HWY_ALIGN float means[hn::MaxLanes(F())], rests[hn::MaxLanes(F())], squares[hn::MaxLanes(F())];
  const V mean = hn::Mul(hn::Load(d, sums), set(1.0f / static_cast<float>(count)));
  V r0 = hn::Zero(d), r1 = r0, s0 = r0, s1 = r0;
  size_t i = 0;
  for (; i + 2 <= count; i += 2, x += 2 * channels) {
    const V a = hn::Sub(load(x), mean), b = hn::Sub(load(x + channels), mean);
    r0 = hn::Add(r0, a), s0 = hn::MulAdd(a, a, s0);
    r1 = hn::Add(r1, b), s1 = hn::MulAdd(b, b, s1);
  }
  if (i < count) {
    const V a = hn::Sub(load(x), mean);
    r0 = hn::Add(r0, a), s0 = hn::MulAdd(a, a, s0);
  }
  hn::Store(mean, d, means);
  hn::Store(hn::Add(r0, r1), d, rests);
  hn::Store(hn::Add(s0, s1), d, squares);
  const auto n = static_cast<double>(count);
  for (size_t c = 0; c < width; ++c) {
    const double m = static_cast<double>(means[c]), rest = static_cast<double>(rests[c]);
    to[c].x += n * m + rest;
    to[c].squares += static_cast<double>(squares[c]) + m * (2 * rest + n * m);
  }
}

// Sums each channel.
void channel_sums(const Pixels& p, Sums* sums) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN float tile[kTile];
  for (size_t c = 0; c < p.channels; ++c) sums[c] = {};
  for (size_t first = 0; first < p.count; first += kPiece)
    for (size_t start = 0; start < p.channels; start += kTile) {
      const size_t count = std::min(kPiece, p.count - first), width = std::min(kTile, p.channels - start);
      const float* x = p.x + first * p.channels + start;
      piece_sums(x, count, p.channels, width, tile);
      for (size_t c = 0; c < width; c += lanes) {
        const size_t n = std::min(lanes, width - c);
        if (HWY_LIKELY(n == lanes))
          add_piece(
              x + c, count, p.channels, n, tile + c,
              [&](const float* at) SINTER_SIMD_LAMBDA { return hn::LoadU(d, at); }, sums + start + c);
        else
          add_piece(
              x + c, count, p.channels, n, tile + c,
              [&](const float* at) SINTER_SIMD_LAMBDA { return hn::LoadN(d, at, n); }, sums + start + c);
      }
    }
}

void channel_affine(const Pixels& p, const ChannelAffine& a, float* y) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const float* x = p.x;
  for (size_t i = 0; i < p.count; ++i, x += p.channels, y += p.channels) {
    size_t c = 0;
    for (; c + lanes <= p.channels; c += lanes) {
      const V v = hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, a.mean + c));
      hn::StoreU(hn::MulAdd(v, hn::LoadU(d, a.factor + c), hn::LoadU(d, a.bias + c)), d, y + c);
    }
    if (c < p.channels) {
      const size_t n = p.channels - c;
      const V v = hn::Sub(hn::LoadN(d, x + c, n), hn::LoadN(d, a.mean + c, n));
      hn::StoreN(hn::MulAdd(v, hn::LoadN(d, a.factor + c, n), hn::LoadN(d, a.bias + c, n)), d, y + c, n);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(channel_sums);
HWY_EXPORT(channel_affine);

// The pixels that one thread sums. The number is fixed, so that results do not depend on threads.
constexpr int64_t kChunk = 1024;

struct GroupPlan {
  int64_t batch = 0, pixels = 0, channels = 0, chunks = 0;
  int64_t partials() const { return batch * chunks * channels; }
};
GroupPlan group_plan(const OpCall& call) {
  const TensorView& x = call.in(0);
  if (x.size() == 0) return {};
  GroupPlan p{x.dims[0], 1, x.dims[x.rank - 1], 0};
  for (int i = 1; i + 1 < x.rank; ++i) p.pixels *= x.dims[i];
  p.chunks = divide_up(p.pixels, kChunk);
  return p;
}

// The workspace has partial sums [batch * chunks, channels]; mean, factor and bias [batch, channels].
Status workspace(const OpCall& call, int, size_t* bytes) {
  const GroupPlan p = group_plan(call);
  int64_t sums = 0, numbers = 0;
  SINTER_RETURN_UNLESS(checked_mul<int64_t>(p.partials(), sizeof(Sums), &sums) &&
                           checked_mul<int64_t>(p.batch * p.channels, 3 * sizeof(float), &numbers) &&
                           checked_add(sums, numbers, &sums),
                       too_much_workspace());
  *bytes = static_cast<size_t>(sums);
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<GroupNormAttrs>();
  const GroupPlan p = group_plan(call);
  if (call.in(0).size() == 0) return ok_status();
  const auto *x = call.in(0).as<const float>(), *scale = call.in(1).as<const float>(),
             *bias = call.in(2).as<const float>();
  auto* partials = reinterpret_cast<Sums*>(context.workspace.data());
  auto* means = reinterpret_cast<float*>(partials + p.partials());
  float *factors = means + p.batch * p.channels, *offsets = factors + p.batch * p.channels;
  const auto pixels_of = [&](int64_t unit) {
    const int64_t first = unit % p.chunks * kChunk;
    return Pixels{x + (unit / p.chunks * p.pixels + first) * p.channels,
                  static_cast<size_t>(std::min(kChunk, p.pixels - first)), static_cast<size_t>(p.channels)};
  };
  parallel_for(context.threads, p.batch * p.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      HWY_DYNAMIC_DISPATCH(channel_sums)(pixels_of(unit), partials + unit * p.channels);
  });
  const int64_t per_group = p.channels / a.groups;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t first = 0; first < p.channels; first += per_group) {
      Sums total{};
      for (int64_t chunk = b * p.chunks; chunk < (b + 1) * p.chunks; ++chunk)
        for (int64_t c = first; c < first + per_group; ++c) {
          total.x += partials[chunk * p.channels + c].x;
          total.squares += partials[chunk * p.channels + c].squares;
        }
      const auto count = static_cast<double>(per_group * p.pixels);
      const double mean = total.x / count, variance = std::max(total.squares / count - mean * mean, 0.0),
                   inverse = 1 / std::sqrt(variance + a.epsilon);
      for (int64_t c = first; c < first + per_group; ++c) {
        const int64_t at = b * p.channels + c;
        const double factor = static_cast<double>(scale[c]) * inverse;
        means[at] = static_cast<float>(mean), factors[at] = static_cast<float>(factor);
        // The offset includes the part of the mean that float32 loses.
        offsets[at] = static_cast<float>(static_cast<double>(bias[c]) +
                                         (static_cast<double>(means[at]) - mean) * factor);
      }
    }
  parallel_for(context.threads, p.batch * p.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const Pixels from = pixels_of(unit);
      const int64_t at = unit / p.chunks * p.channels;
      HWY_DYNAMIC_DISPATCH(channel_affine)
      (from, {means + at, factors + at, offsets + at}, call.out(0).as<float>() + (from.x - x));
    }
  });
  return ok_status();
}

}  // namespace

const Kernel kGroupNormKernel = {Op::kGroupNorm, nullptr, workspace, run, accept_float_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE

// Normalisation of channels-last values: GroupNorm (with as many groups as channels: instance normalisation)
// and local response normalisation.
#include <cmath>

#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

// The shape of x as [n, spatial, c].
struct GroupLayout {
  int64_t n, spatial, c;
};
GroupLayout layout_of(const TensorView& x) {
  GroupLayout l{x.dims[0], 1, x.dims[x.rank - 1]};
  for (int i = 1; i + 1 < x.rank; ++i) l.spatial *= x.dims[i];
  return l;
}

Status infer_group_norm(OpCall& call) {
  const auto& a = call.attrs<GroupNormAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_UNLESS(x.rank >= 2, invalid("rank %a has no batch and channels", x.rank));
  const int64_t c = x.dims[x.rank - 1];
  SINTER_RETURN_UNLESS(a.groups >= 1 && c % a.groups == 0,
                       invalid("%a channels do not divide into %b groups", c, a.groups));
  SINTER_RETURN_UNLESS(a.epsilon >= 0, invalid("epsilon is negative or not a number"));
  for (size_t i = 1; i < 3; ++i) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, i, 0));
    SINTER_RETURN_UNLESS(call.in(i).rank == 1 && call.in(i).dims[0] == c,
                         invalid("it is not one number for each of %a channels", c).of_input(i));
  }
  return infer_like_input(call);
}

template <class T>
void group_norm(const OpCall& call) {
  const auto& a = call.attrs<GroupNormAttrs>();
  const GroupLayout l = layout_of(call.in(0));
  const T *scale = call.in(1).as<T>(), *bias = call.in(2).as<T>();
  const int64_t width = l.c / a.groups;
  if (l.spatial == 0 || width == 0) return;
  for (int64_t n = 0; n < l.n; ++n)
    for (int64_t g = 0; g < a.groups; ++g) {
      const int64_t first = n * l.spatial * l.c + g * width;
      const T* x = call.in(0).as<T>() + first;
      T* y = call.out(0).as<T>() + first;
      const double count = static_cast<double>(l.spatial) * static_cast<double>(width);
      double mean = 0, squares = 0;
      for (int64_t s = 0; s < l.spatial; ++s)
        for (int64_t c = 0; c < width; ++c) mean += static_cast<double>(x[s * l.c + c]);
      mean /= count;
      for (int64_t s = 0; s < l.spatial; ++s)
        for (int64_t c = 0; c < width; ++c) {
          const double d = static_cast<double>(x[s * l.c + c]) - mean;
          squares += d * d;
        }
      const double inverse = 1 / std::sqrt(squares / count + a.epsilon);
      for (int64_t s = 0; s < l.spatial; ++s)
        for (int64_t c = 0; c < width; ++c) {
          const double v = (static_cast<double>(x[s * l.c + c]) - mean) * inverse;
          y[s * l.c + c] = static_cast<T>(v * static_cast<double>(scale[g * width + c]) +
                                          static_cast<double>(bias[g * width + c]));
        }
    }
}
Status run_group_norm(const OpCall& call, RunContext&) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    group_norm<typename decltype(tag)::type>(call);
    return ok_status();
  });
}

Status infer_lrn(OpCall& call) {
  const auto& a = call.attrs<LrnAttrs>();
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(call.in(0).dtype)));
  SINTER_RETURN_UNLESS(call.in(0).rank >= 2, invalid("rank %a has no batch and channels", call.in(0).rank));
  SINTER_RETURN_UNLESS(a.size >= 1, invalid("the window's size %a is not positive", a.size));
  return infer_like_input(call);
}

// y = x / (bias + alpha / size * sum of squares) ^ beta, summed over channels c - (size - 1) / 2 .. c + size
// / 2.
template <class T>
void lrn(const OpCall& call) {
  const auto& a = call.attrs<LrnAttrs>();
  const GroupLayout l = layout_of(call.in(0));
  // The window is in whole channels; it never needs to reach further than all of them.
  const int64_t before = std::min((a.size - 1) / 2, l.c), after = std::min(a.size / 2, l.c);
  const double factor = a.alpha / static_cast<double>(a.size);
  for (int64_t row = 0; row < l.n * l.spatial; ++row) {
    const T* x = call.in(0).as<T>() + row * l.c;
    T* y = call.out(0).as<T>() + row * l.c;
    for (int64_t c = 0; c < l.c; ++c) {
      double squares = 0;
      for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(l.c - 1, c + after); ++k)
        squares += static_cast<double>(x[k]) * static_cast<double>(x[k]);
      y[c] = static_cast<T>(static_cast<double>(x[c]) / std::pow(a.bias + factor * squares, a.beta));
    }
  }
}
Status run_lrn(const OpCall& call, RunContext&) {
  return for_float(call.in(0).dtype, [&](auto tag) {
    lrn<typename decltype(tag)::type>(call);
    return ok_status();
  });
}

}  // namespace

const Kernel kGroupNormKernel = reference_kernel({Op::kGroupNorm, infer_group_norm, nullptr, run_group_norm});
const Kernel kLrnKernel = reference_kernel({Op::kLrn, infer_lrn, nullptr, run_lrn});

}  // namespace sinter

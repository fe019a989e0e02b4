// Rope: rotates pairs of the last axis by angles given as cosines and sines, which are float32 where x has 16
// bits.
#include "runtime/kernels/linear.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

int64_t rotated(const OpCall& call) {
  const TensorView& x = call.in(0);
  const int64_t given = call.attrs<RopeAttrs>().rotary_dim;
  return given == 0 ? x.dims[x.rank - 1] : given;
}

Status infer_rope(OpCall& call) {
  const auto& a = call.attrs<RopeAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_code(a.interleaved, 2));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_UNLESS(x.rank >= 1, invalid("a scalar cannot be rotated"));
  const int64_t r = rotated(call), size = x.dims[x.rank - 1];
  SINTER_RETURN_UNLESS(r >= 0 && r <= size && r % 2 == 0,
                       invalid("%a of %b values cannot be rotated in pairs", r, size));
  Dims pairs(x.shape());
  pairs.d[x.rank - 1] = r / 2;
  for (size_t i = 1; i < 3; ++i) {
    SINTER_RETURN_IF_ERROR(check_computed_dtype(call, i));
    SINTER_RETURN_IF_ERROR(linear::check_dims(call.in(i)));
    SINTER_RETURN_IF_ERROR(check_broadcasts_to(call.in(i).shape(), pairs.span()));
  }
  return infer_like_input(call);
}

template <class T>
void rope(const OpCall& call) {
  const TensorView& x = call.in(0);
  const int64_t size = x.dims[x.rank - 1], half = rotated(call) / 2;
  const bool interleaved = call.attrs<RopeAttrs>().interleaved != 0;
  const int last = x.rank - 1;
  const int64_t cos_step = broadcast_stride(call.in(1), x.rank, last);
  const int64_t sin_step = broadcast_stride(call.in(2), x.rank, last);
  // Works on one row of the last axis at a time: these are the operands without that axis.
  TensorView rows[4] = {call.out(0), x, call.in(1), call.in(2)};
  for (TensorView& v : rows)
    if (v.rank > 0) --v.rank;
  for_each_element(
      make_nest(rows[0].shape(), rows[0], rows[1], rows[2], rows[3]), [&](std::byte* const(&at)[4]) {
        T* y = reinterpret_cast<T*>(at[0]);
        const T* from = reinterpret_cast<const T*>(at[1]);
        for (int64_t i = 0; i < half; ++i) {
          const double c = load<Computed<T>>(at[2] + i * cos_step),
                       s = load<Computed<T>>(at[3] + i * sin_step);
          const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
          const double a = from[first], b = from[second];
          y[first] = static_cast<T>(c * a - s * b);
          y[second] = static_cast<T>(s * a + c * b);
        }
        for (int64_t i = 2 * half; i < size; ++i) y[i] = from[i];
      });
}

Status run_rope(const OpCall& call, RunContext&) {
  if (call.out(0).size() == 0) return ok_status();
  return for_float_or_half(call.in(0).dtype,
                           [&](auto tag) { return rope<typename decltype(tag)::type>(call), ok_status(); });
}

}  // namespace

const Kernel kRopeKernel = reference_kernel({Op::kRope, infer_rope, nullptr, run_rope});

}  // namespace sinter

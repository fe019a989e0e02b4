// MaxPool, AvgPool, QAvgPool: each window is walked once for a block of channels whose running results stay
// on the stack.
#include "runtime/kernels/lead.h"
#include "runtime/kernels/pool_window.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

using namespace pool;

constexpr int64_t kPooledAtOnce = 64;

// Returns b if it is larger or NaN, without a branch.
template <class T>
T larger_or_nan(T a, T b) {
  if constexpr (kIsFloatElement<T>)
    return static_cast<int>(b > a) | static_cast<int>(b != b) ? b : a;
  else
    return b > a ? b : a;
}

Status infer_max_pool(OpCall& call) {
  const auto& a = call.attrs<MaxPoolAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_number(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_code(a.storage_order, 2));
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(a, x, true, &w));
  const Dims dims = output_dims(x, w);
  SINTER_RETURN_IF_ERROR(give_output(call, 0, x.dtype, dims.span()));
  if (call.outputs.size() > 1) SINTER_RETURN_IF_ERROR(give_output(call, 1, DType::kInt64, dims.span()));
  return ok_status();
}

// Finds the largest element (NaN if there is one) and the offset of the first such element.
Status run_max_pool(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<MaxPoolAttrs>();
  const TensorView &x = call.in(0), &y = call.out(0);
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(a, x, true, &w));
  const int64_t channels = x.dims[x.rank - 1], positions = product(x, 1, x.rank - 1);
  int64_t x_step = 0, y_step = 0;
  (void)x.evenly_spaced(&x_step);
  (void)y.evenly_spaced(&y_step);
  int64_t* indices = call.has_output(1) ? call.out(1).as<int64_t>() : nullptr;
  const bool has_values = call.has_output(0);
  // Offsets are column-major: the first spatial axis runs fastest.
  const auto storage_offset = [&](int64_t offset) {
    if (a.storage_order == 0) return offset;
    int64_t index[kMaxSpatial], result = 0;
    for (int i = w.axes - 1; i >= 0; --i) index[i] = offset % w.axis[i].in, offset /= w.axis[i].in;
    for (int i = w.axes - 1; i >= 0; --i) result = result * w.axis[i].in + index[i];
    return result;
  };
  if (x.size() == 0) return ok_status();
  return for_number_or_half(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_window(x, w, context.threads,
                    [&](int64_t n, const int64_t*, const int64_t* first, const int64_t* last,
                        const int64_t* start, int64_t item) {
                      const T* image = x.as<T>() + n * positions * x_step;
                      T best[kPooledAtOnce];
                      int64_t at[kPooledAtOnce];
                      for (int64_t c0 = 0; c0 < channels; c0 += kPooledAtOnce) {
                        const int64_t block = std::min(kPooledAtOnce, channels - c0);
                        bool any = false;
                        for_each_tap(w, first, last, start, [&](int64_t offset) {
                          const T* row = image + offset * x_step + c0;
                          if (!any) {
                            for (int64_t c = 0; c < block; ++c) best[c] = row[c], at[c] = offset;
                            any = true;
                          } else if (indices == nullptr) {
                            for (int64_t c = 0; c < block; ++c) best[c] = larger_or_nan(best[c], row[c]);
                          } else {
                            for (int64_t c = 0; c < block; ++c)
                              if (row[c] > best[c] || (row[c] != row[c] && best[c] == best[c]))
                                best[c] = row[c], at[c] = offset;
                          }
                        });
                        for (int64_t c = 0; c < block; ++c) {
                          if (has_values) y.as<T>()[item * y_step + c0 + c] = best[c];
                          if (indices != nullptr)
                            indices[item * channels + c0 + c] =
                                (n * channels + c0 + c) * positions + storage_offset(at[c]);
                        }
                      }
                    });
    return ok_status();
  });
}

Status max_pool_lead(const OpCall& call, size_t* bytes) {
  SINTER_RETURN_UNLESS(call.has_output(0) && !call.has_output(1), unsupported("indices are written as well"));
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(call.attrs<MaxPoolAttrs>(), call.in(0), true, &w));
  return pool_lead(call, w, bytes);
}

Status infer_avg_pool(OpCall& call) {
  const auto& a = call.attrs<AvgPoolAttrs>();
  const TensorView& x = call.in(0);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_code(a.count_include_pad, 2));
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(a, x, a.count_include_pad == 0, &w));
  return give_output(call, 0, x.dtype, output_dims(x, w).span());
}

// Sums T in Acc, in window order; finish(sum, elements counted) gives the stored number.
template <class T, class Acc, class A, class Finish>
Status average(const OpCall& call, const A& a, RunContext& context, Finish finish) {
  const TensorView &x = call.in(0), &y = call.out(0);
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(a, x, a.count_include_pad == 0, &w));
  const int64_t channels = x.dims[x.rank - 1], positions = product(x, 1, x.rank - 1);
  if (y.size() == 0) return ok_status();
  int64_t x_step = 0, y_step = 0;
  (void)x.evenly_spaced(&x_step);
  (void)y.evenly_spaced(&y_step);
  for_each_window(x, w, context.threads,
                  [&](int64_t n, const int64_t* index, const int64_t* first, const int64_t* last,
                      const int64_t* start, int64_t item) {
                    const T* image = x.as<T>() + n * positions * x_step;
                    double count = 1;
                    int64_t taps = 1;
                    for (int i = 0; i < w.axes; ++i) {
                      taps *= last[i] - first[i];
                      count *= static_cast<double>(a.count_include_pad != 0 ? w.axis[i].padded_taps(index[i])
                                                                            : last[i] - first[i]);
                    }
                    Acc sum[kPooledAtOnce];
                    for (int64_t c0 = 0; c0 < channels; c0 += kPooledAtOnce) {
                      const int64_t block = std::min(kPooledAtOnce, channels - c0);
                      std::fill(sum, sum + block, Acc{0});
                      for_each_tap(w, first, last, start, [&](int64_t offset) {
                        const T* row = image + offset * x_step + c0;
                        for (int64_t c = 0; c < block; ++c) sum[c] += static_cast<Acc>(row[c]);
                      });
                      T* to = y.as<T>() + item * y_step + c0;
                      for (int64_t c = 0; c < block; ++c) to[c] = finish(sum[c], taps, count);
                    }
                  });
  return ok_status();
}

template <class A>
Status average_lead(const OpCall& call, size_t* bytes) {
  const auto& a = call.attrs<A>();
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(a, call.in(0), a.count_include_pad == 0, &w));
  return pool_lead(call, w, bytes);
}

Status run_avg_pool(const OpCall& call, RunContext& context) {
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return average<T, double>(call, call.attrs<AvgPoolAttrs>(), context,
                              [](double sum, int64_t, double count) { return static_cast<T>(sum / count); });
  });
}

Status infer_q_avg_pool(OpCall& call) {
  const auto& a = call.attrs<QAvgPoolAttrs>();
  const DType t = call.in(0).dtype;
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_IF_ERROR(check_code(a.count_include_pad, 2));
  SINTER_RETURN_IF_ERROR(check_zero_point(t, a.x_zero));
  SINTER_RETURN_IF_ERROR(check_int8_multiplier(a.multiplier));
  SINTER_RETURN_IF_ERROR(check_narrow_result(a, t));
  const int64_t most = t == DType::kInt8 ? kMaxInt8Sum : kMaxInt16Sum;
  Window w;
  SINTER_RETURN_IF_ERROR(pool_window(a, call.in(0), a.count_include_pad == 0, &w));
  int64_t elements = 1;
  for (int i = 0; i < w.axes; ++i)
    SINTER_RETURN_UNLESS(checked_mul(elements, w.axis[i].kernel, &elements) && elements <= most,
                         unsupported("the window has more than %a elements", most));
  return give_output(call, 0, t, output_dims(call.in(0), w).span());
}

Status run_q_avg_pool(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<QAvgPoolAttrs>();
  const auto x_zero = static_cast<int32_t>(a.x_zero);
  return for_narrow(call.in(0).dtype, [&](auto tag) {
    using T = decltype(tag);
    const NarrowResult<T> result(a);
    return average<T, int32_t>(call, a, context, [&](int32_t sum, int64_t taps, double count) {
      return result(static_cast<float>(sum - x_zero * static_cast<int32_t>(taps)) *
                    multiplier_per(a.multiplier, static_cast<int64_t>(count)));
    });
  });
}

}  // namespace

const Kernel kMaxPoolKernel =
    reference_kernel({Op::kMaxPool, infer_max_pool, nullptr, run_max_pool, nullptr, max_pool_lead});
const Kernel kAvgPoolKernel = reference_kernel(
    {Op::kAvgPool, infer_avg_pool, nullptr, run_avg_pool, nullptr, average_lead<AvgPoolAttrs>});
const Kernel kQAvgPoolKernel = reference_kernel(
    {Op::kQAvgPool, infer_q_avg_pool, nullptr, run_q_avg_pool, nullptr, average_lead<QAvgPoolAttrs>});

}  // namespace sinter

// QResize: linear interpolation of int8 or int16 along height and width with weights of 11 bits.
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/requantize.h"

namespace sinter {
namespace {

Status infer_q_resize(OpCall& call) {
  const TensorView &x = call.in(0), &rows = call.in(1), &columns = call.in(2);
  SINTER_RETURN_IF_ERROR(check_narrow(call, 0));
  SINTER_RETURN_UNLESS(x.rank == 4, invalid("x has rank %a, not 4", x.rank));
  for (size_t i : {1, 2}) {
    SINTER_RETURN_IF_ERROR(check_dtype(call, i, call.in(i).dtype == DType::kInt32));
    SINTER_RETURN_UNLESS(call.in(i).rank == 2 && call.in(i).dims[1] == 2,
                         invalid("it is not a pair of numbers for each element").of_input(i));
    SINTER_RETURN_UNLESS(x.dims[i] > 0 || call.in(i).dims[0] == 0,
                         invalid("an empty axis cannot become longer"));
  }
  const int64_t dims[] = {x.dims[0], rows.dims[0], columns.dims[0], x.dims[3]};
  return give_output(call, 0, x.dtype, dims);
}

// Two neighbouring elements of an axis, and their weights.
struct LinearTaps {
  int64_t first, second;
  int32_t weights[2];
};
LinearTaps read_linear_taps(const TensorView& table, int64_t at, int64_t dim) {
  const int32_t* pair = table.as<int32_t>() + 2 * at;
  const int64_t first = std::clamp<int64_t>(pair[0], 0, dim - 1);
  const auto weight = std::clamp<int32_t>(pair[1], 0, 2048);
  return {first, std::min(first + 1, dim - 1), {2048 - weight, weight}};
}

// Interpolates between columns that are 2^11 times too large.
int8_t between(int32_t left, int32_t right, const int32_t* weights, int8_t) {
  return static_cast<int8_t>(shift_right_rne(weights[0] * left + weights[1] * right, 22));
}
int16_t between(int32_t left, int32_t right, const int32_t* weights, int16_t) {
  const float sum = static_cast<float>(left) * static_cast<float>(weights[0]) +
                    static_cast<float>(right) * static_cast<float>(weights[1]);
  return static_cast<int16_t>(round_clamped(sum * 0x1p-22f, -32768, 32767));
}

template <class T>
Status resize(const OpCall& call, RunContext& context) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (y.size() == 0) return ok_status();
  const int64_t height = x.dims[1], width = x.dims[2], channels = x.dims[3];
  const int64_t out_height = y.dims[1], out_width = y.dims[2], line = width * channels;
  const int64_t grain = std::max<int64_t>(1, 4096 / (out_width * channels));
  parallel_for(context.threads, y.dims[0] * out_height, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const LinearTaps v = read_linear_taps(call.in(1), row % out_height, height);
      const T* image = x.as<T>() + row / out_height * height * line;
      const T *top = image + v.first * line, *bottom = image + v.second * line;
      T* to = y.as<T>() + row * out_width * channels;
      for (int64_t column = 0; column < out_width; ++column, to += channels) {
        const LinearTaps u = read_linear_taps(call.in(2), column, width);
        const int64_t a = u.first * channels, b = u.second * channels;
        for (int64_t c = 0; c < channels; ++c) {
          const int32_t left = v.weights[0] * top[a + c] + v.weights[1] * bottom[a + c],
                        right = v.weights[0] * top[b + c] + v.weights[1] * bottom[b + c];
          to[c] = between(left, right, u.weights, T{});
        }
      }
    }
  });
  return ok_status();
}

Status run_q_resize(const OpCall& call, RunContext& context) {
  return for_narrow(call.in(0).dtype, [&](auto tag) { return resize<decltype(tag)>(call, context); });
}

}  // namespace

const Kernel kQResizeKernel = reference_kernel({Op::kQResize, infer_q_resize, nullptr, run_q_resize});

}  // namespace sinter

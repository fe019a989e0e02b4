// Quantize and Dequantize of dense tensors, per tensor and per axis, and DynamicQuantize.
//
// Axes are merged to [outer, channels, inner]. Where `inner` is long a row has one scale; else scales and
// zero points are written out for a stretch of elements that repeats, and whole stretches are computed.
#include <algorithm>

#include "platforms/simd/int8/quantize_piece.h"
#include "runtime/backend/dynamic_range.h"

namespace sinter::simd {
namespace {

constexpr bool is_quantized(DType t) { return t >= DType::kInt8 && t <= DType::kUint16; }

// Returns 0 for zero points of int32: accept_steps() has seen that they are zero.
int32_t zero_at(const TensorView& zero, int64_t i) {
  int32_t value = 0;
  if (zero.present() && is_quantized(zero.dtype))
    for_quantized(zero.dtype, static_cast<const void*>(zero.data), [&](const auto* at) { value = at[i]; });
  return value;
}

constexpr int64_t kQuantizePiece = 8192;  // elements that outweigh handing a piece to a thread
constexpr int64_t kStretch = 896;         // 4-byte parameters that are written out together, on the stack
constexpr int64_t kLongRow = 64;          // elements from which a row is worth a call of its own

// axis: of the parameters, if they are not single.
Status run_steps(const OpCall& call, RunContext& context, int64_t axis) {
  const TensorView &x = call.in(0), &y = call.out(0), &scale = call.in(1);
  const TensorView zero = call.has_input(2) ? call.in(2) : TensorView{};
  const int64_t size = y.size();
  if (size == 0) return ok_status();
  ConvertPiece* const run = convert_piece();
  const auto piece = [&](int64_t at, int64_t count, const Steps& steps) {
    run(x.dtype, y.dtype, x.data + at * static_cast<int64_t>(byte_width(x.dtype)),
        y.data + at * static_cast<int64_t>(byte_width(y.dtype)), static_cast<size_t>(count), steps);
  };
  const auto* scales = scale.as<const float>();
  if (scale.size() == 1) {
    const Steps steps{nullptr, nullptr, scales[0], zero_at(zero, 0)};
    parallel_for(context.threads, size, kQuantizePiece,
                 [&](int64_t begin, int64_t end) { piece(begin, end - begin, steps); });
    return ok_status();
  }
  const int64_t channels = x.dims[axis];
  int64_t inner = 1;
  for (int i = static_cast<int>(axis) + 1; i < x.rank; ++i) inner *= x.dims[i];
  if (inner >= kLongRow) {
    const int64_t count = std::min(inner, kQuantizePiece), pieces = divide_up(inner, count);
    parallel_for(context.threads, size / inner * pieces, std::max<int64_t>(kQuantizePiece / count, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit) {
                     const int64_t row = unit / pieces, first = unit % pieces * count, c = row % channels;
                     piece(row * inner + first, std::min(count, inner - first),
                           {nullptr, nullptr, scales[c], zero_at(zero, c)});
                   }
                 });
    return ok_status();
  }
  // Several whole periods of parameters at once, or parts of one: units of one part go together. The scales
  // of many channels are read where they are.
  const int64_t period = channels * inner;
  const bool in_place = inner == 1 && period > kStretch / 2;
  const int64_t stretch = in_place ? kStretch : kStretch / 2;
  const int64_t copies = std::max<int64_t>(stretch / period, 1);
  const int64_t parts = divide_up(period, stretch), rows = divide_up(size, copies * period);
  parallel_for(context.threads, parts * rows, kQuantizePiece / stretch, [&](int64_t begin, int64_t end) {
    alignas(64) std::byte room[kStretch * sizeof(int32_t)];
    auto* stretch_zeros = reinterpret_cast<int32_t*>(room);
    auto* stretch_scales = reinterpret_cast<float*>(room) + kStretch / 2;
    int64_t filled = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t part = unit / rows, row = unit % rows, first = part * stretch;
      const int64_t count = parts > 1 ? std::min(stretch, period - first) : copies * period;
      if (part != filled) {
        int64_t c = first / inner, within = first % inner;
        for (int64_t i = 0; i < count; ++i) {
          if (!in_place) stretch_scales[i] = scales[c];
          stretch_zeros[i] = zero_at(zero, c);
          if (++within == inner) within = 0, c = c + 1 == channels ? 0 : c + 1;
        }
        filled = part;
      }
      const int64_t at = row * copies * period + first;
      piece(at, std::min(count, size - at),
            {in_place ? scales + first : stretch_scales, stretch_zeros, 0, 0});
    }
  });
  return ok_status();
}

Status accept_steps(const OpCall& call, DType from, DType to, int64_t block_size) {
  const TensorView &x = call.in(0), &y = call.out(0), &scale = call.in(1);
  SINTER_RETURN_UNLESS(from == DType::kFloat32 || from == DType::kInt32 || is_quantized(from),
                       unsupported("the simd kernel does not convert from this element type"));
  SINTER_RETURN_UNLESS(to == DType::kFloat32 || is_quantized(to),
                       unsupported("the simd kernel does not convert to this element type"));
  SINTER_RETURN_UNLESS(scale.dtype == DType::kFloat32, unsupported("the simd kernel takes float32 scales"));
  SINTER_RETURN_UNLESS(block_size == 0 || scale.rank == 0, unsupported("the simd kernel takes no blocks"));
  SINTER_RETURN_UNLESS(x.dense() && y.dense() && scale.dense(),
                       unsupported("the simd kernel takes dense operands"));
  if (!call.has_input(2)) return ok_status();
  const TensorView& zero = call.in(2);
  SINTER_RETURN_UNLESS(zero.dense(), unsupported("the simd kernel takes dense operands"));
  if (zero.dtype != DType::kInt32) return ok_status();
  SINTER_RETURN_UNLESS(zero.constant && zero.data != nullptr,
                       unsupported("zero points of int32 have to be constant zeros"));
  for (int64_t i = 0; i < zero.size(); ++i)
    SINTER_RETURN_UNLESS(zero.as<const int32_t>()[i] == 0,
                         unsupported("zero points of int32 have to be zero"));
  return ok_status();
}

Status accept_quantize(const OpCall& call) {
  return accept_steps(call, call.in(0).dtype, call.out(0).dtype, call.attrs<QuantizeAttrs>().block_size);
}
Status run_quantize(const OpCall& call, RunContext& context) {
  return run_steps(call, context, call.attrs<QuantizeAttrs>().axis);
}
Status accept_dequantize(const OpCall& call) {
  return accept_steps(call, call.in(0).dtype, call.out(0).dtype, call.attrs<DequantizeAttrs>().block_size);
}
Status run_dequantize(const OpCall& call, RunContext& context) {
  return run_steps(call, context, call.attrs<DequantizeAttrs>().axis);
}

Status accept_dynamic(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.in(0).dtype == DType::kFloat32,
                       unsupported("the simd kernel does not convert from this element type"));
  return accept_dense(call);
}
Status run_dynamic(const OpCall& call, RunContext& context) {
  const TensorView& x = call.in(0);
  const auto* from = x.as<const float>();
  const int64_t size = x.size();
  constexpr int64_t kMostParts = 64;
  const int64_t parts = std::clamp<int64_t>(size / kQuantizePiece, 1, kMostParts);
  float low[kMostParts] = {}, high[kMostParts] = {};  // zero is always within
  WidenRange* const widen = range_widener();
  parallel_for(context.threads, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = size * i / parts, count = size * (i + 1) / parts - first;
      widen(from + first, static_cast<size_t>(count), low + i, high + i);
    }
  });
  const DynamicRange range =
      dynamic_range(*std::min_element(low, low + parts), *std::max_element(high, high + parts));
  const auto to = static_cast<DType>(call.attrs<DynamicQuantizeAttrs>().to);
  const int32_t zero = range.zero - (to == DType::kInt8 ? 128 : 0);
  if (call.has_output(1)) *call.out(1).as<float>() = range.scale;
  if (call.has_output(2)) *reinterpret_cast<uint8_t*>(call.out(2).data) = static_cast<uint8_t>(zero);
  if (!call.has_output(0)) return ok_status();
  auto* y = call.out(0).data;
  ConvertPiece* const run = convert_piece();
  parallel_for(context.threads, size, kQuantizePiece, [&](int64_t begin, int64_t end) {
    run(DType::kFloat32, to, from + begin, y + begin, static_cast<size_t>(end - begin),
        {nullptr, nullptr, range.scale, zero});
  });
  return ok_status();
}

}  // namespace

const Kernel kDynamicQuantizeKernel = {Op::kDynamicQuantize, nullptr, nullptr, run_dynamic, accept_dynamic};
const Kernel kQuantizeKernel = {Op::kQuantize, nullptr, nullptr, run_quantize, accept_quantize};
const Kernel kDequantizeKernel = {Op::kDequantize, nullptr, nullptr, run_dequantize, accept_dequantize};

}  // namespace sinter::simd

// Quantize and Dequantize: element-wise programs for integers of 8 and 16 bits, kernels/elements/convert.cu
// for the others. Also DynamicQuantize and QuantizeRows.
#include <algorithm>

#include "platforms/cuda/operators/convert.h"

namespace sinter::cuda {
namespace {

constexpr bool is_small(DType t) { return t >= DType::kInt8 && t <= DType::kUint16; }

// The dims of x with the blocks of an axis and the elements of a block as axes of their own.
class QuantizedBlocks {
 public:
  explicit QuantizedBlocks(const TensorView& x, const QuantizeCall& q) : q_(q) {
    if (!q.blocked) {
      dims_ = x;
      return;
    }
    dims_ = split(x, x.dims[q.axis] / q.block, q.block, q.block);
  }
  static bool exist(const TensorView& x, const QuantizeCall& q) {
    return !q.blocked || (x.rank < kBoxRank && x.dims[q.axis] > 0 && x.dims[q.axis] % q.block == 0);
  }
  std::span<const int64_t> shape() const { return dims_.shape(); }
  TensorView element(const TensorView& v) const {
    return q_.blocked ? split(v, v.dims[q_.axis] / q_.block, q_.block, q_.block) : v;
  }
  // Returns the view of a scale or zero point for each element.
  TensorView parameter(const TensorView& v) const {
    if (q_.blocked) return split(v, v.dims[q_.axis], 1, 0);
    TensorView wide = v;
    wide.rank = q_.single ? uint8_t{0} : dims_.rank;
    for (int i = 0; i < wide.rank; ++i) wide.dims[i] = 1, wide.strides[i] = 0;
    if (!q_.single) wide.dims[q_.axis] = v.dims[0], wide.strides[q_.axis] = v.strides[0];
    return wide;
  }

 private:
  TensorView split(const TensorView& v, int64_t blocks, int64_t block, int64_t step) const {
    TensorView s = v;
    for (int i = v.rank; i > q_.axis; --i) s.dims[i] = v.dims[i - 1], s.strides[i] = v.strides[i - 1];
    s.rank = static_cast<uint8_t>(v.rank + 1);
    s.dims[q_.axis] = blocks, s.dims[q_.axis + 1] = block;
    s.strides[q_.axis] = v.strides[q_.axis] * (step == 0 ? 1 : step);
    return s;
  }

  QuantizeCall q_;
  TensorView dims_;
};

// Computes sat(rne(x / scale) + zero), or (x - zero) * scale.
template <class T>
Status add_program(Lowering& l, const QuantizeCall& q, FloatFunction function, T lowest, T highest) {
  const QuantizedBlocks blocks(l.out(0), q);
  ElementProgram<T> p(l, blocks.shape());
  p.load(blocks.element(l.in(0)));
  const uint8_t scale = p.operand(blocks.parameter(l.in(1)));
  if (l.has_input(2))
    p.function(function, {scale, p.operand(blocks.parameter(l.in(2)))}, {lowest, highest});
  else
    p.function(function, {scale}, {lowest, highest});
  p.store(blocks.element(l.out(0)));
  return p.launch();
}

}  // namespace

Status lower_Quantize(Lowering& l) {
  const auto& a = l.attrs<QuantizeAttrs>();
  const QuantizeCall q = quantize_call(l.call(), a.axis, a.block_size);
  const DType to = l.out(0).dtype;
  const bool wide = l.call().in(0).dtype == DType::kFloat64 || l.call().in(1).dtype == DType::kFloat64;
  if (!is_small(to) || !QuantizedBlocks::exist(l.out(0), q))
    return add_quantization(l, Conversion::kQuantize, q, wide, a.saturate != 0);
  const int bits = bit_width(to);
  const int lowest = is_signed_integer(to) ? -(1 << (bits - 1)) : 0, highest = lowest + (1 << bits) - 1;
  if (wide) return add_program<double>(l, q, FloatFunction::kQuantize, lowest, highest);
  return add_program<float>(l, q, FloatFunction::kQuantize, static_cast<float>(lowest),
                            static_cast<float>(highest));
}

// A difference of two int32 is exact in double only.
Status lower_Dequantize(Lowering& l) {
  const auto& a = l.attrs<DequantizeAttrs>();
  const QuantizeCall q = quantize_call(l.call(), a.axis, a.block_size);
  const DType from = l.call().in(0).dtype;
  const bool wide = l.out(0).dtype == DType::kFloat64 || l.call().in(1).dtype == DType::kFloat64;
  const bool in_program = is_small(from) || (from == DType::kInt32 && (wide || !l.has_input(2)));
  if (!in_program || !QuantizedBlocks::exist(l.out(0), q))
    return add_quantization(l, Conversion::kDequantize, q, wide, true);
  if (wide) return add_program<double>(l, q, FloatFunction::kDequantize, 0, 0);
  return add_program<float>(l, q, FloatFunction::kDequantize, 0, 0);
}

// Adds launches for the range, for scale and zero point, and for the elements.
Status lower_DynamicQuantize(Lowering& l) {
  const TensorView& x = l.in(0);
  SINTER_RETURN_UNLESS(is_wide_float(x.dtype),
                       unsupported("elements of %A are not quantized", static_cast<int64_t>(x.dtype)));
  constexpr int kThreads = threads_of(Kernel::k_range_of_blocks);
  DynamicRangeArguments r;
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  r.blocks = static_cast<int32_t>(
      std::min<uint32_t>(blocks_for(box.size, kThreads * kRangeElementsOfThread), kMostRangeBlocks));
  r.ranges = reinterpret_cast<float*>(l.workspace(static_cast<size_t>(r.blocks) * 2 * sizeof(float)));
  std::byte* const parameters = l.workspace(sizeof(DynamicParameters));
  r.parameters = reinterpret_cast<DynamicParameters*>(parameters);
  r.scale = l.has_output(1) ? l.out(1).as<float>() : nullptr;
  const auto to = static_cast<DType>(l.attrs<DynamicQuantizeAttrs>().to);
  const int lowest = to == DType::kInt8 ? -128 : 0;
  r.zero = l.has_output(2) ? reinterpret_cast<uint8_t*>(l.out(2).data) : nullptr;
  r.lowest = lowest;
  r.x = x.data, r.dtype = x.dtype, r.box = box, r.steps = steps_of(x, box);
  Steps* const steps[] = {&r.steps};
  merge_axes(&r.box, steps);
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_range_of_blocks>(
      {.blocks = {static_cast<uint32_t>(r.blocks)}, .shared_bytes = kThreads / 32 * sizeof(float)}, r));
  SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_parameters_of_range>(
      {.blocks = {1}, .shared_bytes = kThreads / 32 * sizeof(float)}, r));
  if (!l.has_output(0)) return ok_status();
  const auto at = [&](size_t offset) { return parameters != nullptr ? parameters + offset : nullptr; };
  const auto quantize = [&]<class T>(ElementProgram<T>&& p) {
    const uint8_t scale = p.operand(at(offsetof(DynamicParameters, scale)), DType::kFloat32),
                  one = p.operand(at(offsetof(DynamicParameters, one)), DType::kFloat32),
                  zero = p.operand(at(offsetof(DynamicParameters, zero)), to);
    p.load(x);
    p.round_to(DType::kFloat32);
    p.function(FloatFunction::kDiv, {scale});
    p.round_to(
        DType::kFloat32);  // a quotient of floats that is rounded to double and then to float is rounded once
    p.function(FloatFunction::kQuantize, {one, zero}, {T(lowest), T(lowest + 255)});
    p.store(l.out(0));
    return p.launch();
  };
  if (x.dtype == DType::kFloat64) return quantize(DoubleProgram(l, x.shape()));
  return quantize(FloatProgram(l, x.shape()));
}

Status lower_QuantizeRows(Lowering& l) {
  const TensorView& x = l.in(0);
  QuantizeRowsArguments a;
  a.x = x.data, a.dtype = x.dtype;
  if (l.has_output(0)) a.y = l.out(0).as<int8_t>();
  if (l.has_output(1)) a.scales = l.out(1).as<float>();
  const int64_t size = x.dims[x.rank - 1];
  a.rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) a.rows *= x.dims[i];
  SINTER_RETURN_UNLESS(size <= INT32_MAX, unsupported("rows of 2^31 elements or more"));
  SINTER_RETURN_UNLESS(x.dense() || x.constant, unsupported("an operand is not dense"));
  a.size = static_cast<uint32_t>(size);
  if (a.rows == 0) return ok_status();
  return l.launch<Kernel::k_quantize_rows>(
      {.blocks = {blocks_for(a.rows * 32, threads_of(Kernel::k_quantize_rows))}}, a);
}

}  // namespace sinter::cuda

// MatMulBnb4 of com.microsoft: products with weights in the 4-bit formats of bitsandbytes.
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"

namespace sinter::convert {
namespace {

// The number of each code, a share of the largest one of a block: a sign, and multiples of 1/12.
constexpr float kFp4[] = {
    0.0f,  0.00520833349f,  0.666666687f,  1.0f,  0.333333343f,  0.5f,  0.166666672f,  0.25f,
    -0.0f, -0.00520833349f, -0.666666687f, -1.0f, -0.333333343f, -0.5f, -0.166666672f, -0.25f};
// Where a normal distribution has the same part of its numbers between two neighbours.
constexpr float kNf4[] = {-1.0f,         -0.6961928f,  -0.525073051f,  -0.394917488f,
                          -0.284441382f, -0.18477343f, -0.0910500363f, 0.0f,
                          0.0795802996f, 0.160930201f, 0.246112302f,   0.337915242f,
                          0.440709829f,  0.562617004f, 0.722956836f,   1.0f};

// Codes, of which the first one of a byte is in its high bits, in the order of uint4.
ConstantPtr as_uint4(const ConstantPtr& packed, int64_t count) {
  return Constant::lazy(DType::kUint4, {count}, [packed] {
    const LoadedBytes loaded = packed->load();
    Bytes turned(loaded.bytes.begin(), loaded.bytes.end());
    for (std::byte& b : turned) b = b << 4 | b >> 4;
    return turned;
  });
}

// A, weights [N, K] as one row of codes, and the largest magnitude of each block of that row.
bool lower_matmul_bnb4(NodeLowering& n) {
  const int64_t k = n.attr_int("K", 0), columns = n.attr_int("N", 0), block = n.attr_int("block_size", 0),
                type = n.attr_int("quant_type", -1);
  n.ignore_attr("training_mode");
  if (n.attr_int("transB", 1) != 1)
    return n.refuse("weights that are not transposed (transB 0) are not supported");
  if (type != 0 && type != 1) return n.refuse("quant_type {} is not FP4 (0) or NF4 (1)", type);
  constexpr int64_t kMost = int64_t{1} << 28;
  if (k < 1 || k > kMost || columns < 1 || columns > kMost || block < 1 || block > kMost)
    return n.refuse_shapes("K {}, N {} and block_size {} do not fit", k, columns, block);
  const int64_t count = k * columns, whole = count / block, blocks = whole + (count % block != 0 ? 1 : 0);
  const ConstantPtr codes = n.constant(n.input(1));
  if (!codes) return n.refuse("its weights must be constant");
  if (codes->dtype() != DType::kUint8 || codes->size() != (count + 1) / 2 || n.size(n.input(2)) != blocks)
    return n.refuse_shapes("weights {} and absmax {} do not fit K {}, N {} and block_size {}",
                           to_string(codes->dims()), to_string(n.dims(n.input(2))), k, columns, block);
  const ValueId table = n.add_constant(
      Constant::of<float>(DType::kFloat32, {16}, std::span<const float>(type == 0 ? kFp4 : kNf4)));
  const ValueId index = n.cast(n.add_constant(as_uint4(codes, count)), DType::kInt32);
  const ValueId numbers = n.emit(GatherAttrs{0}, {table, index}),
                most = n.reshape(n.cast(n.input(2), DType::kFloat32), {blocks, 1});
  // Blocks go on in the next row; the last one may have fewer numbers.
  const auto scaled = [&](int64_t first, int64_t rows, int64_t length) {
    const ValueId part = n.reshape(n.slice(numbers, 0, first * block, rows * length), {rows, length});
    return n.reshape(n.mul(part, n.slice(most, 0, first, rows)), {rows * length});
  };
  ValueId w = kUnknown;
  if (whole == 0)
    w = scaled(0, 1, count);
  else if (whole == blocks)
    w = scaled(0, whole, block);
  else
    w = n.emit(ConcatAttrs{0}, {scaled(0, whole, block), scaled(whole, 1, count - whole * block)});
  w = n.cast(n.reshape(w, {columns, k}), n.dtype(n.input(0)));
  if (w < 0) return false;
  Graph& graph = n.parent().graph();
  if (graph.value(w).name.empty()) graph.value(w).name = graph.value(n.input(1)).name;
  return n.output(0, n.emit(FullyConnectedAttrs{}, {n.input(0), w}));
}

}  // namespace

std::span<const OnnxOperator> matmul_bnb4_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MatMulBnb4", 1, lower_matmul_bnb4, "F * *", kTakesBounded, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

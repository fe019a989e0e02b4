// MatMulBnb4 of com.microsoft: products with weights in the 4-bit formats of bitsandbytes.
#include <fmt/format.h>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"

namespace sinter::convert {
namespace {

// The number of each code, a share of the largest one of a block: a sign, and multiples of 1/12.
constexpr float kFp4[] = {
    0.0f,  0.00520833349f,  0.666666687f,  1.0f,  0.333333343f,  0.5f,  0.166666672f,  0.25f,
    -0.0f, -0.00520833349f, -0.666666687f, -1.0f, -0.333333343f, -0.5f, -0.166666672f, -0.25f};
// The numbers between which a normal distribution has equal parts.
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

// Weights [N, K] as one row of codes, and the largest magnitude of each block of that row.
struct Bnb4 {
  int64_t k = 0, columns = 0, block = 0;
  ConstantPtr codes;
  ValueId table = kUnknown, most = kUnknown;

  int64_t count() const { return k * columns; }
};

// The weights as floats.
ValueId widened(NodeLowering& n, const Bnb4& w) {
  const int64_t whole = w.count() / w.block, rest = w.count() % w.block;
  const ValueId index = n.cast(n.add_constant(as_uint4(w.codes, w.count())), DType::kInt32);
  const ValueId numbers = n.emit(GatherAttrs{0}, {w.table, index}),
                most = n.reshape(n.cast(w.most, DType::kFloat32), {whole + (rest != 0 ? 1 : 0), 1});
  // Blocks go on in the next row; the last one may have fewer numbers.
  const auto scaled = [&](int64_t first, int64_t rows, int64_t length) {
    const ValueId part = n.reshape(n.slice(numbers, 0, first * w.block, rows * length), {rows, length});
    return n.reshape(n.mul(part, n.slice(most, 0, first, rows)), {rows * length});
  };
  ValueId all = kUnknown;
  if (whole == 0)
    all = scaled(0, 1, rest);
  else if (rest == 0)
    all = scaled(0, whole, w.block);
  else
    all = n.emit(ConcatAttrs{0}, {scaled(0, whole, w.block), scaled(whole, 1, rest)});
  return n.cast(n.reshape(all, {w.columns, w.k}), n.dtype(n.input(0)));
}

// Returns whether a product reads the weights as they are: blocks are parts of rows, and begin at whole
// bytes. recognise-low-bit finds what it can of others.
bool packed(NodeLowering& n, const Bnb4& w) {
  const DType scale = n.dtype(w.most), x = n.dtype(n.input(0));
  return w.k % w.block == 0 && w.block % 2 == 0 && n.constant(w.most) != nullptr &&
         (scale == x || bit_width(scale) < bit_width(x));
}

bool lower_matmul_bnb4(NodeLowering& n) {
  Bnb4 w{n.attr_int("K", 0), n.attr_int("N", 0), n.attr_int("block_size", 0), n.constant(n.input(1))};
  const int64_t type = n.attr_int("quant_type", -1);
  n.ignore_attr("training_mode");
  if (n.attr_int("transB", 1) != 1)
    return n.refuse("weights that are not transposed (transB 0) are not supported");
  if (type != 0 && type != 1) return n.refuse("quant_type {} is not FP4 (0) or NF4 (1)", type);
  constexpr int64_t kMost = int64_t{1} << 28;
  if (w.k < 1 || w.k > kMost || w.columns < 1 || w.columns > kMost || w.block < 1 || w.block > kMost)
    return n.refuse_shapes("K {}, N {} and block_size {} do not fit", w.k, w.columns, w.block);
  const int64_t blocks = w.count() / w.block + (w.count() % w.block != 0 ? 1 : 0);
  if (!w.codes) return n.refuse("its weights must be constant");
  w.most = n.input(2);
  if (w.codes->dtype() != DType::kUint8 || w.codes->size() != (w.count() + 1) / 2 || n.size(w.most) != blocks)
    return n.refuse_shapes("weights {} and absmax {} do not fit K {}, N {} and block_size {}",
                           to_string(w.codes->dims()), to_string(n.dims(w.most)), w.k, w.columns, w.block);
  w.table = n.add_constant(
      Constant::of<float>(DType::kFloat32, {16}, std::span<const float>(type == 0 ? kFp4 : kNf4)));
  const ValueId weights =
      packed(n, w) ? n.add_constant(as_uint4(w.codes, w.count())->reshaped({w.columns, w.k})) : widened(n, w);
  if (weights < 0) return false;
  Value& named = n.parent().graph().value(weights);
  if (named.name.empty()) named.name = n.parent().graph().value(n.input(1)).name;
  if (named.dtype != DType::kUint4) return n.output(0, n.emit(FullyConnectedAttrs{}, {n.input(0), weights}));
  n.record(named.name, w.codes->dtype(), named.dtype, TypeRule::kUnpackLowbit,
           fmt::format("the weights stay packed in 4 bits, {} to a scale, indices into a table", w.block),
           TypeEffect::kRetyped);
  const ValueId scales = n.reshape(w.most, {w.columns, w.k / w.block});
  return n.output(0, n.emit(LowBitFullyConnectedAttrs{.block_size = w.block},
                            {n.input(0), weights, scales, kAbsent, kAbsent, w.table}));
}

}  // namespace

std::span<const OnnxOperator> matmul_bnb4_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MatMulBnb4", 1, lower_matmul_bnb4, "F * *", kTakesBounded, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

// MatMulNBits of com.microsoft, and the operators that join several of them behind one norm.
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {
namespace {

// One product with packed weights: its N, and which of the node's inputs belong to it.
struct PackedProduct {
  static constexpr size_t kNone = ~size_t{0};

  int64_t columns;
  size_t weights, scales, bias = kNone, zeros = kNone, group = kNone;
};

// Integer k of those of `bits` that follow each other, low bits first.
uint8_t integer_at(std::span<const std::byte> bytes, int64_t bits, int64_t k) {
  const auto bit = static_cast<size_t>(k * bits);
  unsigned window = static_cast<unsigned>(bytes[bit / 8]);
  if (bit / 8 + 1 < bytes.size()) window |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
  return static_cast<uint8_t>(window >> (bit % 8) & ((1u << bits) - 1));
}

// Returns integers of a width without an element type as uint8.
ConstantPtr as_bytes(const ConstantPtr& packed, int64_t bits, Dims dims) {
  return Constant::lazy(DType::kUint8, dims, [packed, bits, dims] {
    const LoadedBytes loaded = packed->load();
    Bytes result(static_cast<size_t>(element_count(dims)));
    for (size_t k = 0; k < result.size(); ++k)
      result[k] = static_cast<std::byte>(integer_at(loaded.bytes, bits, static_cast<int64_t>(k)));
    return result;
  });
}

// x times weights of 2 to 8 bits with a scale per block of K: [N, blocks, bytes].
ValueId packed_product(NodeLowering& n, ValueId x, const PackedProduct& p) {
  const int64_t k = n.attr_int("K", 0), columns = p.columns, bits = n.attr_int("bits", 4),
                block = n.attr_int("block_size", 0);
  if (x < 0) return kUnknown;
  n.ignore_attr("accuracy_level");
  constexpr int64_t kMost = int64_t{1} << 28;
  if (bits < 2 || bits > 8 || k < 1 || k > kMost || columns < 1 || columns > kMost || block < 1 ||
      block > kMost || block % 8 * bits % 8 != 0 || !n.has_input(p.scales))
    return n.refuse_shapes("bits {}, K {}, N {} and block_size {} do not fit", bits, k, columns, block);
  const WeightFormat format = weight_format(static_cast<int>(bits), CodeKind::kUnsigned);
  const DType packed = format.type;
  const int64_t blocks = (k + block - 1) / block, padded = blocks * block;
  const ConstantPtr b = n.constant(n.input(p.weights));
  if (!b) return n.refuse("its weights must be constant");
  if (static_cast<int64_t>(b->byte_size()) != columns * padded * bits / 8)
    return n.refuse_shapes("weights {} do not fit N {} and {} blocks of {}", to_string(b->dims()), columns,
                           blocks, block);
  const LoadedBytes loaded = b->load();
  const ValueId weights = n.add_constant(
      format.in_planes() ? as_bytes(b, bits, {columns, padded})
                         : Constant::mapped(packed, {columns, padded}, loaded.owner, loaded.bytes));
  const ValueId scale = n.reshape(n.input(p.scales), {columns, blocks});
  const DType t = n.dtype(x);
  // Zero points: packed rows of whole bytes, or numbers of the scale's type, or the middle of the range.
  const int64_t row_bytes = (blocks * bits + 7) / 8;
  std::vector<uint8_t> zeros(static_cast<size_t>(columns * blocks), static_cast<uint8_t>(1 << (bits - 1)));
  // A block of its own per row, or fractional zero points: element by element.
  const bool float_zeros = n.has_input(p.zeros) && is_float(n.dtype(n.input(p.zeros)));
  if (float_zeros && n.size(n.input(p.zeros)) != columns * blocks)
    return n.refuse_shapes("its zero points {} do not fit N {} and {} blocks",
                           to_string(n.dims(n.input(p.zeros))), columns, blocks);
  if (n.has_input(p.group) && (!n.constant(n.input(p.group)) || n.size(n.input(p.group)) < k))
    return n.refuse("its group index must be constant and have K elements");
  if (n.has_input(p.zeros) && !float_zeros) {
    const ConstantPtr z = n.constant(n.input(p.zeros));
    if (!z || z->dtype() != DType::kUint8 || z->size() != columns * row_bytes)
      return n.refuse("its zero points must be constant and packed");
    const LoadedBytes zero_bytes = z->load();
    for (int64_t row = 0; row < columns; ++row)
      for (int64_t i = 0; i < blocks; ++i)
        zeros[static_cast<size_t>(row * blocks + i)] = integer_at(
            zero_bytes.bytes.subspan(static_cast<size_t>(row * row_bytes), static_cast<size_t>(row_bytes)),
            bits, i);
  }
  ValueId zero;
  if (packed == DType::kUint8) {
    zero = n.add_constant(
        Constant::of<uint8_t>(DType::kUint8, {columns, blocks}, std::span<const uint8_t>(zeros)));
  } else {
    Bytes bytes(static_cast<size_t>((columns * blocks * bits + 7) / 8));
    for (size_t i = 0; i < zeros.size(); ++i) {
      const size_t bit = i * static_cast<size_t>(bits);
      bytes[bit / 8] |= static_cast<std::byte>(zeros[i] << (bit % 8));
    }
    zero = n.add_constant(Constant::owned(packed, {columns, blocks}, std::move(bytes)));
  }
  ValueId w;
  if (float_zeros || n.has_input(p.group)) {
    const auto plain = [&](ValueId v) {
      return n.emit(DequantizeAttrs{0, 0, static_cast<int64_t>(DType::kFloat32)},
                    {v, n.scalar(DType::kFloat32, 1)});
    };
    ValueId s = n.cast(scale, DType::kFloat32);
    ValueId z =
        float_zeros ? n.cast(n.reshape(n.input(p.zeros), {columns, blocks}), DType::kFloat32) : plain(zero);
    if (n.has_input(p.group)) {
      const ValueId group =
          n.slice(n.reshape(n.cast(n.input(p.group), DType::kInt64), {n.size(n.input(p.group))}), 0, 0, k);
      const auto per_row = [&](ValueId v) { return n.emit(GatherAttrs{1}, {v, group}); };
      w = n.mul(n.sub(n.slice(plain(weights), 1, 0, k), per_row(z)), per_row(s));
    } else {
      const auto per_block = [&](ValueId v) { return n.reshape(v, {columns, blocks, 1}); };
      const ValueId q = n.reshape(plain(weights), {columns, blocks, block});
      w = n.slice(n.reshape(n.mul(n.sub(q, per_block(z)), per_block(s)), {columns, padded}), 1, 0, k);
    }
    w = n.cast(w, t);
  } else {
    w = n.slice(dequantize(n, weights, scale, zero, 1, block, t), 1, 0, k);
  }
  if (w >= 0) {
    Graph& graph = n.parent().graph();
    if (graph.value(w).name.empty()) graph.value(w).name = graph.value(n.input(p.weights)).name;
  }
  std::vector<ValueId> operands{x, w};
  if (n.has_input(p.bias)) operands.push_back(n.input(p.bias));
  return n.emit(FullyConnectedAttrs{}, operands);
}

bool lower_matmul_nbits(NodeLowering& n) {
  return n.output(0, packed_product(n, n.input(0), {n.attr_int("N", 0), 1, 2, 5, 3, 4}));
}

// Input 0, plus a skip (input 1), which is output `sum`, and normalized where input 2 is a scale.
ValueId normalized(NodeLowering& n, size_t sum) {
  ValueId x = n.input(0);
  const double epsilon = n.attr_float("epsilon", static_cast<double>(1e-5f));
  const bool skips = n.has_input(1);
  if (skips && !n.has_input(2)) return n.refuse("a skip needs norm_scale");
  if (n.wants_output(sum) && !skips) return n.refuse("input_skip_bias_sum needs a skip");
  if (skips) x = n.add(x, n.input(1));
  if (x < 0) return kUnknown;
  if (n.dims(x) != n.dims(n.input(0)))
    return n.refuse_shapes("skip {} does not fit A {}", to_string(n.dims(n.input(1))),
                           to_string(n.dims(n.input(0))));
  if (n.wants_output(sum) && !n.output(sum, x)) return kUnknown;
  return n.has_input(2) ? n.emit(RmsNormAttrs{n.rank(x) - 1, epsilon}, {x, n.input(2)}) : x;
}

// A, skip?, norm_scale?, and weights, scales and bias? of the gate and of what it multiplies.
bool lower_matmul_nbits_mlp(NodeLowering& n) {
  const std::string activation = n.attr_string("activation", "");
  if (activation != "silu") return n.refuse("activation '{}' is not supported", activation);
  const int64_t columns = n.attr_int("N", 0);
  const ValueId x = normalized(n, 1);
  const ValueId gate = packed_product(n, x, {columns, 3, 4, 5}),
                up = packed_product(n, x, {columns, 6, 7, 8});
  return gate >= 0 && up >= 0 && n.output(0, n.mul(n.emit(SiluAttrs{1}, {gate}), up));
}

// A, skip?, norm_scale, and weights, scales and bias? of queries, keys and values.
bool lower_matmul_nbits_qkv(NodeLowering& n) {
  if (!n.has_input(2)) return n.refuse("needs norm_scale");
  const ValueId x = normalized(n, 3);
  for (size_t i = 0; i < 3; ++i) {
    const size_t first = 3 + 3 * i;
    const int64_t columns = n.attr_int(i == 0 ? "Nq" : "Nkv", 0);
    if (!n.output(i, packed_product(n, x, {columns, first, first + 1, first + 2}))) return false;
  }
  return true;
}

}  // namespace

std::span<const OnnxOperator> matmul_nbits_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MatMulNBits", 1, lower_matmul_nbits, "F * * * * f", kTakesBounded, kMicrosoft},
      {"MatMulNBitsMlp", 1, lower_matmul_nbits_mlp, "F F f * * f * * f", kTakesBounded, kMicrosoft},
      {"MatMulNBitsQkv", 1, lower_matmul_nbits_qkv, "F F f * * f * * f * * f", kTakesBounded, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

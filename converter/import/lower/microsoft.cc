// Fused operators of com.microsoft that exporters' optimizers leave behind, taken apart again.
#include <algorithm>
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/bit_rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// ---- products

std::vector<int64_t> swapped_last(int64_t rank) {
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  if (rank >= 2) std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  return perm;
}

// transBatch: the first axis comes after the batch, [M, batch..., K] -> [batch..., M, K].
ValueId arranged(NodeLowering& n, ValueId v, bool transpose, bool batch) {
  const int64_t rank = n.rank(v);
  if (batch && rank > 2) {
    std::vector<int64_t> perm;
    for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
    perm.insert(perm.end(), {0, rank - 1});
    v = n.transpose(v, perm);
  }
  return transpose && rank > 1 ? n.transpose(v, swapped_last(rank)) : v;
}

ValueId fused_product(NodeLowering& n) {
  const double alpha = n.attr_float("alpha", 1);
  const bool trans_a = n.attr_int("transA", 0) != 0, trans_b = n.attr_int("transB", 0) != 0;
  const bool batch_a = n.attr_int("transBatchA", 0) != 0, batch_b = n.attr_int("transBatchB", 0) != 0;
  if (!n.has_input(1)) return n.refuse("needs two inputs"), kUnknown;
  const ValueId y =
      matrix_product(n, arranged(n, n.input(0), trans_a, batch_a), arranged(n, n.input(1), trans_b, batch_b));
  return alpha != 1 ? n.mul(y, n.scalar(n.dtype(y), alpha)) : y;
}

bool lower_fused_matmul(NodeLowering& n) { return n.output(0, fused_product(n)); }

bool lower_fused_matmul_activation(NodeLowering& n) {
  const ValueId y = fused_product(n);
  const std::string activation = n.attr_string("activation", "");
  int64_t axis = n.attr_int("activation_axis", -1);
  if (activation != "Softmax") return n.output(0, activated_by_attributes(n, y, activation));
  return n.normalize_axis(&axis, n.rank(y)) && n.output(0, n.emit(SoftmaxAttrs{axis, 0}, {y}));
}

// Integer k of those of `bits` that follow each other, low bits first.
uint8_t integer_at(std::span<const std::byte> bytes, int64_t bits, int64_t k) {
  const auto bit = static_cast<size_t>(k * bits);
  unsigned window = static_cast<unsigned>(bytes[bit / 8]);
  if (bit / 8 + 1 < bytes.size()) window |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
  return static_cast<uint8_t>(window >> (bit % 8) & ((1u << bits) - 1));
}

// Those of widths without an element type, as uint8.
ConstantPtr as_bytes(const ConstantPtr& packed, int64_t bits, Dims dims) {
  return Constant::lazy(DType::kUint8, dims, [packed, bits, dims] {
    const LoadedBytes loaded = packed->load();
    Bytes result(static_cast<size_t>(element_count(dims)));
    for (size_t k = 0; k < result.size(); ++k)
      result[k] = static_cast<std::byte>(integer_at(loaded.bytes, bits, static_cast<int64_t>(k)));
    return result;
  });
}

// Weights of 2 to 8 bits with a scale per block of K: [N, blocks, bytes].
bool lower_matmul_nbits(NodeLowering& n) {
  const int64_t k = n.attr_int("K", 0), columns = n.attr_int("N", 0), bits = n.attr_int("bits", 4),
                block = n.attr_int("block_size", 0);
  n.ignore_attr("accuracy_level");
  const DType packed = bits == 2 ? DType::kUint2 : bits == 4 ? DType::kUint4 : DType::kUint8;
  constexpr int64_t kMost = int64_t{1} << 28;
  if (bits < 2 || bits > 8 || k < 1 || k > kMost || columns < 1 || columns > kMost || block < 1 ||
      block > kMost || block % 8 * bits % 8 != 0 || !n.has_input(2))
    return n.refuse_shapes("bits {}, K {}, N {} and block_size {} do not fit", bits, k, columns, block);
  const int64_t blocks = (k + block - 1) / block, padded = blocks * block;
  const ConstantPtr b = n.constant(n.input(1));
  if (!b) return n.refuse("its weights must be constant");
  if (static_cast<int64_t>(b->byte_size()) != columns * padded * bits / 8)
    return n.refuse_shapes("weights {} do not fit N {} and {} blocks of {}", to_string(b->dims()), columns,
                           blocks, block);
  const LoadedBytes loaded = b->load();
  const ValueId weights =
      n.add_constant(has_planes(static_cast<int>(bits))
                         ? as_bytes(b, bits, {columns, padded})
                         : Constant::mapped(packed, {columns, padded}, loaded.owner, loaded.bytes));
  const ValueId scale = n.reshape(n.input(2), {columns, blocks});
  const DType t = n.dtype(n.input(0));
  // Zero points: packed rows of whole bytes, or numbers of the scale's type, or the middle of the range.
  const int64_t row_bytes = (blocks * bits + 7) / 8;
  std::vector<uint8_t> zeros(static_cast<size_t>(columns * blocks), static_cast<uint8_t>(1 << (bits - 1)));
  // A block of its own per row, or fractional zero points: element by element.
  const bool float_zeros = n.has_input(3) && is_float(n.dtype(n.input(3)));
  if (float_zeros && n.size(n.input(3)) != columns * blocks)
    return n.refuse_shapes("its zero points {} do not fit N {} and {} blocks", to_string(n.dims(n.input(3))),
                           columns, blocks);
  if (n.has_input(4) && (!n.constant(n.input(4)) || n.size(n.input(4)) < k))
    return n.refuse("its group index must be constant and have K elements");
  if (n.has_input(3) && !float_zeros) {
    const ConstantPtr z = n.constant(n.input(3));
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
  if (float_zeros || n.has_input(4)) {
    const auto plain = [&](ValueId v) {
      return n.emit(DequantizeAttrs{0, 0, static_cast<int64_t>(DType::kFloat32)},
                    {v, n.scalar(DType::kFloat32, 1)});
    };
    ValueId s = n.cast(scale, DType::kFloat32);
    ValueId z = float_zeros ? n.cast(n.reshape(n.input(3), {columns, blocks}), DType::kFloat32) : plain(zero);
    if (n.has_input(4)) {
      const ValueId group =
          n.slice(n.reshape(n.cast(n.input(4), DType::kInt64), {n.size(n.input(4))}), 0, 0, k);
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
    if (graph.value(w).name.empty()) graph.value(w).name = graph.value(n.input(1)).name;
  }
  std::vector<ValueId> operands{n.input(0), w};
  if (n.has_input(5)) operands.push_back(n.input(5));
  return n.output(0, n.emit(FullyConnectedAttrs{}, operands));
}

// ids, segment ids?, words, positions, segments?, gamma, beta, mask?, position ids? -> y, mask lengths, the
// sum
bool lower_embed_layer_norm(NodeLowering& n) {
  const double epsilon = n.attr_float("epsilon", 1e-12);
  n.ignore_attr("mask_index_type");
  const ValueId ids = n.input(0);
  if (!n.has_input(6) || n.rank(ids) != 2) return n.refuse("needs ids of rank 2 and seven inputs");
  const int64_t batch = n.dims(ids)[0], length = n.dims(ids)[1];
  ValueId sum = n.emit(GatherAttrs{0}, {n.input(2), ids});
  const ValueId positions =
      n.has_input(8) ? n.emit(GatherAttrs{0}, {n.input(3), n.input(8)}) : n.slice(n.input(3), 0, 0, length);
  sum = n.add(sum, positions);
  if (n.has_input(1) && n.has_input(4)) sum = n.add(sum, n.emit(GatherAttrs{0}, {n.input(4), n.input(1)}));
  if (sum < 0) return false;
  if (n.wants_output(2)) n.output(2, sum);
  if (n.wants_output(1)) {
    const ValueId lengths = n.has_input(7)
                                ? n.emit(ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 0},
                                         {n.cast(n.input(7), DType::kInt32)})
                                : n.broadcast(n.reshape(n.scalar(DType::kInt32, 0), {1}), {batch});
    if (!n.output(1, lengths)) return false;
  } else {
    (void)n.input(7);
  }
  return n.output(0, n.emit(LayerNormAttrs{2, epsilon}, {sum, n.input(5), n.input(6)}));
}

}  // namespace

std::span<const OnnxOperator> microsoft_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"FusedMatMul", 1, lower_fused_matmul, "F F", kTakesBounded | kSumsProducts, kMicrosoft},
      {"FusedMatMulActivation", 1, lower_fused_matmul_activation, "F F", kTakesBounded | kSumsProducts,
       kMicrosoft},
      {"TransposeMatMul", 1, lower_fused_matmul, "F F", kTakesBounded | kSumsProducts, kMicrosoft},
      {"MatMulNBits", 1, lower_matmul_nbits, "F * * * * f", kTakesBounded, kMicrosoft},
      {"EmbedLayerNormalization", 1, lower_embed_layer_norm, "i i F F F F F * i", kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

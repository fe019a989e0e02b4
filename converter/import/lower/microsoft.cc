// Fused operators of com.microsoft that exporters' optimizers leave behind, taken apart again.
#include <algorithm>
#include <cmath>

#include "converter/import/lower/common.h"
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
  const ValueId b = arranged(n, n.input(1), trans_b, batch_b);
  const ValueId y = matrix_product(n, arranged(n, n.input(0), trans_a, batch_a), b);
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
                                ? n.reduce(ReduceFn::kSum, IntList{1}, 0, {n.cast(n.input(7), DType::kInt32)})
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
      {"FusedMatMul", 1, lower_fused_matmul, "F F", kTakesBounded | kSumsProducts | kTwoInputs, kMicrosoft},
      {"FusedMatMulActivation", 1, lower_fused_matmul_activation, "F F",
       kTakesBounded | kSumsProducts | kTwoInputs, kMicrosoft},
      {"TransposeMatMul", 1, lower_fused_matmul, "F F", kTakesBounded | kSumsProducts | kTwoInputs,
       kMicrosoft},
      {"EmbedLayerNormalization", 1, lower_embed_layer_norm, "i i F F F F F * i", kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

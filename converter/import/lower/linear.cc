// Matrix products: MatMul, Gemm and their com.microsoft relatives.
#include "converter/import/lower/common.h"

namespace sinter::convert {

// A product with NumPy's rules for 1-D operands; constant 2-D B becomes a FullyConnected.
ValueId matrix_product(NodeLowering& n, ValueId a, ValueId b) {
  const int64_t rank_a = n.rank(a), rank_b = n.rank(b);
  if (rank_a == 0 || rank_b == 0) return n.refuse_shapes("MatMul of a scalar");
  if (rank_a == 1) a = n.unsqueeze(a, 0);
  if (rank_b == 1) b = n.unsqueeze(b, 1);
  ValueId y = n.rank(b) == 2 && n.constant(b) && rank_a > 1 && rank_b > 1
                  ? n.emit(FullyConnectedAttrs{}, {a, n.transpose(b, {1, 0})})
                  : n.emit(MatMulAttrs{}, {a, b});
  if (y < 0) return y;
  Dims dims = n.dims(y);
  if (rank_b == 1) dims.erase(dims.end() - 1);
  if (rank_a == 1) dims.erase(dims.end() - (rank_b == 1 ? 1 : 2));
  return n.reshape(y, dims);
}

namespace {

bool lower_matmul(NodeLowering& n) { return n.output(0, matrix_product(n, n.input(0), n.input(1))); }

// Gemm-1 to 13: alpha * A' B' + beta * C. Gemm-1/6 broadcast C on request; the rule broadcasts always.
ValueId gemm(NodeLowering& n) {
  const double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  const bool trans_a = n.attr_int("transA", 0) != 0, trans_b = n.attr_int("transB", 0) != 0;
  n.ignore_attr("broadcast");
  ValueId a = n.input(0), b = n.input(1), c = n.input(2);
  if (n.rank(a) != 2 || n.rank(b) != 2)
    return n.refuse_shapes("A and B must be matrices, not of rank {} and {}", n.rank(a), n.rank(b));
  const DType t = n.dtype(a);
  if (trans_a) a = n.transpose(a, {1, 0});
  const int64_t outputs = n.dims(b)[trans_b ? 0 : 1];
  if (!is_float(t) && (alpha != std::floor(alpha) || beta != std::floor(beta))) {
    // Factors that the integers do not have: the sums are scaled in float64, and what is behind the point is
    // cut off.
    ValueId y = n.emit(FullyConnectedAttrs{}, {a, trans_b ? b : n.transpose(b, {1, 0})});
    const ValueId factor = n.scalar(DType::kFloat64, alpha);
    y = n.mul(n.cast(y, DType::kFloat64), factor);
    if (c != kAbsent && beta != 0) {
      const ValueId share = n.scalar(DType::kFloat64, beta);
      y = n.add(y, n.mul(n.cast(c, DType::kFloat64), share));
    }
    return n.cast(y, t);
  }
  if (c != kAbsent && beta != 1) c = n.mul(c, n.scalar(t, beta));
  if (beta == 0) c = kAbsent;
  const bool row_bias =
      c >= 0 && alpha == 1 && n.rank(c) > 0 && n.size(c) == outputs && n.dims(c).back() == outputs;
  std::vector<ValueId> operands{a, trans_b ? b : n.transpose(b, {1, 0})};
  if (row_bias) operands.push_back(n.reshape(c, {outputs}));
  ValueId y = n.emit(FullyConnectedAttrs{}, operands);
  if (alpha != 1) y = n.mul(y, n.scalar(t, alpha));
  return c == kAbsent || row_bias ? y : n.add(y, c);
}

bool lower_gemm(NodeLowering& n) { return n.output(0, gemm(n)); }

// com.microsoft FusedGemm: Gemm, then an activation.
bool lower_fused_gemm(NodeLowering& n) {
  const ValueId y = gemm(n);
  const std::string activation = n.attr_string("activation", "");
  return n.output(0, activated_by_attributes(n, y, activation));
}

}  // namespace

std::span<const OnnxOperator> linear_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MatMul", 1, lower_matmul, "N N", kTakesBounded | kSumsProducts | kInt32Sums | kTwoInputs},
      {"Gemm", 1, lower_gemm, "N N N", kTakesBounded | kSumsProducts | kInt32Sums | kTwoInputs},
      {"FusedGemm", 1, lower_fused_gemm, "F F F", kTakesBounded | kSumsProducts | kTwoInputs, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

// The families of ONNX operators. A family is one file of this folder.
#include <unordered_map>

#include "converter/import/lowering.h"

namespace sinter::convert {

// One line a family, in alphabetical order.
// clang-format off
#define SINTER_FAMILIES(X) \
  X(activation_rules) \
  X(attention_rules) \
  X(cast_rules) \
  X(causal_conv_rules) \
  X(constant_rules) \
  X(conv_rules) \
  X(creation_rules) \
  X(decoder_rules) \
  X(deform_conv_rules) \
  X(einsum_rules) \
  X(elementwise_rules) \
  X(experts_rules) \
  X(group_query_attention_rules) \
  X(if_rules) \
  X(image_rules) \
  X(linear_attention_rules) \
  X(linear_rules) \
  X(loop_rules) \
  X(matmul_bnb4_rules) \
  X(matmul_nbits_rules) \
  X(matrix_rules) \
  X(microsoft_attention_rules) \
  X(microsoft_rules) \
  X(ml_linear_rules) \
  X(ml_trees_rules) \
  X(movement_rules) \
  X(normalize_rules) \
  X(pad_rules) \
  X(pool_rules) \
  X(quantize_rules) \
  X(quantized_table_rules) \
  X(random_rules) \
  X(recurrent_rules) \
  X(reduce_rules) \
  X(resize_rules) \
  X(scan_rules) \
  X(sequence_rules) \
  X(shape_rules) \
  X(signal_rules) \
  X(slice_rules)
// clang-format on

#define X(family) std::span<const OnnxOperator> family();
SINTER_FAMILIES(X)
#undef X

std::span<const std::span<const OnnxOperator>> onnx_operators() {
#define X(family) family(),
  static const std::span<const OnnxOperator> families[] = {SINTER_FAMILIES(X)};
#undef X
  return families;
}

const OnnxOperator* find_operator(std::string_view domain, std::string_view op_type) {
  static const auto index = [] {
    std::unordered_map<std::string, const OnnxOperator*> map;
    for (const auto& family : onnx_operators())
      for (const OnnxOperator& op : family) map.emplace(fmt::format("{}:{}", op.domain, op.op_type), &op);
    return map;
  }();
  const auto it = index.find(fmt::format("{}:{}", domain, op_type));
  return it == index.end() ? nullptr : it->second;
}

}  // namespace sinter::convert

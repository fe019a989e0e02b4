#include "converter/import/caches/cache_sizes.h"

#include <vector>

#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

constexpr size_t kQuery = 0, kKey = 1, kPastKey = 3, kPastValue = 4;  // operands of GroupQueryAttention

int64_t int_of(const ImportedNode& node, const char* attribute, int64_t fallback) {
  const ImportedAttribute* a = node.find(attribute);
  return a != nullptr && a->kind == ImportedAttribute::Kind::kInt ? a->i : fallback;
}

// The last dim of a value of rank 3; -1: not declared.
int64_t declared_width(const ImportedGraph& graph, const std::string& name) {
  for (const auto* values : {&graph.value_info, &graph.inputs})
    for (const ImportedValueInfo& value : *values)
      if (value.name == name && value.dims.size() == 3) return value.dims[2].value;
  return -1;
}

std::optional<int64_t> row_size(const ImportedGraph& graph, const ImportedNode& node, size_t operand) {
  const int64_t heads = int_of(node, "num_heads", 0), groups = int_of(node, "kv_num_heads", 0);
  if (heads < 1 || groups < 1 || heads > INT32_MAX || groups > INT32_MAX) return {};
  const size_t rows = operand - kPastKey + kKey;
  const bool packed = node.inputs[rows].empty();
  const int64_t width = declared_width(graph, node.inputs[packed ? kQuery : rows]),
                parts = packed ? heads + 2 * groups : groups;
  if (width < 1 || width % parts != 0) return {};
  const int64_t size = width / parts;
  return int_of(node, "kv_cache_bit_width", 8) == 4 ? (size + 1) / 2 : size;
}

}  // namespace

std::optional<int64_t> cache_row_size(const ImportedGraph& graph, const std::string& cache) {
  for (const ImportedNode& node : graph.nodes) {
    if (node.domain != kMicrosoft || node.op_type != "GroupQueryAttention") continue;
    for (const size_t operand : {kPastKey, kPastValue})
      if (operand < node.inputs.size() && node.inputs[operand] == cache)
        return row_size(graph, node, operand);
  }
  return {};
}

}  // namespace sinter::convert

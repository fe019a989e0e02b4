#include "converter/passes/integers/integer_rows.h"

#include "runtime/core/integer_limits.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostInt8Depth = ((int64_t{1} << 31) - 1) / (255 * 255);  // of an int32 accumulator

// One slope, or one for each element along the last axis.
bool has_slopes_of_row(const Graph& graph, const Node& node) {
  if (!graph.is_constant(node.inputs[1])) return false;
  const Value &x = graph.value(node.inputs[0]), &slopes = graph.value(node.inputs[1]);
  const int64_t count = slopes.constant->size();
  return count == 1 ||
         (!x.dims.empty() && !slopes.dims.empty() && slopes.dims.back() == count && x.dims.back() == count);
}

int64_t depth_of(const Graph& graph, const Node& node, const MatMulAttrs& product) {
  const Dims& dims = graph.value(node.inputs[0]).dims;
  if (dims.empty()) return 1;
  return product.transpose_a != 0 && dims.size() > 1 ? dims[dims.size() - 2] : dims.back();
}

}  // namespace

int64_t summed_elements(const Graph& graph, const Node& node) {
  int64_t count = 1;
  if (const auto* pool = node.as<AvgPoolAttrs>()) {
    for (const int64_t k : pool->kernel) count *= k;
    return count;
  }
  const auto* reduce = node.as<ReduceAttrs>();
  if (reduce == nullptr) return 0;
  const auto fn = static_cast<ReduceFn>(reduce->fn);
  if (fn != ReduceFn::kMean && fn != ReduceFn::kSum) return 0;
  const Dims& dims = graph.value(node.inputs[0]).dims;
  for (const int64_t axis : reduce->axes) count *= dims[static_cast<size_t>(axis)];
  return count;
}

bool has_integer_row(const Graph& graph, const Node& node, DType type) {
  const bool narrow = type == DType::kInt8;
  if (node.as<AddAttrs>() || node.as<SubAttrs>() || node.as<MulAttrs>()) return true;
  if (const auto* product = node.as<MatMulAttrs>())
    return !narrow || depth_of(graph, node, *product) <= kMostInt8Depth;
  if (node.as<PReluAttrs>()) return has_slopes_of_row(graph, node);
  if (const auto* softmax = node.as<SoftmaxAttrs>())
    return narrow && softmax->log == 0 &&
           graph.value(node.inputs[0]).dims[static_cast<size_t>(softmax->axis)] <= kMaxSoftmaxLength;
  const int64_t count = summed_elements(graph, node);
  return count >= 1 && count <= (narrow ? kMaxInt8Sum : kMaxInt16Sum);
}

}  // namespace sinter::convert

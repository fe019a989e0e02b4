// Sums, differences and products of integers that overflow their type before an operator reads them as a
// wider type.
#include <algorithm>
#include <array>
#include <set>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/ir/integer_range.h"

namespace sinter::convert {
namespace {

// Elements pass through these unchanged.
bool passes_elements(const ImportedNode& node) {
  constexpr std::string_view kOps[] = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
                                       "Slice",    "Gather",  "Expand",  "Tile",    "Concat",    "Split"};
  return node.domain.empty() && std::find(std::begin(kOps), std::end(kOps), node.op_type) != std::end(kOps);
}

// The first Cast to a type that holds more than `made` does and reads the value, or what was moved of it.
const ImportedNode* widening_cast(const ImportedGraph& graph, const std::string& value, DType made) {
  std::set<std::string> reached{value};
  for (const ImportedNode& node : graph.nodes) {  // in an order in which operands exist
    if (node.inputs.empty() || reached.count(node.inputs[0]) == 0) continue;
    if (passes_elements(node)) reached.insert(node.outputs.begin(), node.outputs.end());
    if (!node.domain.empty() || node.op_type != "Cast") continue;
    const ImportedAttribute* to = node.find("to");
    const DType read = to == nullptr ? DType::kNone : dtype_from_onnx(to->i);
    const bool more =
        is_float(read) || (is_integer(read) && (bit_width(read) > bit_width(made) ||
                                                is_signed_integer(read) != is_signed_integer(made)));
    if (more) return &node;
  }
  return nullptr;
}

std::optional<IntegerRange> exact_result(IntegerRange a, IntegerRange b, std::string_view op) {
  std::array<int64_t, 4> corners{};
  size_t i = 0;
  for (const int64_t x : {a.low, a.high})
    for (const int64_t y : {b.low, b.high}) {
      int64_t& r = corners[i++];
      if (op == "Add"   ? __builtin_add_overflow(x, y, &r)
          : op == "Sub" ? __builtin_sub_overflow(x, y, &r)
                        : __builtin_mul_overflow(x, y, &r))
        return std::nullopt;
    }
  const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  return IntegerRange{*low, *high};
}

}  // namespace

void warn_of_wrapping(NodeLowering& n, ValueId result) {
  const std::string& op = n.node().op_type;
  if ((op != "Add" && op != "Sub" && op != "Mul") || result < 0 || n.constant(result)) return;
  const DType made = n.dtype(result);
  const bool difference = op == "Sub" && is_integer(made) && !is_signed_integer(made);
  // Models that compute in 32 and 64 bits rely on that range, except below 0.
  if (!is_integer(made) || (bit_width(made) > 16 && !difference)) return;
  const Graph& graph = n.parent().graph();
  const auto a = integer_range(graph, n.input(0)), b = integer_range(graph, n.input(1));
  const auto exact = a && b ? exact_result(*a, *b, op) : std::nullopt;
  if (exact && holds_range(made, *exact)) return;
  const std::string& name = n.node().outputs[0];
  std::string reader;
  if (const ImportedNode* cast = widening_cast(n.parent().source(), name, made))
    reader = fmt::format("'{}' casts them to {}", cast->name, onnx_type_name(cast->find("to")->i));
  else if (n.wants_fractions())
    reader = "they are read as floating-point numbers";
  if (reader.empty()) return;
  n.parent().diagnostics().warn(
      n.node().name, n.node().op_type,
      fmt::format("the results are {} and wrap around {} before {}", dtype_name(made),
                  difference ? "below 0" : "beyond its range", reader),
      "cast the operands instead of the result");
}

}  // namespace sinter::convert

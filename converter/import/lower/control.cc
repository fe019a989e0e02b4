// Control flow: common parts of If, Loop and Scan. Conditions and counts known at conversion are folded or
// unrolled; others become a planned body.
#include "converter/import/lower/control.h"

#include "converter/import/lower/common.h"
#include "converter/import/result_readers.h"
#include "converter/ir/integer_range.h"
#include "converter/types/representable.h"

namespace sinter::convert {

std::vector<ValueId> add_control(NodeLowering& n, OpAttrs attrs, std::vector<ValueId> operands,
                                 const std::vector<ValueId>& captures,
                                 std::vector<std::shared_ptr<Graph>> bodies,
                                 const std::vector<ValueFact>& results) {
  Graph& graph = n.parent().graph();
  operands.insert(operands.end(), captures.begin(), captures.end());
  Node node{std::move(attrs), std::move(operands), {}, n.node().name, n.node().op_type, std::move(bodies)};
  for (const ValueFact& f : results) node.outputs.push_back(graph.add_value({}, f.dtype, f.dims));
  std::vector<ValueId> out = node.outputs;
  graph.nodes.push_back(std::move(node));
  return out;
}

std::optional<bool> known_truth(NodeLowering& n, ValueId v) {
  if (const ConstantPtr c = n.constant(v)) {
    if (c->size() != 1) return std::nullopt;
    if (const auto fraction = fraction_as_truth(*c))
      n.warn_advising("compare it with a threshold, or cast it to bool, in the model",
                      "the condition is {}; every number but zero is true", *fraction);
    return c->as_doubles()[0] != 0;
  }
  // A question about lengths whose answer is proven.
  const auto items = n.parent().lengths().known_items(v);
  return items && items->size() == 1 ? std::optional(items->front() != 0) : std::nullopt;
}

bool refuse_mixed_index(NodeLowering& n, DType a, std::string_view first, DType b, std::string_view second,
                        const std::string& name, const ImportedGraph* body) {
  const bool mixed = (a == DType::kBool && is_float(b)) || (b == DType::kBool && is_float(a));
  const ImportedGraph& source = body != nullptr ? *body : n.parent().source();
  const std::string reader = mixed ? index_reader(n.parent().model().graph, source, name) : "";
  if (reader.empty()) return false;
  n.refuse_advising("cast both to int64 in the model", "'{}' is {} {} and {} {}, and {} reads it as an index",
                    name, dtype_name(a), first, dtype_name(b), second, reader);
  return true;
}

void warn_of_fraction(NodeLowering& n, std::string_view what, const Graph& graph, ValueId condition) {
  const DType type = graph.value(condition).dtype;
  if (is_float(type) && !is_whole(graph, condition))
    n.warn_advising("compare it with a threshold, or cast it to bool, in the model",
                    "{} has type {}; every number but zero is true, fractions too", what, dtype_name(type));
}

std::vector<std::optional<int64_t>> expected_dims(GraphLowering& graph, ValueId v) {
  std::vector<std::optional<int64_t>> sizes;
  if (v < 0) return sizes;
  for (const LengthId length : graph.lengths().of_axes(v)) sizes.push_back(graph.lengths().expected(length));
  return sizes;
}

ValueId stack(NodeLowering& n, const std::vector<ValueId>& items) {
  std::vector<ValueId> parts;
  for (const ValueId v : items) parts.push_back(n.unsqueeze(v, 0));
  return joined(n, std::move(parts), 0);
}

bool give_results(NodeLowering& n, const std::vector<ValueId>& results) {
  bool good = !results.empty();
  for (size_t i = 0; i < results.size() && i < n.output_count(); ++i)
    if (n.wants_output(i)) good &= n.output(i, results[i]);
  return good;
}
}  // namespace sinter::convert

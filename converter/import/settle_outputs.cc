// The declared types of the model's outputs against the computed ones (rule output.declared).
#include <fmt/format.h>

#include "converter/import/lower.h"
#include "converter/ir/integer_range.h"

namespace sinter::convert {
namespace {

// Does the declared type hold everything that the value can be? Between floating-point types the declaration
// is what the model rounds its result to.
bool keeps_all(const Graph& graph, ValueId id, DType declared) {
  const DType computed = graph.value(id).dtype;
  if (is_float(declared) && is_float(computed)) return true;
  if (computed == DType::kUint64) return false;
  const auto range = integer_range(graph, id);
  return range && holds_range(declared, *range);
}

}  // namespace

// Numbers are cast to what is declared, except that no fraction is cut off: there the declaration is
// impossible and is corrected.
void settle_output_types(const ImportedGraph& source, GraphLowering& lowering) {
  Graph& graph = lowering.graph();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string& name = source.outputs[i].name;
    const DType declared = source.outputs[i].dtype, computed = graph.value(graph.outputs[i]).dtype;
    if (declared == DType::kNone || declared == computed) continue;
    if (byte_width(declared) == 0) {
      if (is_sub_byte(declared) && is_integer(computed))
        lowering.ledger().add(
            {name,
             "",
             "",
             declared,
             computed,
             TypeRule::kOutputDeclared,
             "values of less than a byte do not exist at run time; the numbers are the same",
             TypeEffect::kDeclared,
             {}});
      continue;
    }
    const bool whole = (declared == DType::kBool || is_integer(declared)) && !is_float(computed);
    const bool silent = keeps_all(graph, graph.outputs[i], declared);
    std::vector<ValueId> cast;
    lowering.builder().set_origin({name, "output"});
    if ((is_float(declared) || whole) &&
        lowering.builder()
            .emit(CastAttrs{static_cast<int64_t>(declared), 1}, {graph.outputs[i]}, 1, &cast)
            .ok()) {
      graph.value(cast[0]).bounded_dims = graph.value(graph.outputs[i]).bounded_dims;
      graph.outputs[i] = cast[0];
      lowering.ledger().add({name,
                             name,
                             "output",
                             computed,
                             declared,
                             TypeRule::kOutputDeclared,
                             "the model's output keeps its declared type",
                             TypeEffect::kCast,
                             {}});
      if (silent) continue;
      lowering.diagnostics().warn(
          "", "",
          fmt::format("output '{}' is declared {} but computed as {}; a cast is added, which {} values that "
                      "the declared type does not hold",
                      name, dtype_name(declared), dtype_name(computed),
                      declared == DType::kBool ? "loses"
                      : is_float(declared)     ? "rounds"
                                               : "wraps"),
          fmt::format("declare it {} if such values can occur", dtype_name(computed)));
      continue;
    }
    lowering.ledger().add({name,
                           "",
                           "",
                           declared,
                           computed,
                           TypeRule::kOutputDeclared,
                           "the computed type cannot be the declared one without losing values",
                           TypeEffect::kDeclared,
                           {}});
    lowering.diagnostics().warn(
        "", "",
        fmt::format("output '{}' is declared {} but is {}; the declaration is corrected", name,
                    dtype_name(declared), dtype_name(computed)));
  }
}

}  // namespace sinter::convert

// integer: what is between Dequantize and Quantize is computed on the integers themselves.
//
// Values that were dequantized are known with their integers and parameters. Operations that only move
// elements are done on the integers, and the Dequantize goes behind them. What has an integer row and
// operands that are known so becomes that row; a product whose result is not quantized again gives float32
// directly. What has no integer row stays as it is: dequantize, compute, quantize.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "converter/ir/quant_params.h"
#include "converter/passes/editor.h"

namespace sinter::convert {

// A float32 value known by its integers.
struct QuantizedValue {
  ValueId q = kAbsent;
  QuantParams params;
};

// The operands that a node takes its results' elements from, each with a range of its own; none: it does not.
std::vector<size_t> joined_operands(const Node& node);
// Interpolation between neighbours along one axis or two adjacent ones, as QResize does it: the
// operands between Views of [outer, first, second, inner].
struct Interpolation {
  Dims in, out;  // of the views
  std::vector<int32_t> rows, columns;
  bool exact = true;  // its weights are not rounded
};
std::optional<Interpolation> interpolation(const Graph& graph, const Node& node);
// Whether the result has the scale and zero point of the first operand, on integers.
bool keeps_scale(const Graph& graph, const Node& node);

// The pass for a graph that this program has rounded, and its bodies: it may round where the graph does not,
// because the noise of all roundings is measured. Returns the count of changes.
int rounded_integer_form(Graph& graph);

// The common state of the pass's rules.
class IntegerForm {
 public:
  explicit IntegerForm(Graph& graph, bool rounded_here = false);
  int run();
  // Makes uint8 integers int8.
  int run_signs();

  Editor e;

  // The integers of a float value, if they are known.
  const QuantizedValue* known(ValueId id) const;
  // The Quantize (per tensor) that alone reads node n's only output, or -1.
  int quantizer(int n);
  // The same, if it gives int8.
  int int8_quantizer(int n);
  // The Clamp that alone reads what node `quantize` gives, or -1.
  int clamp_behind(int quantize);
  QuantParams params_of(int quantize) { return *quant_params(e.graph(), e.node(quantize)); }
  // Everybody reads `q` instead of what node `quantize` gave.
  void settle(int quantize, ValueId q);

 private:
  void visit(int n);
  bool sink(int n);     // integer_movement.cc
  bool resize(int n);   // integer_resize.cc
  bool product(int n);  // integer_products.cc
  bool matrix_product(int n);
  bool pointwise(int n);  // integer_pointwise.cc
  bool joined(int n);     // integer_movement.cc: differently quantized values picked from
  ValueId quantized_constant(ValueId id, const QuantParams& y);
  bool quantized_before(int n);  // integer_movement.cc: Quantize of what was moved
  bool make_signed(int n);       // integer_signs.cc
  ValueId signed_integers(int n, ValueId id);
  void name_signed(ValueId id, ValueId now);  // `now` holds what `id` holds as int8
  bool arithmetic(int n);                     // integer_arithmetic.cc, with the following
  bool mean(int n);
  bool prelu(int n);
  bool softmax(int n);
  std::optional<QuantizedValue> integers(ValueId id, bool wide);
  bool any_wide(const std::vector<ValueId>& inputs) const;
  bool give(int n, int consumer, OpAttrs attrs, std::vector<ValueId> inputs);
  // The parameters of a row that takes one type: its result's parameters, int16 ones if the quantizer's or
  // an operand is int16, and what has to become of the result. nullopt: a zero point is in the way.
  std::optional<QuantParams> common_result(const QuantParams& y,
                                           std::span<const QuantizedValue* const> operands);
  // `x` as that type, exactly; false: not possible.
  bool to_type(int n, DType type, QuantizedValue* x);
  // Operand 0 of node n in the type of its result, where n has one quantizer. nullopt: it cannot be computed
  // on integers.
  struct OneOperand {
    QuantizedValue x;
    QuantParams y;  // of the result
    int consumer = -1;
  };
  std::optional<OneOperand> one_operand(int n);
  // A look-up in a table with the integers of `root`, before node n.
  ValueId look_up(int n, ValueId root, const std::vector<int8_t>& table);
  ValueId requantized(int n, const QuantizedValue& x, const QuantParams& y);
  // Records in the value what its integers represent.
  void note(ValueId q, const QuantParams& params);
  bool wide_pointwise(int n, int consumer, ValueId root, const ConstantPtr& values);
  // Node n becomes the Dequantize of q.
  void dequantize(int n, ValueId q, const QuantParams& params);

  class Pointwise;
  struct Table {
    ValueId root = kAbsent;
    std::vector<int8_t> table;  // for -128, -127, ...
  };

  // Else the graph was given rounded, and no other rounding may change its results.
  bool rounded_here_;
  bool quantizes_;  // the graph has a Quantize
  std::map<ValueId, QuantizedValue> known_;
  std::map<ValueId, ValueId> signed_;  // by uint8 value
  std::map<ValueId, Table> tables_;    // by what was looked up
};

}  // namespace sinter::convert

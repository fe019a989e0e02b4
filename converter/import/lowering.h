// Lowering: one ONNX node becomes canonical operations, with its operands' types, shapes and constants known.
//
// A family file (converter/import/lower/*.cc) gives a list of operators (onnx_operator.h), each with its
// rule; converter/import/lower/rules.cc lists the families. A rule is a function that reads the node through
// `NodeLowering`, emits operations and sets the outputs:
//
//   bool lower_flatten(NodeLowering& n) {
//     const int64_t rank = n.rank(0);
//     int64_t axis = n.attr_int("axis", 1);
//     if (!n.normalize_axis(&axis, rank + 1)) return false;
//     ...
//     return n.output(0, n.emit(ViewAttrs{...}, {n.input(0)}));
//   }
//
// Failing steps file a refusal (with the node's name) once and give kUnknown; emitting with a kUnknown
// operand gives kUnknown without another word, so a rule may simply continue. What a refused node should have
// produced is unknown to its readers, which are then silent too: every refusal of a model comes in one run,
// and only the root causes.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/onnx_operator.h"
#include "converter/import/read/imported_graph.h"
#include "converter/ir/builder.h"
#include "converter/types/settle.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

inline constexpr ValueId kUnknown = -2;
// Below kUnknown: a sequence of tensors, known only while lowering (GraphLowering::sequence).
constexpr bool is_sequence(ValueId v) { return v < kUnknown; }

class GraphLowering;  // converter/import/lower.h: the graph around the node

// The result of a function that refuses its node: false, or no value.
struct Refusal {
  operator bool() const { return false; }        // NOLINT(google-explicit-constructor)
  operator ValueId() const { return kUnknown; }  // NOLINT(google-explicit-constructor)
};

class NodeLowering {
 public:
  NodeLowering(GraphLowering& parent, const ImportedNode& node);

  // ---- the node
  const ImportedNode& node() const { return node_; }
  int opset() const;  // version of ai.onnx that the node is written for; the newest for other domains

  // ---- operands. Indexes beyond the node's list and empty names are absent.
  size_t input_count() const { return inputs_.size(); }
  // Reading one marks it as understood; inputs that no rule has read are refused afterwards.
  bool has_input(size_t i) const { return input(i) != kAbsent; }
  ValueId input(size_t i) const {
    if (i >= inputs_.size()) return kAbsent;
    input_read_[i] = true;
    return inputs_[i];
  }
  size_t output_count() const { return outputs_.size(); }
  bool wants_output(size_t i) const;
  // Facts. For kUnknown and absent values: kNone and an empty shape.
  DType dtype(ValueId v) const;
  const Dims& dims(ValueId v) const;
  int64_t rank(ValueId v) const { return static_cast<int64_t>(dims(v).size()); }
  int64_t size(ValueId v) const { return element_count(dims(v)); }
  // The value's constant, or null.
  ConstantPtr constant(ValueId v) const;
  // Elements of input i, which must be constant (refused otherwise: "must be constant; give it with
  // --const"). nullopt where the input is absent or was refused; has_input distinguishes them.
  std::optional<std::vector<int64_t>> constant_ints(size_t i);
  std::optional<std::vector<double>> constant_doubles(size_t i);
  // A one-element constant input.
  std::optional<int64_t> constant_int(size_t i);
  std::optional<double> constant_double(size_t i);

  // ---- attributes. Reading one marks it as understood; attributes that no rule read are refused afterwards.
  bool has_attr(std::string_view name) const;
  int64_t attr_int(std::string_view name, int64_t fallback);
  double attr_float(std::string_view name, double fallback);
  std::string attr_string(std::string_view name, std::string_view fallback);
  std::vector<int64_t> attr_ints(std::string_view name, std::vector<int64_t> fallback = {});
  std::vector<double> attr_floats(std::string_view name, std::vector<double> fallback = {});
  std::vector<std::string> attr_strings(std::string_view name);
  ConstantPtr attr_tensor(std::string_view name);  // null if absent
  const ImportedGraph* attr_graph(std::string_view name);
  // Returns what an attribute's text stands for in a list of choices; nullopt: refused, for none of them has
  // the name.
  template <class T>
  std::optional<T> attr_choice(std::string_view name, std::string_view fallback,
                               std::initializer_list<std::pair<std::string_view, T>> choices) {
    const std::string text = attr_string(name, fallback);
    for (const auto& [known, choice] : choices)
      if (known == text) return choice;
    refuse("{} '{}' is not known", name, text);
    return std::nullopt;
  }
  void ignore_attr(std::string_view name);  // understood, has no effect here

  // ---- building
  // A call has at most one argument that adds nodes or constants: compilers evaluate arguments in different
  // orders, and their files would differ.
  ValueId emit(OpAttrs attrs, std::vector<ValueId> inputs);  // one output
  std::vector<ValueId> emit_many(OpAttrs attrs, std::vector<ValueId> inputs, size_t output_count);
  std::vector<ValueId> emit_many(OpAttrs attrs, std::vector<ValueId> inputs, const std::vector<bool>& wanted);
  // The same of padded operands, as if none of them were bounded (bounded.h).
  std::vector<ValueId> emit_padded(OpAttrs attrs, std::vector<ValueId> inputs,
                                   const std::vector<bool>& wanted);
  ValueId add_constant(ConstantPtr constant);
  // Gives kUnknown for type kNone, which an operand has that is missing or refused.
  ValueId scalar(DType dtype, double value);
  ValueId int64(int64_t value) { return add_constant(Constant::scalar_int(DType::kInt64, value)); }
  ValueId int64s(std::span<const int64_t> items) { return add_constant(Constant::int64s(items)); }
  // Common short forms; each gives its argument back where nothing would change.
  ValueId reshape(ValueId v, Dims dims);
  ValueId transpose(ValueId v, std::vector<int64_t> perm);
  // Casts other than those that the model wrote are entered into the ledger: the operator's own by rule
  // op.compute.
  ValueId cast(ValueId v, DType to);
  ValueId cast(ValueId v, DType to, TypeRule rule, std::string reason);
  ValueId slice(ValueId v, int64_t axis, int64_t start, int64_t size, int64_t step = 1);
  ValueId broadcast(ValueId v, Dims dims);
  ValueId unsqueeze(ValueId v, int64_t axis);
  ValueId add(ValueId a, ValueId b) { return emit(AddAttrs{}, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return emit(SubAttrs{}, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return emit(MulAttrs{}, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return emit(DivAttrs{}, {a, b}); }
  ValueId compare(CompareFn fn, std::vector<ValueId> inputs) {
    return emit(CompareAttrs{static_cast<int64_t>(fn)}, std::move(inputs));
  }
  ValueId bitwise(BitwiseFn fn, std::vector<ValueId> inputs) {
    return emit(BitwiseAttrs{static_cast<int64_t>(fn)}, std::move(inputs));
  }
  ValueId reduce(ReduceFn fn, const IntList& axes, int64_t keepdims, std::vector<ValueId> inputs) {
    return emit(ReduceAttrs{static_cast<int64_t>(fn), axes, keepdims}, std::move(inputs));
  }
  ValueId round(RoundFn fn, std::vector<ValueId> inputs) {
    return emit(RoundAttrs{static_cast<int64_t>(fn)}, std::move(inputs));
  }
  ValueId where(std::vector<ValueId> inputs) { return emit(WhereAttrs{}, std::move(inputs)); }
  // [N, C, spatial...] <-> [N, spatial..., C]; values of rank < 3 come back unchanged.
  ValueId to_channels_last(ValueId v);
  ValueId to_channels_first(ValueId v);

  // Negative axes count from the end; out of range is refused.
  bool normalize_axis(int64_t* axis, int64_t rank);
  bool normalize_axes(std::vector<int64_t>* axes, int64_t rank);  // also refuses duplicates

  // Declares an output of the node, the first in the type that was settled for it; false if v is kUnknown.
  bool output(size_t i, ValueId v);
  // Nothing is left that reads output i; for one that has no value.
  void absent_output(size_t i) {
    if (outputs_[i] == kUnknown) outputs_[i] = kAbsent;
  }
  // Sequences of tensors, as lists of values. Null: input i is none.
  const std::vector<ValueId>* sequence(size_t i) const;
  bool output_sequence(size_t i, std::vector<ValueId> items);

  // Files a refusal with node and op, so that a rule can `return n.refuse(...)`.
  template <class... Args>
  Refusal refuse(fmt::format_string<Args...> format, Args&&... args) {
    return refuse_text(fmt::format(format, std::forward<Args>(args)...));
  }
  // The same with advice, which states what the user can do about it.
  template <class... Args>
  Refusal refuse_advising(std::string advice, fmt::format_string<Args...> format, Args&&... args) {
    return refuse_text(fmt::format(format, std::forward<Args>(args)...), std::move(advice));
  }
  // Shapes, counts or indices disagree.
  template <class... Args>
  Refusal refuse_shapes(fmt::format_string<Args...> format, Args&&... args) {
    return refuse_text(fmt::format(format, std::forward<Args>(args)...), shape_advice());
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    warn_text(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn_advising(std::string advice, fmt::format_string<Args...> format, Args&&... args) {
    warn_text(fmt::format(format, std::forward<Args>(args)...), std::move(advice));
  }
  bool refused() const { return refused_; }
  // Files a decision about a type for this node in the ledger.
  void record(std::string value, DType before, DType after, TypeRule rule, std::string reason,
              TypeEffect effect, std::vector<TypeRequest> requests = {});

  // Gives the operands the types that the operator's row (onnx_operator.h) requires, and
  // files it in the ledger. False: refused. Called once, before the operator is lowered.
  bool settle_operands();
  // The type that the operator computes in (Settlement::inner); kNone: its row leaves that to the operator.
  DType inner_type() const { return inner_; }
  // Gives the tensors of a sequence one type where they become one tensor, as operands of a Concat have it.
  // Which tensors a sequence holds is known only where it is read, so that no row can request their types.
  bool settle_tensors(std::vector<ValueId>* tensors);
  // Is output 0 meant to hold fractions: declared so as an output, or read where only floating-point numbers
  // go or beside one, by way of other operators too?
  bool wants_fractions();

  GraphLowering& parent() { return parent_; }

 private:
  friend class GraphLowering;
  // Returns whether the node's operator can take these operands; refused otherwise. Fixes the lengths of
  // operands that may not be bounded.
  bool operands_fit(const OnnxOperator& rule);
  // Lowers the node; refuses attributes and operands that its operator does not have. False: refused.
  bool lower_by(const OnnxOperator& rule);
  Refusal refuse_text(std::string message, std::string advice = {});
  Refusal refuse_status(const Status& status, Op op);
  std::string shape_advice() const;
  std::string operands_text();
  std::string sequence_text(ValueId v) const;
  void warn_text(std::string message, std::string advice = {});
  bool widen_sub_bytes(std::vector<ValueId>* inputs, const std::vector<ValueId>& operands);
  void drop_needless_bounds();
  std::vector<OperandFact> facts_of(const OperandRules& rules, const std::vector<ValueId>& values,
                                    const std::vector<std::string>& names, std::string_view what,
                                    bool long_sum);
  ResultFact result_fact(const OperandRules& rules, const std::vector<OperandFact>& facts);
  bool apply(const Settlement& settled, const std::vector<OperandFact>& facts,
             const std::vector<std::string>& names, std::vector<ValueId>* values);
  bool read_as_fractions(const std::string& name, std::set<std::string>& seen);
  const ImportedAttribute* find(std::string_view name, bool mark);
  const ImportedAttribute* find_of(std::string_view name, ImportedAttribute::Kind kind, const char* what);
  template <class T>
  std::optional<T> sole(size_t i, const std::optional<std::vector<T>>& items);

  GraphLowering& parent_;
  const ImportedNode& node_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<bool> attr_read_;
  mutable std::vector<bool> input_read_;
  DType inner_ = DType::kNone;
  std::vector<OperandSettlement> settled_;  // what the operands have become
  OperandSettlement result_;                // what output 0 becomes
  bool refused_ = false;
};

// The remedy for an unsupported type ("string", "complex64"); may be empty.
std::string type_advice(std::string_view type);

}  // namespace sinter::convert

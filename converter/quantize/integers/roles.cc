#include "converter/quantize/integers/roles.h"

#include <algorithm>
#include <cmath>

#include "converter/cost/work.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/passes/integers/integer_rows.h"
#include "converter/quantize/integers/given_integers.h"
#include "converter/quantize/integers/integer_recurrent.h"
#include "converter/quantize/integers/table_functions.h"
#include "converter/quantize/integers/unsuited_operations.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

enum class OperationKind { kFloat, kSteep, kProduct, kArithmetic, kTable, kMovement };

constexpr double kFarConstant = 1e4;  // such as masks; a range that holds them has no steps left

// Returns whether a value may be joined with others under one range: it is data, or a constant that leaves
// enough steps.
bool joinable(const Graph& g, ValueId id) {
  if (is_data(g, id)) return true;
  if (!float_value(g, id)) return false;
  const std::vector<double> items = g.value(id).constant->as_doubles();
  return std::all_of(items.begin(), items.end(), [](double x) { return std::fabs(x) < kFarConstant; });
}

// `function`: the node is a part of a function of one value, element by element. Steepness is not looked at.
OperationKind kind_of(const Graph& g, const Node& node, bool function) {
  if (function) return OperationKind::kTable;
  if (node.outputs.size() != 1 || !node.bodies.empty() || !float_value(g, node.outputs[0]) ||
      node.inputs.empty())
    return OperationKind::kFloat;
  const ValueId x = node.inputs[0];
  if (weight_axis(g, node) >= 0) return is_data(g, x) ? OperationKind::kProduct : OperationKind::kFloat;
  const auto given = [&](bool holds) { return holds ? OperationKind::kArithmetic : OperationKind::kFloat; };
  // The row of int8 counts; sums of int16 have a lower limit, which counts once types are chosen.
  const auto has_row = [&] { return has_integer_row(g, node, DType::kInt8); };
  // Some of these operands must be data, and one range must serve all of them.
  const auto joins = [&](const std::vector<size_t>& operands) {
    bool any = false, all = true;
    for (const size_t i : operands) any |= is_data(g, node.inputs[i]), all &= joinable(g, node.inputs[i]);
    return given(any && all);
  };
  if (const auto operands = joined_operands(node); !operands.empty()) return joins(operands);
  if (integer_row(node.op()).kind == IntegerRow::kNone) return OperationKind::kFloat;
  switch (node.op()) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMatMul:
      return has_row() ? joins({0, 1}) : OperationKind::kFloat;
    case Op::kDiv:
      return given(is_data(g, x) && reciprocals(g, node.inputs[1]) != nullptr);
    case Op::kPRelu:
    case Op::kAvgPool:
    case Op::kSoftmax:
      return given(is_data(g, x) && has_row());
    case Op::kReduce:
      if (summed_elements(g, node) > 0) return given(is_data(g, x) && has_row());
      break;
    case Op::kPad:
      if (static_cast<PadMode>(node.as<PadAttrs>()->mode) != PadMode::kConstant || node.inputs.size() < 2 ||
          node.inputs[1] < 0)
        break;
      if (!g.is_constant(node.inputs[1]) || g.value(node.inputs[1]).constant->size() != 1 ||
          !joinable(g, node.inputs[1]))
        return OperationKind::kFloat;
      break;
    default:
      break;
  }
  return keeps_scale(g, node) && is_data(g, x) ? OperationKind::kMovement : OperationKind::kFloat;
}

// The roles of a graph's operations.
class Assigning {
 public:
  Assigning(const Graph& graph, const LeftMap& left)
      : g_(graph), left_(left), function_roots_(function_roots(graph)), uses_(graph) {
    const std::vector<bool> steep = steep_nodes(g_, function_roots_);
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const Node& node = g_.nodes[n];
      kinds_.push_back(kind_of(g_, node, is_function(function_roots_, node)));
      if (steep[n] && kinds_[n] != OperationKind::kFloat) kinds_[n] = OperationKind::kSteep;
      // A function is float as a whole.
      if (is_function(function_roots_, node) && left.contains(node.outputs[0]))
        float_functions_.insert(root(node));
    }
  }

  std::vector<Role> run() {
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const Node& node = g_.nodes[n];
      const bool is_float = !is_port(node) && (kinds_[n] == OperationKind::kFloat ||
                                               kinds_[n] == OperationKind::kSteep || is_left(node));
      roles_.push_back(is_float ? Role::kFloat : Role::kInteger);
    }
    for (bool again = true; again;) {
      again = false;
      for (size_t n = 0; n < g_.nodes.size(); ++n) {
        const Node& node = g_.nodes[n];
        const bool product = kinds_[n] == OperationKind::kProduct;
        if (roles_[n] != Role::kInteger || (product ? !is_slow(node) : lies_between(node))) continue;
        roles_[n] = product ? Role::kReader : Role::kFloat, again = true;
      }
    }
    return roles_;
  }

  // Adds the fates of all operations that take or give float32.
  void tell(std::vector<LayerFate>* fates) const {
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const Node& node = g_.nodes[n];
      // Integers that are given are read as they are.
      if (node.outputs.empty() || node.op() == Op::kView || given_integers(g_, node)) continue;
      const ValueId result = is_recurrent(node.op()) ? recurrent_result(node) : node.outputs[0];
      if (!float_value(g_, result)) continue;
      LayerFate fate{node.name, op_info(node.op())->name, result, roles_[n] == Role::kInteger, {}};
      fate.multiply_adds = multiply_adds(CallShape(g_, node));
      fate.float_time = float_cost(left_.cpu, g_, node), fate.integer_time = int8_cost(left_.cpu, g_, node);
      if (!fate.integer) fate.left = why_float(n, result);
      fates->push_back(std::move(fate));
    }
  }

 private:
  ValueId root(const Node& node) const { return function_roots_[static_cast<size_t>(node.outputs[0])]; }
  bool is_port(const Node& node) const {
    return !node.outputs.empty() && left_.integer_ports.contains(node.outputs[0]);
  }
  bool is_left(const Node& node) const {
    return !node.outputs.empty() &&
           (left_.contains(node.outputs[0]) ||
            (is_function(function_roots_, node) && float_functions_.contains(root(node))));
  }

  // Whether an operation before it computes integers, or gives them.
  bool is_fed(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const int p = id < 0 ? -1 : uses_.producer[static_cast<size_t>(id)];
      return p >= 0 && (roles_[static_cast<size_t>(p)] == Role::kInteger ||
                        given_integers(g_, g_.nodes[static_cast<size_t>(p)]));
    });
  }
  bool is_read(const Node& node) const {
    const auto& readers = uses_.readers[static_cast<size_t>(node.outputs[0])];
    return std::any_of(readers.begin(), readers.end(),
                       [&](int r) { return r >= 0 && roles_[static_cast<size_t>(r)] != Role::kFloat; });
  }
  // An operation with no integer operation before or after it gains nothing from being rounded twice.
  bool lies_between(const Node& node) const {
    if (is_port(node)) return true;
    return left_.require_int8 ? is_fed(node) || is_read(node) : is_fed(node) && is_read(node);
  }
  // A product whose result is kept in float: its operand must be rounded for it if nothing else is, or else
  // converted back to float if it does not compute on integers. Transposed convolutions and several outputs
  // per channel have no fast kernel that gives float32. Where memory decides, the operand's bytes are
  // compared with those that each weight saves.
  bool is_slow(const Node& node) const {
    if (left_.force_int8 || is_read(node)) return false;
    const Dims &x = g_.value(node.inputs[0]).dims, &y = g_.value(node.outputs[0]).dims;
    constexpr int64_t kSaved = sizeof(float) - sizeof(int8_t);
    const bool fed = is_fed(node);
    if (left_.memory_decides() &&
        (fed || kSaved * element_count(g_.value(node.inputs[1]).dims) > element_count(x)))
      return false;
    if (node.as<ConvTransposeAttrs>() || (node.as<DepthwiseConvAttrs>() && x.back() != y.back())) return true;
    const double boundary = boundary_cost(left_.cpu, element_count(x));
    return int8_cost(left_.cpu, g_, node) + (fed ? -boundary : boundary) >= float_cost(left_.cpu, g_, node);
  }

  LeftFloat why_float(size_t n, ValueId result) const {
    const Node& node = g_.nodes[n];
    if (const auto asked = left_.find(result); asked != left_.end()) return asked->second;
    if (is_recurrent(node.op())) {
      const std::string kept = "weights of 1024 numbers or more are kept in 8 bits";
      if (const std::string why = no_integer_form(g_, node); !why.empty())
        return {Reason::kNoKernel, why + "; " + kept};
      const bool slower = !left_.asks_for_integers() && !gains_on_integers(left_.cpu, g_, node);
      return {slower ? Reason::kSlower : Reason::kAccuracy, kept};
    }
    if (kinds_[n] == OperationKind::kFloat) return {Reason::kNoKernel, ""};
    if (kinds_[n] == OperationKind::kSteep)
      return {Reason::kRange, "steep near zero, where int8 has few steps"};
    return {Reason::kSlower, kinds_[n] == OperationKind::kProduct ? "its result is kept in float"
                                                                  : "not between integer operations"};
  }

  const Graph& g_;
  const LeftMap& left_;
  const std::vector<ValueId> function_roots_;
  const Uses uses_;
  std::vector<OperationKind> kinds_;
  std::set<ValueId> float_functions_;  // by root
  std::vector<Role> roles_;
};

}  // namespace

bool float_value(const Graph& g, ValueId id) {
  return id >= 0 && g.value(id).dtype == DType::kFloat32 &&
         (g.value(id).bounded_dims.empty() || g.is_input(id)) && element_count(g.value(id).dims) > 0;
}

bool is_data(const Graph& g, ValueId id) { return float_value(g, id) && !g.is_constant(id); }

ConstantPtr reciprocals(const Graph& g, ValueId id) {
  if (!g.is_constant(id) || g.value(id).dtype != DType::kFloat32) return nullptr;
  std::vector<float> items;
  for (const double x : g.value(id).constant->as_doubles()) {
    items.push_back(static_cast<float>(1 / x));
    if (!std::isfinite(items.back())) return nullptr;
  }
  return Constant::of<float>(DType::kFloat32, g.value(id).dims, items);
}

int64_t weight_axis(const Graph& g, const Node& node) {
  const bool product = node.as<ConvAttrs>() || node.as<DepthwiseConvAttrs>() ||
                       node.as<ConvTransposeAttrs>() || node.as<FullyConnectedAttrs>();
  if (!product || !g.is_constant(node.inputs[1]) ||
      (node.inputs.size() > 2 && node.inputs[2] >= 0 && !g.is_constant(node.inputs[2])))
    return -1;
  const auto rank = static_cast<int64_t>(g.value(node.inputs[1]).dims.size());
  return node.as<DepthwiseConvAttrs>() != nullptr ? rank - 1 : 0;
}

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::kNoKernel:
      return "no kernel";
    case Reason::kRange:
      return "range";
    case Reason::kAccuracy:
      return "accuracy";
    case Reason::kSlower:
      return "slower";
    case Reason::kUser:
      return "user";
    default:
      return "";
  }
}

std::vector<Role> assign_roles(const Graph& graph, const LeftMap& left, std::vector<LayerFate>* fates) {
  Assigning assigning(graph, left);
  std::vector<Role> roles = assigning.run();
  if (fates != nullptr) assigning.tell(fates);
  return roles;
}

}  // namespace sinter::convert

#include "converter/quantize/search/cheaper_in_float.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/cost/node_cost.h"
#include "converter/passes/global/min_cut.h"
#include "converter/quantize/integers/given_integers.h"
#include "converter/quantize/integers/table_functions.h"

namespace sinter::convert {
namespace {

constexpr double kUnits = 100;  // of the cut, in one of node_cost.h's
// Smaller gains are ignored: as a share of the whole run's time, and in nanoseconds.
constexpr double kLeastSlowShare = 0.05, kLeastTime = 3000;
// A product gives float32 as it gives int8, unless both are needed.
constexpr double kFreeOften = 0.3;

using Wide = std::map<ValueId, ValueId>;  // values of 16 bits

// Which values cross a border with a cost, and what nodes cost on either side.
class Borders {
 public:
  Borders(Cpu cpu, const Graph& graph) : cpu_(cpu), g_(graph), uses_(graph), roots_(function_roots(graph)) {}

  const Uses& uses() const { return uses_; }
  // Made and read inside one function: never rounded.
  bool inner(ValueId id) const {
    if (root(id) == id) return false;
    for (const int r : uses_.readers[static_cast<size_t>(id)])
      if (r < 0 || !same_function(id, r)) return false;
    return true;
  }
  bool same_function(ValueId id, int reader) const {
    const Node& node = g_.nodes[static_cast<size_t>(reader)];
    return root(id) != id && is_function(roots_, node) && root(node.outputs[0]) == root(id);
  }
  bool crosses(ValueId id) const {
    if (id < 0 || g_.is_constant(id) || g_.value(id).dtype != DType::kFloat32 || inner(id)) return false;
    const int p = uses_.producer[static_cast<size_t>(id)];
    return p < 0 || !given_integers(g_, g_.nodes[static_cast<size_t>(p)]);
  }
  double rounding(ValueId id) const { return boundary_cost(cpu_, element_count(g_.value(id).dims)); }
  double widening(ValueId id) const {
    const int p = uses_.producer[static_cast<size_t>(id)];
    const bool product = p >= 0 && weight_axis(g_, g_.nodes[static_cast<size_t>(p)]) >= 0;
    return rounding(id) * (product ? kFreeOften : 1);
  }
  double on_floats(const Node& node) const { return node.op() == Op::kView ? 0 : float_cost(cpu_, g_, node); }
  // A function is one table, however many nodes it takes.
  double on_integers(const Node& node, const Wide& wide = {}) const {
    if (node.op() == Op::kView || (is_function(roots_, node) && inner(node.outputs[0]))) return 0;
    if (wide.empty()) return int8_cost(cpu_, g_, node);
    const ValueId y = node.outputs[0];
    if (is_function(roots_, node))
      return wide.contains(root(y)) ? int16_cost(cpu_, g_, node) : int8_cost(cpu_, g_, node);
    if (weight_axis(g_, node) >= 0)
      return wide.contains(node.inputs[0]) ? int16_cost(cpu_, g_, node) : int8_cost(cpu_, g_, node);
    // Operands that meet 16 bits are widened first; results of 8 bits are narrowed afterwards.
    std::vector<ValueId> around = node.inputs;
    around.push_back(y);
    double others = 0;
    bool any = false;
    for (const ValueId id : around) {
      if (id < 0 || g_.is_constant(id)) continue;
      any |= wide.contains(id);
      if (!wide.contains(id)) others += rounding(id);
    }
    return any ? int16_cost(cpu_, g_, node) + others : int8_cost(cpu_, g_, node);
  }

 private:
  ValueId root(ValueId id) const { return roots_[static_cast<size_t>(id)]; }

  const Cpu cpu_;
  const Graph& g_;
  Uses uses_;
  std::vector<ValueId> roots_;
};

int64_t units(double cost) { return static_cast<int64_t>(std::llround(cost * kUnits)); }

}  // namespace

double placement_cost(Cpu cpu, const Graph& g, const std::vector<Role>& roles,
                      const std::vector<ValueId>& wide) {
  const Borders borders(cpu, g);
  const Wide held = with_moved(g, roles, wide);
  double sum = 0;
  for (size_t n = 0; n < g.nodes.size(); ++n)
    sum += roles[n] == Role::kInteger ? borders.on_integers(g.nodes[n], held) : borders.on_floats(g.nodes[n]);
  for (size_t v = 0; v < g.values.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    if (!borders.crosses(id)) continue;
    const int p = borders.uses().producer[v];
    const bool made = p >= 0 && roles[static_cast<size_t>(p)] == Role::kInteger;
    bool integer = false, floats = false;
    for (const int r : borders.uses().readers[v])
      (r >= 0 && roles[static_cast<size_t>(r)] == Role::kInteger ? integer : floats) = true;
    if (!made && integer) sum += borders.rounding(id);
    if (made && floats) sum += borders.widening(id);
  }
  return sum;
}

LeftMap slower_on_integers(const Graph& g, const LeftMap& left) {
  const Borders borders(left.cpu, g);
  const std::vector<Role> roles = assign_roles(g, left);
  const double before = placement_cost(left.cpu, g, roles);
  // Integers take less memory: they stay if the network as a whole takes no longer than in float.
  if (left.memory_decides() &&
      before <= placement_cost(left.cpu, g, std::vector<Role>(roles.size(), Role::kFloat)))
    return {};
  MinCut cut;  // label 1: on integers
  std::vector<int> variable(g.nodes.size(), MinCut::kZero);
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    if (roles[n] != Role::kInteger) continue;
    variable[n] = cut.add_variable();
    cut.add_cost(variable[n], MinCut::kZero, units(borders.on_integers(g.nodes[n])));
    cut.add_cost(MinCut::kOne, variable[n], units(borders.on_floats(g.nodes[n])));
  }
  const auto of = [&](int n) { return n < 0 ? MinCut::kZero : variable[static_cast<size_t>(n)]; };
  for (size_t v = 0; v < g.values.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    const auto& readers = borders.uses().readers[v];
    const int maker = of(borders.uses().producer[v]);
    for (const int r : readers) {
      if (r < 0 || !borders.same_function(id, r)) continue;
      cut.add_cost(maker, of(r), MinCut::kNever);
      cut.add_cost(of(r), maker, MinCut::kNever);
    }
    if (!borders.crosses(id)) continue;
    const int rounded = cut.add_variable();  // 1: some reader takes integers
    const int whole = cut.add_variable();    // 1: no reader takes floats
    for (const int r : readers) {
      cut.add_cost(of(r), rounded, MinCut::kNever);
      cut.add_cost(whole, of(r), MinCut::kNever);
    }
    cut.add_cost(rounded, maker, units(borders.rounding(id)));
    cut.add_cost(maker, whole, units(borders.widening(id)));
  }
  const std::vector<bool> labels = cut.solve(true);
  LeftMap result;
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (variable[n] != MinCut::kZero && !labels[static_cast<size_t>(variable[n])])
      result[g.nodes[n].outputs[0]] = {
          Reason::kSlower,
          fmt::format("integers would take more time here than they save on {}", cpu_name(left.cpu))};
  LeftMap all = left;
  all.insert(result.begin(), result.end());
  const double after = placement_cost(left.cpu, g, assign_roles(g, all));
  return before - after > std::max(kLeastSlowShare * before, kLeastTime) ? result : LeftMap{};
}

}  // namespace sinter::convert

// The planner's checker: knows the rules of schemas/FORMAT.md ("Planned memory"), not how the plan was made.
#include <fmt/format.h>

#include <algorithm>

#include "converter/plan/call_view.h"
#include "converter/plan/planner.h"
#include "runtime/kernels/reference.h"

namespace sinter::convert {
namespace {

struct Interval {
  uint64_t begin, end;
  int first, last;
  ValueId value;  // kAbsent: a workspace
  int step;
};

bool both_live(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }
bool overlap(const Interval& a, const Interval& b) { return a.begin < b.end && b.begin < a.end; }

class ProgramCheck {
 public:
  explicit ProgramCheck(const PlannedProgram& program)
      : program_(program), graph_(*program.graph), data_(graph_.values.size()) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<ValueId>(i);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (program.steps[n].elided)
        for (const ValueId in : graph_.nodes[n].inputs) merge(in, graph_.nodes[n].outputs[0]);
  }

  std::string run() {
    std::vector<Interval> all;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const PlannedValue& v = program_.values[i];
      if (!v.placed) continue;
      if (v.offset + v.bytes + kReadPadding > program_.arena_bytes)
        return fmt::format("value {} leaves the arena", i);
      if (v.bytes > 0)
        all.push_back({v.offset, v.offset + v.bytes, v.first_step, v.last_step, static_cast<ValueId>(i), -1});
    }
    for (size_t n = 0; n < program_.steps.size(); ++n) {
      const PlannedStep& s = program_.steps[n];
      if (s.workspace_offset + s.workspace_bytes + kReadPadding > program_.arena_bytes)
        return fmt::format("the workspace of step {} leaves the arena", n);
      const int step = static_cast<int>(n);
      if (s.workspace_bytes > 0)
        all.push_back(
            {s.workspace_offset, s.workspace_offset + s.workspace_bytes, step, step, kAbsent, step});
    }
    std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = i + 1; j < all.size() && all[j].begin < all[i].end; ++j) {
        if (!both_live(all[i], all[j]) || !overlap(all[i], all[j]) || explained(all[i], all[j])) continue;
        return fmt::format("values {} and {} share bytes while both are live", all[i].value, all[j].value);
      }
    }
    return {};
  }

 private:
  ValueId find(ValueId v) {
    return data_[static_cast<size_t>(v)] == v
               ? v
               : data_[static_cast<size_t>(v)] = find(data_[static_cast<size_t>(v)]);
  }
  void merge(ValueId a, ValueId b) { data_[static_cast<size_t>(find(a))] = find(b); }

  bool explained(const Interval& a, const Interval& b) {
    if (a.value == kAbsent || b.value == kAbsent) return false;
    if (find(a.value) == find(b.value)) return true;
    return in_place(a, b) || in_place(b, a) || in_order(a, b) || in_order(b, a);
  }
  // `later` is output 0 of a step in order that reads `earlier`, its operand 0, for the last time.
  bool in_order(const Interval& earlier, const Interval& later) const {
    if (later.first < 0 || later.first != earlier.last || later.begin > earlier.begin) return false;
    const Node& node = graph_.nodes[static_cast<size_t>(later.first)];
    if (!program_.steps[static_cast<size_t>(later.first)].in_order || node.inputs[0] != earlier.value ||
        node.outputs[0] != later.value)
      return false;
    const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(node.op()))];
    const CallView view(graph_, node);
    size_t lead = 0;
    return kernel->lead != nullptr && kernel->lead(view.call, &lead).ok() &&
           earlier.begin - later.begin >= lead;
  }
  // `later` is output 0 of an in-place step that reads `earlier` for the last time.
  bool in_place(const Interval& earlier, const Interval& later) const {
    if (later.first < 0 || later.first != earlier.last || later.begin != earlier.begin ||
        later.end != earlier.end)
      return false;
    const Node& node = graph_.nodes[static_cast<size_t>(later.first)];
    return (op_info(node.op())->traits & kInPlace) != 0 && node.outputs[0] == later.value &&
           graph_.value(earlier.value).dims == graph_.value(later.value).dims &&
           std::find(node.inputs.begin(), node.inputs.end(), earlier.value) != node.inputs.end();
  }

  const PlannedProgram& program_;
  const Graph& graph_;
  std::vector<ValueId> data_;  // union-find: values that are the same data
};

}  // namespace

std::string check_plan(const PlannedModel& model) {
  for (const PlannedProgram& program : model.programs)
    if (std::string fault = ProgramCheck(program).run(); !fault.empty()) return fault;
  return {};
}

}  // namespace sinter::convert

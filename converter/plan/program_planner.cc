#include "converter/plan/program_planner.h"

#include <algorithm>

#include "converter/plan/place_memories.h"
#include "converter/plan/region_offsets.h"

namespace sinter::convert {
namespace {

class ProgramPlanner {
 public:
  ProgramPlanner(PlannedProgram& program, Storage storage, const std::vector<ValueId>& held, double effort)
      : graph_(*program.graph), program_(program), storage_(std::move(storage)), effort_(effort) {
    program_.values.resize(graph_.values.size());
    live_ranges(held);
    for (size_t i = 0; i < graph_.values.size(); ++i)
      living_.push_back(blocks().members(static_cast<ValueId>(i)));
  }

  void plan(uint64_t enough) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) program_.steps[n].elided = storage_.elided()[n];
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const int step = static_cast<int>(n);
      if (program_.steps[n].elided || share_in_place(step)) continue;
      if (program_.steps[n].lead != PlannedStep::kNever && live_in(step) > enough) overlap_operand(step);
    }
    place();
  }

 private:
  PlannedValue& at(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  const Blocks& blocks() const { return storage_.blocks(); }
  int end() const { return static_cast<int>(graph_.nodes.size()); }
  uint64_t bytes(ValueId id) const { return storage_.bytes(id); }

  void live_ranges(const std::vector<ValueId>& held) {
    for (size_t i = 0; i < program_.own_inputs; ++i)
      at(graph_.inputs[i]).first_step = at(graph_.inputs[i]).last_step = -1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const int step = static_cast<int>(n);
      for (const ValueId id : graph_.nodes[n].inputs)
        if (id >= 0) at(id).last_step = std::max(at(id).last_step, step);
      for (const ValueId id : graph_.nodes[n].outputs)
        if (id >= 0) at(id).first_step = at(id).last_step = step;
    }
    for (const auto* list : {&graph_.outputs, &held})
      for (const ValueId id : *list) at(id).last_step = end();
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      at(id).placed = storage_.placed(id);
      if (at(id).placed) at(id).bytes = bytes(id), at(id).strides = storage_.strides(id);
    }
  }

  // Sum of the values that are live in host memory in step n, each counted separately.
  uint64_t live_in(int n) {
    const auto step = static_cast<size_t>(n);
    uint64_t sum = memory_of(graph_, graph_.nodes[step]) == 0 ? program_.steps[step].workspace_bytes : 0;
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const PlannedValue& v = program_.values[i];
      if (v.placed && graph_.values[i].memory == 0 && v.first_step <= n && n <= v.last_step &&
          (v.first_step < 0 || !program_.steps[static_cast<size_t>(v.first_step)].elided))
        sum += v.bytes;
    }
    return sum;
  }

  // Whether only `in` lives from step n on in bytes [begin, end) of its block. n never falls.
  bool free_but_for(ValueId in, int n, uint64_t begin, uint64_t end) {
    std::vector<ValueId>& living = living_[static_cast<size_t>(blocks().root(in))];
    std::erase_if(living, [&](ValueId m) { return at(m).last_step < n; });
    return std::all_of(living.begin(), living.end(), [&](ValueId m) {
      return m == in || blocks().delta(m) >= end || blocks().delta(m) + bytes(m) <= begin;
    });
  }
  void join(ValueId v, ValueId onto, uint64_t distance) {
    std::vector<ValueId>&from = living_[static_cast<size_t>(blocks().root(v))],
    &to = living_[static_cast<size_t>(blocks().root(onto))];
    to.insert(to.end(), from.begin(), from.end());
    from.clear();
    storage_.join(v, onto, distance);
  }
  // Output 0 has no place yet, and operand `in` dies here.
  bool may_overwrite(int n, ValueId in) {
    const ValueId out = graph_.nodes[static_cast<size_t>(n)].outputs[0];
    return at(in).placed && at(in).last_step == n && bytes(in) > 0 && blocks().root(out) == out &&
           storage_.reach(out) <= bytes(out) && storage_.may_join(in, out) &&
           !storage_.caller_writes(blocks().root(in));
  }

  // Puts output 0 on an operand of the same shape.
  bool share_in_place(int n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    for (const ValueId in : node.inputs) {
      if (!storage_.fits_in_place(node, in) || !may_overwrite(n, in) ||
          !free_but_for(in, n, blocks().delta(in), blocks().delta(in) + bytes(in)))
        continue;
      join(node.outputs[0], in, 0);
      return true;
    }
    return false;
  }

  // Puts output 0 over operand 0, from before its start on.
  void overlap_operand(int n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    PlannedStep& step = program_.steps[static_cast<size_t>(n)];
    if (step.lead == PlannedStep::kNever ||
        std::count(node.inputs.begin(), node.inputs.end(), node.inputs[0]) > 1)
      return;
    const ValueId in = node.inputs[0], out = node.outputs[0], root = blocks().root(in);
    if (!storage_.strides(in).empty() || !storage_.strides(out).empty()) return;
    // Blocks begin at aligned addresses; so does the result in them.
    const uint64_t from = blocks().delta(in) % kBufferAlignment;
    const uint64_t lead =
        align_up(step.lead + (kBufferAlignment - from), kBufferAlignment) - (kBufferAlignment - from);
    if (lead >= bytes(out) || !may_overwrite(n, in)) return;
    const uint64_t place = blocks().delta(in);
    const uint64_t begin = place - std::min(place, lead),
                   end = place + bytes(out) - std::min(place + bytes(out), lead);
    if (!free_but_for(in, n, begin, end)) return;
    if (place >= lead)
      join(out, root, begin);
    else
      join(root, out, lead - place);
    step.in_order = true;
    step.max_threads = 1;
  }

  // Distances within each block, then addresses.
  void place() {
    for (PlannedStep& step : program_.steps)
      if (step.elided) step.workspace_bytes = 0;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (!at(id).placed) continue;
      at(id).offset = blocks().delta(id);
      at(id).alias_of = blocks().alias_of(id);
    }
    OffsetOptions options{.alignment = kBufferAlignment};
    options.max_nodes = static_cast<uint64_t>(effort_ * static_cast<double>(options.max_nodes));
    assign_region_offsets(program_, options);
  }

  const Graph& graph_;
  PlannedProgram& program_;
  Storage storage_;
  std::vector<std::vector<ValueId>> living_;  // by root: members of the block that may still live
  double effort_;
};

}  // namespace

void plan_memory(PlannedProgram& program, Storage storage, const std::vector<ValueId>& held, double effort,
                 uint64_t enough) {
  ProgramPlanner(program, std::move(storage), held, effort).plan(enough);
}

}  // namespace sinter::convert

#include "converter/plan/program_planner.h"

#include <algorithm>

#include "converter/ir/call_view.h"
#include "converter/plan/place_memories.h"
#include "converter/plan/region_offsets.h"
#include "runtime/kernels/reference.h"

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

  void plan(uint64_t enough, bool states_first) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) program_.steps[n].elided = storage_.elided()[n];
    if (states_first) update_in_place();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const int step = static_cast<int>(n);
      if (program_.steps[n].elided || share_in_place(step)) continue;
      if (program_.steps[n].lead != PlannedStep::kNever && live_in(step) > enough) overlap_operand(step);
    }
    update_in_place();
    place();
  }

 private:
  PlannedValue& at(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  const Blocks& blocks() const { return storage_.blocks(); }
  int dies(ValueId id) const { return dies_[static_cast<size_t>(id)]; }
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
    // The bytes of a state are its own all the time; its old content is needed up to its last reader.
    std::vector<int> read;
    for (const GraphState& s : graph_.states) read.push_back(at(graph_.inputs[s.input]).last_step);
    for (const auto* list : {&graph_.outputs, &held})
      for (const ValueId id : *list) at(id).last_step = end();
    for (const PlannedValue& v : program_.values) dies_.push_back(v.last_step);
    for (size_t i = 0; i < graph_.states.size(); ++i) {
      const ValueId id = graph_.inputs[graph_.states[i].input];
      at(id).last_step = end();
      dies_[static_cast<size_t>(id)] = read[i];
    }
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
    std::erase_if(living, [&](ValueId m) { return dies(m) < n; });
    return std::all_of(living.begin(), living.end(), [&](ValueId m) {
      return m == in || blocks().delta(m) >= end || blocks().delta(m) + bytes(m) <= begin;
    });
  }
  void join(ValueId v, ValueId onto, uint64_t distance) {
    const ValueId a = blocks().root(v), b = blocks().root(onto);
    storage_.join(v, onto, distance);
    const ValueId root = blocks().root(v);
    std::vector<ValueId>&from = living_[static_cast<size_t>(root == b ? a : b)],
    &to = living_[static_cast<size_t>(root)];
    to.insert(to.end(), from.begin(), from.end());
    from.clear();
  }
  // Result `out` of step n has no place yet, and operand `in` dies here.
  bool may_overwrite(int n, ValueId in, ValueId out) {
    const ValueId root = blocks().root(in);
    return at(in).placed && dies(in) == n && bytes(in) > 0 && blocks().root(out) == out &&
           storage_.reach(out) <= bytes(out) && storage_.may_join(in, out) &&
           (!storage_.caller_writes(root) || storage_.keeps_state(root));
  }

  // Puts a result on an operand of the same shape.
  bool share_in_place(int n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    for (const ValueId in : node.inputs) {
      const ValueId out = storage_.fits_in_place(node, in);
      if (out < 0 || !may_overwrite(n, in, out) || !storage_.fits_bindable(out, in, 0) ||
          !free_but_for(in, n, blocks().delta(in), blocks().delta(in) + bytes(in)))
        continue;
      join(out, in, 0);
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
    if (!storage_.strides(in).empty() || !storage_.strides(out).empty() || storage_.keeps_state(root) ||
        storage_.bindable(root) || storage_.bindable(out))
      return;
    // Blocks begin at aligned addresses; so does the result in them.
    const uint64_t from = blocks().delta(in) % kBufferAlignment;
    const uint64_t lead =
        align_up(step.lead + (kBufferAlignment - from), kBufferAlignment) - (kBufferAlignment - from);
    if (lead >= bytes(out) || !may_overwrite(n, in, out)) return;
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

  bool lives_with(ValueId a, ValueId b) { return at(a).first_step <= dies(b) && at(b).first_step <= dies(a); }
  bool overlaps(ValueId a, uint64_t a_begin, ValueId b, uint64_t b_begin) const {
    return a_begin < b_begin + bytes(b) && b_begin < a_begin + bytes(a);
  }
  // Whether the step that makes `result` may write it over `old`, which it reads for the last time.
  bool replaces(ValueId result, ValueId old, uint64_t behind) {
    const int n = at(result).first_step;
    if (n < 0 || n == end() || dies(old) != n || program_.steps[static_cast<size_t>(n)].elided) return false;
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    if (behind == 0 && storage_.fits_in_place(node, old) == result) return true;
    return node.outputs[0] == result && shifts(n, old);
  }
  // A Concat whose operand 0 is a later part of the result's own bytes: it moves that to the front.
  bool shifts(int n, ValueId old) const {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    if (node.op() != Op::kConcat || memory_of(graph_, node) != 0 || node.inputs[0] != old ||
        std::count(node.inputs.begin(), node.inputs.end(), old) > 1 || !storage_.strides(old).empty())
      return false;
    const CallView view(graph_, node);
    size_t lead = 0;
    return reference_kernels()[static_cast<size_t>(op_index(Op::kConcat))]->lead(view.call, &lead).ok() &&
           lead == 0;
  }

  // Puts what states become onto their own bytes, if all that these held is dead when it is written.
  void update_in_place() {
    for (const GraphState& state : graph_.states) {
      const ValueId kept = graph_.inputs[state.input], update = graph_.outputs[state.output];
      const ValueId block = blocks().root(update);
      if (block == blocks().root(kept) || blocks().root(kept) != kept || !at(update).placed ||
          bytes(kept) == 0 || !storage_.strides(update).empty() || blocks().delta(update) != 0 ||
          storage_.reach(block) > bytes(kept) || storage_.caller_writes(block) || storage_.bindable(block) ||
          !storage_.may_join(kept, update))
        continue;
      std::vector<int> shifted;
      bool free = true;
      for (const ValueId m : blocks().members(block))
        for (const ValueId old : blocks().members(kept)) {
          const uint64_t begin = blocks().delta(m), there = blocks().delta(old);
          if (!lives_with(m, old) || !overlaps(m, begin, old, there)) continue;
          if (there < begin || !replaces(m, old, there - begin)) free = false;
          if (free && storage_.fits_in_place(graph_.nodes[static_cast<size_t>(at(m).first_step)], old) != m)
            shifted.push_back(at(m).first_step);
        }
      if (!free) continue;
      join(block, kept, 0);
      for (const int n : shifted) move_in_order(program_.steps[static_cast<size_t>(n)]);
    }
  }
  static void move_in_order(PlannedStep& step) {
    step.in_order = true;
    step.max_threads = 1;
    step.candidates = {step.candidates.back()};  // the reference kernels
    step.needs = {step.needs.back()};
    step.workspace_bytes = step.needs[0];
    step.wider.clear(), step.later.clear();
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
    for (const GraphState& s : graph_.states)
      if (!program_.in_place(s)) program_.copied_state_bytes += bytes(graph_.inputs[s.input]);
  }

  const Graph& graph_;
  PlannedProgram& program_;
  Storage storage_;
  std::vector<std::vector<ValueId>> living_;  // by root: members of the block that may still live
  std::vector<int> dies_;                     // by value: the last step that needs its content
  double effort_;
};

}  // namespace

void plan_memory(PlannedProgram& program, Storage storage, const std::vector<ValueId>& held, double effort,
                 uint64_t enough, bool states_first) {
  ProgramPlanner(program, std::move(storage), held, effort).plan(enough, states_first);
}

}  // namespace sinter::convert

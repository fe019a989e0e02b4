#include "converter/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/plan/call_view.h"
#include "converter/plan/cost.h"
#include "converter/plan/elide.h"
#include "converter/plan/limit_operands.h"
#include "converter/plan/offsets.h"
#include "converter/plan/step_order.h"
#include "converter/plan/store_weights.h"
#include "runtime/kernels/reference.h"

namespace sinter::convert {
namespace {

class ProgramPlanner {
 public:
  // `held`: values that live until the end besides the graph's outputs.
  ProgramPlanner(const Graph& graph, Storage storage, const std::vector<ValueId>& held, bool thorough,
                 PlannedProgram& program)
      : graph_(graph), program_(program), storage_(std::move(storage)), thorough_(thorough) {
    program_.values.resize(graph.values.size());
    live_ranges(held);
  }

  void plan() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) program_.steps[n].elided = storage_.elided()[n];
    for (size_t n = 0; n < graph_.nodes.size(); ++n) share_in_place(static_cast<int>(n));
    place();
  }

 private:
  PlannedValue& at(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  const Blocks& blocks() const { return storage_.blocks(); }
  int end() const { return static_cast<int>(graph_.nodes.size()); }
  uint64_t bytes(ValueId id) const { return storage_.bytes(id); }

  void live_ranges(const std::vector<ValueId>& held) {
    for (size_t i = 0; i < program_.own_inputs; ++i) at(graph_.inputs[i]).first_step = -1;
    for (size_t i = 0; i < program_.own_inputs; ++i) at(graph_.inputs[i]).last_step = -1;
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
      if (at(id).placed) at(id).bytes = bytes(id);
    }
  }

  // Output 0 may lie on an operand that dies here, if nothing else that shares the operand's bytes is still
  // needed.
  void share_in_place(int n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    if (program_.steps[static_cast<size_t>(n)].elided) return;
    for (const ValueId in : node.inputs) {
      if (!fits_in_place(graph_, node, in) || !at(in).placed || at(in).last_step != n || bytes(in) == 0)
        continue;
      const ValueId out = node.outputs[0], root = blocks().root(in);
      if (blocks().root(out) != out || storage_.reach(out) > bytes(out)) return;
      if (!storage_.may_join(in, out) || storage_.caller_writes(root)) continue;
      bool free = true;
      for (const ValueId m : blocks().members(root)) {
        const bool overlaps = blocks().delta(m) < blocks().delta(in) + bytes(in) &&
                              blocks().delta(in) < blocks().delta(m) + bytes(m);
        free &= m == in || !overlaps || at(m).last_step < n;
      }
      if (!free) continue;
      storage_.join(out, in, 0);
      return;
    }
  }

  // What a block's values take when: where they do not live all the time, or not everywhere, other blocks may
  // lie in between.
  MemoryBlock block_of(ValueId root) {
    const std::vector<ValueId>& members = blocks().members(root);
    MemoryBlock block{storage_.reach(root), INT32_MAX, INT32_MIN, 0};
    std::vector<int> times;  // where something begins, or has ended
    for (const ValueId m : members) {
      block.first = std::min(block.first, at(m).first_step);
      block.last = std::max(block.last, at(m).last_step);
      times.push_back(at(m).first_step), times.push_back(at(m).last_step + 1);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    for (size_t t = 0; t + 1 < times.size(); ++t) {
      std::vector<std::pair<uint64_t, uint64_t>> spans;
      for (const ValueId m : members)
        if (at(m).first_step <= times[t] && times[t] <= at(m).last_step && bytes(m) > 0)
          spans.emplace_back(blocks().delta(m), blocks().delta(m) + bytes(m));
      std::sort(spans.begin(), spans.end());
      for (size_t i = 0; i < spans.size();) {
        MemoryPiece piece{times[t], times[t + 1] - 1, spans[i].first, spans[i].second};
        for (++i; i < spans.size() && spans[i].first <= piece.end; ++i)
          piece.end = std::max(piece.end, spans[i].second);
        const auto before = std::find_if(block.pieces.begin(), block.pieces.end(), [&](const MemoryPiece& p) {
          return p.last + 1 == piece.first && p.begin == piece.begin && p.end == piece.end;
        });
        if (before != block.pieces.end())
          before->last = piece.last;
        else
          block.pieces.push_back(piece);
      }
    }
    if (block.pieces.size() == 1 && block.pieces[0].end - block.pieces[0].begin == block.bytes &&
        block.pieces[0].first == block.first && block.pieces[0].last == block.last)
      block.pieces.clear();
    return block;
  }

  void place() {
    std::vector<MemoryBlock> memory;
    std::vector<std::pair<bool, size_t>> owner;  // (is a workspace, step or root value)
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (!at(id).placed || blocks().root(id) != id) continue;
      memory.push_back(block_of(id));
      owner.emplace_back(false, i);
    }
    for (size_t n = 0; n < program_.steps.size(); ++n) {
      if (program_.steps[n].workspace_bytes == 0 || program_.steps[n].elided) continue;
      memory.push_back({program_.steps[n].workspace_bytes, static_cast<int>(n), static_cast<int>(n), 0});
      owner.emplace_back(true, n);
    }
    OffsetOptions options{.alignment = kBufferAlignment};
    if (!thorough_) options.max_nodes = 0;
    const OffsetResult offsets = assign_offsets(memory, options);
    program_.arena_bytes = offsets.bytes + kReadPadding;
    program_.lower_bound = offsets.lower_bound + kReadPadding;
    program_.proved = offsets.proved;
    for (size_t b = 0; b < memory.size(); ++b) {
      if (owner[b].first) {
        program_.steps[owner[b].second].workspace_offset = memory[b].offset;
        continue;
      }
      for (const ValueId m : blocks().members(static_cast<ValueId>(owner[b].second))) {
        at(m).offset = memory[b].offset + blocks().delta(m);
        at(m).alias_of = blocks().alias_of(m);
      }
    }
    for (PlannedStep& step : program_.steps)
      if (step.elided) step.workspace_bytes = 0;
  }

  const Graph& graph_;
  PlannedProgram& program_;
  Storage storage_;
  bool thorough_;
};

class ModelPlanner {
 public:
  ModelPlanner(PlannedModel& model, const PlanOptions& options) : model_(model), options_(options) {}

  // The first `own_inputs` have memory in this program; those at [carried_first, +carried_count) are written
  // back when the last step has run.
  uint32_t plan(std::shared_ptr<const Graph> graph, size_t own_inputs, size_t carried_first,
                size_t carried_count) {
    const auto index = static_cast<uint32_t>(model_.programs.size());
    model_.programs.emplace_back();
    std::vector<PlannedStep> steps(graph->nodes.size());
    for (size_t n = 0; n < steps.size(); ++n) choose(*graph, graph->nodes[n], steps[n]);
    const auto first = graph->inputs.begin() + static_cast<ptrdiff_t>(carried_first);
    std::vector<ValueId> held(first, first + static_cast<ptrdiff_t>(carried_count));
    for (const Value& v : graph->values)
      for (const auto& [axis, id] : v.extents) held.push_back(id);
    PlannedProgram program = place(graph, steps, own_inputs, held);
    const uint64_t given = program.arena_bytes;
    if (options_.thorough) {
      std::vector<uint64_t> workspace;
      for (const PlannedStep& step : steps) workspace.push_back(step.workspace_bytes);
      const Storage storage(*graph, own_inputs);
      const StepOrder order = find_step_order(*graph, storage, workspace, held);
      if (!std::is_sorted(order.nodes.begin(), order.nodes.end())) {
        PlannedProgram other = reordered(*graph, order.nodes, steps, own_inputs, held);
        if (other.arena_bytes < program.arena_bytes) program = std::move(other);
      }
      program.order_proved = order.proved;
    }
    program.given_order_bytes = given;
    model_.programs[index] = std::move(program);
    return index;
  }

 private:
  PlannedProgram place(std::shared_ptr<const Graph> graph, std::vector<PlannedStep> steps, size_t own_inputs,
                       const std::vector<ValueId>& held) const {
    PlannedProgram program;
    program.graph = graph;
    program.own_inputs = own_inputs;
    program.steps = std::move(steps);
    ProgramPlanner(*graph, Storage(*graph, own_inputs), held, options_.thorough, program).plan();
    return program;
  }
  PlannedProgram reordered(const Graph& graph, const std::vector<size_t>& order,
                           const std::vector<PlannedStep>& steps, size_t own_inputs,
                           const std::vector<ValueId>& held) const {
    auto copy = std::make_shared<Graph>(graph);
    std::vector<PlannedStep> moved;
    copy->nodes.clear();
    for (const size_t n : order) copy->nodes.push_back(graph.nodes[n]), moved.push_back(steps[n]);
    return place(std::move(copy), std::move(moved), own_inputs, held);
  }

  void choose(const Graph& graph, const Node& node, PlannedStep& step) {
    const auto reference = static_cast<uint8_t>(model_.backends.size() - 1);
    if (!node.bodies.empty()) {
      const auto* loop = node.as<LoopAttrs>();
      const auto carried = loop ? static_cast<size_t>(loop->carried) : 0;
      for (const auto& body : node.bodies) {
        const uint32_t sub = plan(body, loop ? 2 + carried : 0, 2, carried);
        step.subprograms.push_back(sub);
        step.workspace_bytes = std::max(step.workspace_bytes, model_.programs[sub].arena_bytes);
      }
      step.candidates = {reference};
      return;
    }
    const CallView view(graph, node);
    step.max_threads = worthwhile_threads(view.call);
    for (size_t c = 0; c < options_.candidates.size(); ++c) {
      size_t workspace = 0;
      if (!options_.candidates[c].accept(view.call, &workspace).ok()) continue;
      // Memory is planned for the first choice; a later one serves where that suffices.
      if (step.candidates.empty()) step.workspace_bytes = workspace;
      step.candidates.push_back(static_cast<uint8_t>(c));
    }
    step.candidates.push_back(reference);
    // A session falls back to one thread where the plan has no workspace for more.
    const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(node.op()))];
    if (kernel->workspace != nullptr) {
      size_t workspace = 0;
      if (!kernel->workspace(view.call, 1, &workspace).ok())
        throw std::logic_error(fmt::format("{} '{}' has no workspace", op_name(node.op()), node.name));
      step.workspace_bytes = std::max<uint64_t>(step.workspace_bytes, workspace);
    }
  }

  PlannedModel& model_;
  const PlanOptions& options_;
};

}  // namespace

PlannedModel plan_model(std::shared_ptr<Graph> graph, const PlanOptions& options) {
  PlannedModel model;
  model.target = options.target;
  for (const CandidateSource& c : options.candidates) model.backends.push_back(c.name);
  model.backends.emplace_back("reference");
  limit_operands(*graph);
  if (options.stored_weights) store_weights(*graph);
  const size_t inputs = graph->inputs.size();
  ModelPlanner(model, options).plan(std::move(graph), inputs, 0, 0);
  if (std::string fault = check_plan(model); !fault.empty()) throw std::logic_error("memory plan: " + fault);
  return model;
}

}  // namespace sinter::convert

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

  // Results lie partly over operand 0 in steps where otherwise more than `enough` bytes live.
  void plan(uint64_t enough) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) program_.steps[n].elided = storage_.elided()[n];
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const int step = static_cast<int>(n);
      if (!program_.steps[n].elided && !share_in_place(step) && live_in(step) > enough) overlap_operand(step);
    }
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

  // Sum of what lives in step n, each on its own.
  uint64_t live_in(int n) {
    uint64_t sum = program_.steps[static_cast<size_t>(n)].workspace_bytes;
    for (const PlannedValue& v : program_.values)
      if (v.placed && v.first_step <= n && n <= v.last_step &&
          (v.first_step < 0 || !program_.steps[static_cast<size_t>(v.first_step)].elided))
        sum += v.bytes;
    return sum;
  }

  // Whether nothing but `in` lives from step n on in bytes [begin, end) of its block.
  bool free_but_for(ValueId in, int n, uint64_t begin, uint64_t end) const {
    const auto& members = blocks().members(blocks().root(in));
    return std::all_of(members.begin(), members.end(), [&](ValueId m) {
      return m == in || blocks().delta(m) >= end || blocks().delta(m) + bytes(m) <= begin ||
             program_.values[static_cast<size_t>(m)].last_step < n;
    });
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
      if (!fits_in_place(graph_, node, in) || !may_overwrite(n, in) ||
          !free_but_for(in, n, blocks().delta(in), blocks().delta(in) + bytes(in)))
        continue;
      storage_.join(node.outputs[0], in, 0);
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
      storage_.join(out, root, begin);
    else
      storage_.join(root, out, lead - place);
    step.in_order = true;
    step.max_threads = 1;
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
      const Storage storage(*graph, own_inputs);
      std::vector<StepMemory> memory;
      for (size_t n = 0; n < steps.size(); ++n) {
        memory.push_back({steps[n].workspace_bytes, 0});
        if (steps[n].lead == PlannedStep::kNever) continue;
        const uint64_t result = storage.bytes(graph->nodes[n].outputs[0]);
        memory.back().overlap = result - std::min(result, align_up(steps[n].lead, kBufferAlignment));
      }
      const StepOrder order = find_step_order(*graph, storage, memory, held);
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
  PlannedProgram place(const std::shared_ptr<const Graph>& graph, const std::vector<PlannedStep>& steps,
                       size_t own_inputs, const std::vector<ValueId>& held) const {
    const auto attempt = [&](uint64_t enough) {
      PlannedProgram program;
      program.graph = graph;
      program.own_inputs = own_inputs;
      program.steps = steps;
      ProgramPlanner(*graph, Storage(*graph, own_inputs), held, options_.thorough, program).plan(enough);
      return program;
    };
    PlannedProgram best = attempt(UINT64_MAX);
    if (std::none_of(steps.begin(), steps.end(),
                     [](const PlannedStep& step) { return step.lead != PlannedStep::kNever; }))
      return best;
    // What overlaps is tied together, and a long chain of such values wanders through memory. So only where
    // it is needed: from wherever it helps at all to next to nowhere.
    constexpr uint64_t kTrials = 8;
    const uint64_t most = best.arena_bytes, least = attempt(0).lower_bound;
    for (uint64_t i = 0; i < kTrials; ++i) {
      PlannedProgram other = attempt(i == 0 ? 0 : least + (most - std::min(most, least)) * (i - 1) / kTrials);
      if (other.arena_bytes < best.arena_bytes) best = std::move(other);
    }
    return best;
  }
  PlannedProgram reordered(const Graph& graph, const std::vector<size_t>& order,
                           const std::vector<PlannedStep>& steps, size_t own_inputs,
                           const std::vector<ValueId>& held) const {
    auto copy = std::make_shared<Graph>(graph);
    std::vector<PlannedStep> moved;
    copy->nodes.clear();
    for (const size_t n : order) copy->nodes.push_back(graph.nodes[n]), moved.push_back(steps[n]);
    return place(copy, moved, own_inputs, held);
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
    const int threads = step.max_threads == 1 ? 1 : kPlannedThreads;
    for (size_t c = 0; c < options_.candidates.size(); ++c) {
      size_t workspace = 0;
      if (!options_.candidates[c].accept(view.call, threads, &workspace).ok()) continue;
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
    size_t lead = 0;
    if (options_.overlap && step.candidates.size() == 1 && kernel->lead != nullptr &&
        kernel->lead(view.call, &lead).ok())
      step.lead = lead;
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

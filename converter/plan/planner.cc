#include "converter/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/plan/blocks.h"
#include "converter/plan/call_view.h"
#include "converter/plan/cost.h"
#include "converter/plan/limit_operands.h"
#include "converter/plan/offsets.h"
#include "converter/plan/store_weights.h"
#include "runtime/kernels/reference.h"

namespace sinter::convert {
namespace {

class ProgramPlanner {
 public:
  ProgramPlanner(const Graph& graph, size_t own_inputs, size_t carried_first, size_t carried_count,
                 PlannedProgram& program)
      : graph_(graph), program_(program), blocks_(graph.values.size()) {
    program_.own_inputs = own_inputs;
    program_.steps.resize(graph.nodes.size());
    program_.values.resize(graph.values.size());
    live_ranges(carried_first, carried_count);
  }

  void plan() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) elide(n);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) share_in_place(static_cast<int>(n));
    place();
  }

 private:
  PlannedValue& at(ValueId id) { return program_.values[static_cast<size_t>(id)]; }
  int end() const { return static_cast<int>(graph_.nodes.size()); }
  uint64_t bytes(ValueId id) const { return dense_bytes(graph_.value(id).dtype, graph_.value(id).dims); }

  void live_ranges(size_t carried_first, size_t carried_count) {
    for (size_t i = 0; i < program_.own_inputs; ++i) {
      PlannedValue& v = at(graph_.inputs[i]);
      v.placed = true, v.first_step = v.last_step = -1;
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const int step = static_cast<int>(n);
      for (const ValueId id : graph_.nodes[n].inputs)
        if (id >= 0) at(id).last_step = std::max(at(id).last_step, step);
      for (const ValueId id : graph_.nodes[n].outputs)
        if (id >= 0) at(id).placed = true, at(id).first_step = at(id).last_step = step;
    }
    for (const ValueId id : graph_.outputs) at(id).last_step = end();
    for (const Value& v : graph_.values)
      for (const auto& [axis, id] : v.extents) at(id).last_step = end();
    for (size_t i = 0; i < carried_count; ++i) at(graph_.inputs[carried_first + i]).last_step = end();
    for (size_t i = 0; i < graph_.values.size(); ++i)
      if (program_.values[i].placed) program_.values[i].bytes = bytes(static_cast<ValueId>(i));
  }

  bool caller_writes(ValueId root) const {
    const auto own = graph_.inputs.begin() + static_cast<ptrdiff_t>(program_.own_inputs);
    for (const ValueId m : blocks_.members(root))
      if (std::find(graph_.inputs.begin(), own, m) != own) return true;
    return false;
  }
  bool caller_reads(ValueId root) const {
    for (const ValueId m : blocks_.members(root))
      if (graph_.is_output(m)) return true;
    return false;
  }
  // A public input and a public output never share memory; nor do two public outputs.
  bool may_join(ValueId a, ValueId b) const {
    const ValueId ra = blocks_.root(a), rb = blocks_.root(b);
    if (ra == rb) return false;
    const bool in = caller_writes(ra) || caller_writes(rb), out_a = caller_reads(ra),
               out_b = caller_reads(rb);
    return !(in && (out_a || out_b)) && !(out_a && out_b);
  }

  // View and Copy are their operand; a Slice or Concat whose parts are contiguous lies inside the other.
  void elide(size_t n) {
    const Node& node = graph_.nodes[n];
    if (node.op() == Op::kConcat) return elide_concat(node, program_.steps[n]);
    const auto* slice = node.as<SliceAttrs>();
    if (node.op() != Op::kView && node.op() != Op::kCopy && slice == nullptr) return;
    const ValueId in = node.inputs[0], out = node.outputs[0];
    uint64_t distance = 0;
    if (!at(in).placed || !may_join(in, out)) return;
    if (slice != nullptr && !contiguous(*slice, graph_.value(in), &distance)) return;
    blocks_.join(out, in, distance);
    program_.steps[n].elided = true;
  }

  static bool contiguous(const SliceAttrs& slice, const Value& in, uint64_t* distance) {
    uint64_t stride = byte_width(in.dtype);
    bool whole = true;  // all axes behind this one are taken whole
    *distance = 0;
    for (size_t axis = in.dims.size(); axis-- > 0;) {
      const int i = static_cast<int>(axis);
      if (slice.sizes[i] == 0) return false;
      if (slice.sizes[i] > 1 && (slice.steps[i] != 1 || !whole)) return false;
      if (slice.sizes[i] != in.dims[axis]) whole = false;
      *distance += static_cast<uint64_t>(slice.starts[i]) * stride;
      stride *= static_cast<uint64_t>(in.dims[axis]);
    }
    return true;
  }

  void elide_concat(const Node& node, PlannedStep& step) {
    const auto axis = static_cast<size_t>(node.as<ConcatAttrs>()->axis);
    const ValueId out = node.outputs[0];
    const Dims& dims = graph_.value(out).dims;
    for (size_t i = 0; i < axis; ++i)
      if (dims[i] != 1) return;
    std::vector<ValueId> roots;
    for (const ValueId in : node.inputs) {
      if (!at(in).placed || bytes(in) == 0) return;
      const ValueId root = blocks_.root(in);
      // The part must be all of its block, or bytes outside the output would have no place.
      if (blocks_.delta(in) != 0 || reach(root) != bytes(in) || caller_writes(root) || caller_reads(root) ||
          std::find(roots.begin(), roots.end(), root) != roots.end())
        return;
      roots.push_back(root);
    }
    uint64_t distance = 0;
    for (const ValueId in : node.inputs) {
      blocks_.join(in, out, distance);
      distance += bytes(in);
    }
    step.elided = true;
  }

  // Bytes from a block's start to its end.
  uint64_t reach(ValueId root) const {
    uint64_t far = 0;
    for (const ValueId m : blocks_.members(root)) far = std::max(far, blocks_.delta(m) + bytes(m));
    return far;
  }

  // Output 0 may lie on an operand that dies here, if nothing else that shares the operand's bytes is still
  // needed.
  void share_in_place(int n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    const ValueId out = node.outputs.empty() ? kAbsent : node.outputs[0];
    if (program_.steps[static_cast<size_t>(n)].elided || (op_info(node.op())->traits & kInPlace) == 0 ||
        out < 0)
      return;
    if (blocks_.root(out) != out || reach(out) > bytes(out)) return;
    for (const ValueId in : node.inputs) {
      if (in < 0 || !at(in).placed || at(in).last_step != n || bytes(in) == 0) continue;
      const Value &operand = graph_.value(in), &result = graph_.value(out);
      if (operand.dims != result.dims || byte_width(operand.dtype) != byte_width(result.dtype)) continue;
      const ValueId root = blocks_.root(in);
      if (!may_join(in, out) || caller_writes(root)) continue;
      bool free = true;
      for (const ValueId m : blocks_.members(root)) {
        const bool overlaps = blocks_.delta(m) < blocks_.delta(in) + bytes(in) &&
                              blocks_.delta(in) < blocks_.delta(m) + bytes(m);
        free &= m == in || !overlaps || at(m).last_step < n;
      }
      if (!free) continue;
      blocks_.join(out, in, 0);
      return;
    }
  }

  void place() {
    std::vector<MemoryBlock> memory;
    std::vector<std::pair<bool, size_t>> owner;  // (is a workspace, step or root value)
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (!at(id).placed || blocks_.root(id) != id) continue;
      MemoryBlock block{reach(id), INT32_MAX, INT32_MIN, 0};
      for (const ValueId m : blocks_.members(id)) {
        block.first = std::min(block.first, at(m).first_step);
        block.last = std::max(block.last, at(m).last_step);
      }
      memory.push_back(block);
      owner.emplace_back(false, i);
    }
    for (size_t n = 0; n < program_.steps.size(); ++n) {
      if (program_.steps[n].workspace_bytes == 0 || program_.steps[n].elided) continue;
      memory.push_back({program_.steps[n].workspace_bytes, static_cast<int>(n), static_cast<int>(n), 0});
      owner.emplace_back(true, n);
    }
    const OffsetResult offsets = assign_offsets(memory, {.alignment = kBufferAlignment});
    program_.arena_bytes = offsets.bytes + kReadPadding;
    program_.lower_bound = offsets.lower_bound + kReadPadding;
    program_.proved = offsets.proved;
    for (size_t b = 0; b < memory.size(); ++b) {
      if (owner[b].first) {
        program_.steps[owner[b].second].workspace_offset = memory[b].offset;
        continue;
      }
      for (const ValueId m : blocks_.members(static_cast<ValueId>(owner[b].second))) {
        at(m).offset = memory[b].offset + blocks_.delta(m);
        at(m).alias_of = blocks_.alias_of(m);
      }
    }
    for (PlannedStep& step : program_.steps)
      if (step.elided) step.workspace_bytes = 0;
  }

  const Graph& graph_;
  PlannedProgram& program_;
  Blocks blocks_;
};

class ModelPlanner {
 public:
  ModelPlanner(PlannedModel& model, const PlanOptions& options) : model_(model), options_(options) {}

  uint32_t plan(std::shared_ptr<const Graph> graph, size_t own_inputs, size_t carried_first,
                size_t carried_count) {
    const auto index = static_cast<uint32_t>(model_.programs.size());
    model_.programs.emplace_back();
    PlannedProgram program;
    program.graph = graph;
    ProgramPlanner planner(*graph, own_inputs, carried_first, carried_count, program);
    for (size_t n = 0; n < graph->nodes.size(); ++n) choose(*graph, graph->nodes[n], program.steps[n]);
    planner.plan();
    model_.programs[index] = std::move(program);
    return index;
  }

 private:
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

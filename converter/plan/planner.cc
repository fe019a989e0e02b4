#include "converter/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/cost/kernel_order.h"
#include "converter/cost/threads.h"
#include "converter/ir/call_view.h"
#include "converter/plan/elide.h"
#include "converter/plan/grow_workspaces.h"
#include "converter/plan/limit_operands.h"
#include "converter/plan/offsets_search.h"
#include "converter/plan/part_joins.h"
#include "converter/plan/place_memories.h"
#include "converter/plan/prefer_fused.h"
#include "converter/plan/program_planner.h"
#include "converter/plan/read_states_early.h"
#include "converter/plan/region_offsets.h"
#include "converter/plan/step_order.h"
#include "converter/plan/store_weights.h"
#include "converter/plan/usable_candidates.h"
#include "converter/target/target_names.h"
#include "runtime/backend/validate.h"
#include "runtime/kernels/reference.h"

namespace sinter::convert {
namespace {

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
      for (const auto& [axis, id] : v.bounded_dims) held.push_back(id);
    for (const GraphState& state : graph->states) held.push_back(graph->inputs[state.input]);
    PlannedProgram program = arranged(graph, steps, own_inputs, held);
    // The choices of strides are greedy: another start may lead further, even with larger workspaces.
    bool wider = false;
    for (PlannedStep& step : steps)
      if (!step.wider.empty())
        wider = true, step.workspace_bytes = std::max(step.workspace_bytes, step.wider[0]);
    if (options_.thorough && wider) {
      PlannedProgram other = arranged(graph, steps, own_inputs, held);
      if (other.arena_bytes < program.arena_bytes) program = std::move(other);
    }
    if (seconds_ > 0 && !program.proved) look_on(program);
    widen_workspaces(program, std::min(float_bytes(program), options_.thread_arena));
    rearrange(program);
    grow_workspaces(program);
    keep_usable_candidates(program, options_);
    prefer_fused(program, options_);
    model_.programs[index] = std::move(program);
    return index;
  }

 private:
  // Steps in order, values in place, with and without strides.
  PlannedProgram arranged(const std::shared_ptr<const Graph>& graph, const std::vector<PlannedStep>& steps,
                          size_t own_inputs, const std::vector<ValueId>& held) {
    PlannedProgram program = arrange(graph, steps, own_inputs, held, false);
    if (!options_.strides) return program;
    const Storage storage(*graph, own_inputs, takes(*graph, steps));
    if (!storage.strided().empty()) {
      PlannedProgram other = arrange(graph, steps, own_inputs, held, true);
      if (other.arena_bytes <= program.arena_bytes) program = std::move(other);
    }
    take_apart(*graph, storage.partial(), steps, own_inputs, held, program);
    return program;
  }

  // Joins that are moved although most of them could be written in place, the largest first: taken apart
  // where that saves memory, or costs none and moves much less.
  void take_apart(const Graph& graph, std::vector<PartialJoin> joins, const std::vector<PlannedStep>& steps,
                  size_t own_inputs, const std::vector<ValueId>& held, PlannedProgram& best) {
    constexpr size_t kMostTrials = 16;
    constexpr int64_t kMostCopies = 8;
    const auto whole = [&](const PartialJoin& join) {
      const Value& v = graph.value(graph.nodes[join.node].outputs[0]);
      return dense_bytes(v.dtype, v.dims);
    };
    std::erase_if(joins, [&](const PartialJoin& join) {
      return !can_part(graph, graph.nodes[join.node]) || 2 * join.bytes < whole(join) ||
             std::count(join.fits.begin(), join.fits.end(), false) > kMostCopies;
    });
    std::stable_sort(joins.begin(), joins.end(),
                     [](const PartialJoin& a, const PartialJoin& b) { return a.bytes > b.bytes; });
    if (joins.size() > kMostTrials) joins.resize(kMostTrials);
    std::vector<PartialJoin> taken;
    for (PartialJoin& join : joins) {
      const bool faster = moves_less(graph.nodes[join.node], join.bytes, whole(join));
      taken.push_back(std::move(join));
      const Parted parted = part_joins(graph, taken);
      std::vector<PlannedStep> fresh(parted.graph->nodes.size());
      for (size_t n = 0; n < fresh.size(); ++n) {
        if (parted.origin[n] == Parted::kNew)
          choose(*parted.graph, parted.graph->nodes[n], fresh[n]);
        else
          fresh[n] = steps[parted.origin[n]];
      }
      PlannedProgram other = arrange(parted.graph, fresh, own_inputs, held, true);
      if (all_elided(other, parted.whole) && other.arena_bytes < best.arena_bytes + (faster ? 1 : 0))
        best = std::move(other);
      else
        taken.pop_back();
    }
  }
  // A few more steps take less time than moving what can be in place. A border takes about as long to
  // fill as to copy, but in shorter runs.
  static bool moves_less(const Node& node, uint64_t in_place, uint64_t whole) {
    constexpr uint64_t kMuch = 4096;
    return in_place >= kMuch && (node.op() != Op::kPad || 4 * in_place >= 3 * whole);
  }
  // The steps that these are the results of.
  static bool all_elided(const PlannedProgram& program, const std::vector<ValueId>& results) {
    size_t elided = 0;
    for (size_t n = 0; n < program.steps.size(); ++n)
      if (program.steps[n].elided &&
          std::find(results.begin(), results.end(), program.graph->nodes[n].outputs[0]) != results.end())
        ++elided;
    return elided == results.size();
  }

  // Wider workspaces were put where there was room; all blocks together may need less.
  void rearrange(PlannedProgram& program) const {
    if (program.proved || !options_.thorough) return;
    OffsetOptions offsets{.alignment = kBufferAlignment};
    offsets.max_nodes = static_cast<uint64_t>(options_.effort * static_cast<double>(offsets.max_nodes));
    PlannedProgram other = program;
    assign_region_offsets(other, offsets);
    if (other.arena_bytes < program.arena_bytes) program = std::move(other);
  }

  void look_on(PlannedProgram& program) {
    PlannedProgram other = program;
    const double start = steady_seconds();
    assign_region_offsets(other,
                          {.alignment = kBufferAlignment, .max_nodes = UINT64_MAX, .max_seconds = seconds_});
    seconds_ -= steady_seconds() - start;
    if (other.arena_bytes < program.arena_bytes || other.lower_bound > program.lower_bound)
      program = std::move(other);
  }

  // The order of steps, then places.
  PlannedProgram arrange(const std::shared_ptr<const Graph>& graph, const std::vector<PlannedStep>& steps,
                         size_t own_inputs, const std::vector<ValueId>& held, bool strides) const {
    std::vector<bool> moved;
    PlannedProgram program = place(graph, steps, own_inputs, held, strides, &moved);
    const uint64_t given = program.arena_bytes;
    if (options_.thorough) {
      const Storage storage(*graph, own_inputs, strides ? takes(*graph, steps) : Storage::Takes(), moved);
      std::vector<StepMemory> memory;
      for (size_t n = 0; n < steps.size(); ++n) {
        memory.push_back({steps[n].workspace_bytes, 0});
        if (steps[n].lead == PlannedStep::kNever) continue;
        const uint64_t result = storage.bytes(graph->nodes[n].outputs[0]);
        memory.back().overlap = result - std::min(result, align_up(steps[n].lead, kBufferAlignment));
      }
      const StepOrder order = find_step_order(*graph, storage, memory, held, options_.effort);
      if (!std::is_sorted(order.nodes.begin(), order.nodes.end())) {
        PlannedProgram other = reordered(*graph, order.nodes, steps, own_inputs, held, strides);
        if (other.arena_bytes < program.arena_bytes) program = std::move(other);
      }
      program.order_proved = order.proved;
    }
    check_taken(program);
    program.given_order_bytes = given;
    return program;
  }

  // A step takes strided operands where its op's row does, and so does the kernel that computes it otherwise;
  // element by element any kernel but the reference one will do. Device memory holds dense values
  // only.
  Storage::Takes takes(const Graph& graph, const std::vector<PlannedStep>& steps) const {
    return [&graph, &steps, this](size_t n, const Storage& storage) {
      const Node& node = graph.nodes[n];
      const PlannedStep& step = steps[n];
      if (memory_of(graph, node) > 0 || is_transfer(graph, node)) return false;
      const CallView view(graph, node, storage);
      const OpInfo& info = *op_info(node.op());
      for (size_t i = 0; i < view.inputs.size(); ++i)
        if (view.inputs[i].present() && !takes_strides(info.in_strides, view.inputs[i], i == 0)) return false;
      for (size_t i = 0; i < view.outputs.size(); ++i)
        if (view.outputs[i].present() && !takes_strides(info.out_strides, view.outputs[i], i == 0))
          return false;
      const bool any = (info.traits & kElementwise) != 0;
      const size_t reference = model_.backends.size() - 1;
      for (const uint8_t c : step.candidates) {
        if (c == reference) return step.candidates.size() == 1;
        size_t workspace = 0;
        if (options_.platforms[c]->accept(options_.target, view.call, 1, &workspace).ok() &&
            workspace <= step.workspace_bytes)
          return true;
        if (!any) return false;
      }
      return false;
    };
  }

  // `moved`: what strides would save nothing for.
  PlannedProgram place(const std::shared_ptr<const Graph>& graph, const std::vector<PlannedStep>& steps,
                       size_t own_inputs, const std::vector<ValueId>& held, bool strides,
                       std::vector<bool>* moved) const {
    moved->assign(steps.size(), false);
    if (!strides) return place_in(graph, steps, Storage(*graph, own_inputs), own_inputs, held, true);
    const auto storage = [&] { return Storage(*graph, own_inputs, takes(*graph, steps), *moved); };
    PlannedProgram best = place_in(graph, steps, storage(), own_inputs, held, false);
    // A value that is part of another keeps all of that alive; so each step only if it costs no memory.
    constexpr size_t kMostTrials = 64;
    std::vector<size_t> tried = storage().strided();
    if (tried.size() > kMostTrials) tried.resize(kMostTrials);
    for (const size_t n : tried) {
      (*moved)[n] = true;
      PlannedProgram other = place_in(graph, steps, storage(), own_inputs, held, false);
      if (other.arena_bytes < best.arena_bytes)
        best = std::move(other);
      else
        (*moved)[n] = false;
    }
    return place_in(graph, steps, storage(), own_inputs, held, true);
  }

  PlannedProgram place_in(const std::shared_ptr<const Graph>& graph, const std::vector<PlannedStep>& steps,
                          const Storage& storage, size_t own_inputs, const std::vector<ValueId>& held,
                          bool overlap) const {
    const auto try_once = [&](uint64_t enough, bool states_first) {
      PlannedProgram program;
      program.graph = graph;
      program.own_inputs = own_inputs;
      program.steps = steps;
      plan_memory(program, storage, held, options_.thorough ? options_.effort : 0, enough, states_first);
      return program;
    };
    const auto attempt = [&](uint64_t enough) {
      PlannedProgram program = try_once(enough, true);
      if (graph->states.empty()) return program;
      PlannedProgram other = try_once(enough, false);
      const auto cost = [](const PlannedProgram& p) {
        return std::pair(p.copied_state_bytes, p.arena_bytes);
      };
      return cost(other) < cost(program) ? other : program;
    };
    PlannedProgram best = attempt(UINT64_MAX);
    if (!overlap || std::none_of(steps.begin(), steps.end(),
                                 [](const PlannedStep& step) { return step.lead != PlannedStep::kNever; }))
      return best;
    // Overlapping values are tied together, and a long chain of such values moves through memory. So only
    // where it is needed: from wherever it helps at all to next to nowhere.
    constexpr uint64_t kTrials = 8;
    PlannedProgram other = attempt(0);
    const uint64_t most = best.regions[0].bytes, least = other.regions[0].lower_bound;
    for (uint64_t i = 0; i < kTrials; ++i) {
      if (i > 0) other = attempt(least + (most - std::min(most, least)) * (i - 1) / kTrials);
      if (other.arena_bytes < best.arena_bytes) best = std::move(other);
    }
    return best;
  }
  PlannedProgram reordered(const Graph& graph, const std::vector<size_t>& order,
                           const std::vector<PlannedStep>& steps, size_t own_inputs,
                           const std::vector<ValueId>& held, bool strides) const {
    auto copy = std::make_shared<Graph>(graph);
    std::vector<PlannedStep> moved;
    copy->nodes.clear();
    for (const size_t n : order) copy->nodes.push_back(graph.nodes[n]), moved.push_back(steps[n]);
    std::vector<bool> kept;
    return place(copy, moved, own_inputs, held, strides, &kept);
  }

  void choose(const Graph& graph, const Node& node, PlannedStep& step) {
    const auto reference = static_cast<uint8_t>(model_.backends.size() - 1);
    if (!node.bodies.empty()) {
      const auto* loop = node.as<LoopAttrs>();
      const auto carried = loop ? static_cast<size_t>(loop->carried) : 0;
      for (const auto& body : node.bodies) {
        const uint32_t sub = plan(body, loop ? 2 + carried : 0, loop ? 2 : 0, carried);
        step.subprograms.push_back(sub);
        for (const PlannedRegion& region : model_.programs[sub].regions) {
          uint64_t& bytes = region.memory == 0 ? step.workspace_bytes : device_workspace(step, region.memory);
          bytes = std::max(bytes, region.bytes);
        }
      }
      step.candidates = {reference};
      return;
    }
    const CallView view(graph, node);
    step.max_threads = worthwhile_threads(options_.target, view.call);
    if (const uint8_t memory = memory_of(graph, node); memory > 0) {
      step.candidates = {static_cast<uint8_t>(memory - 1)};
      size_t workspace = 0;  // none where a step is elided that the backend would not take
      if (!is_transfer(graph, node) && taken(step, view.call, &workspace)) {
        // Also for the reference kernels, on which every plan runs where the device is missing.
        const size_t on_host = reference_workspace(node, view.call);
        step.workspace_bytes = std::max(workspace, on_host);
      }
      return;
    }
    for (const Accepted& accepted : accepted_by(options_, view.call, 1)) {
      const Platform& platform = *options_.platforms[accepted.platform];
      if (platform.own_memory) continue;
      std::vector<uint64_t> more = for_more_threads(platform, view.call);
      if (step.candidates.empty()) {
        step.workspace_bytes = accepted.workspace;
        step.wider = std::move(more);
      } else {
        step.later.insert(step.later.end(), more.begin(), more.end());
        step.later.push_back(accepted.workspace);
      }
      step.candidates.push_back(static_cast<uint8_t>(accepted.platform));
      step.needs.push_back(accepted.workspace);
    }
    step.candidates.push_back(reference);
    step.needs.push_back(0);
    // A session falls back to one thread where the plan has no workspace for more.
    const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(node.op()))];
    step.needs.back() = reference_workspace(node, view.call);
    step.workspace_bytes = std::max<uint64_t>(step.workspace_bytes, step.needs.back());
    size_t lead = 0;
    // A Concat moves its first operand only where that is a state (program_planner.cc).
    if (options_.overlap && step.candidates.size() == 1 && kernel->lead != nullptr &&
        node.op() != Op::kConcat && kernel->lead(view.call, &lead).ok())
      step.lead = lead;
  }

  static uint64_t& device_workspace(PlannedStep& step, uint8_t memory) {
    auto& all = step.device_workspaces;
    auto at = std::find_if(all.begin(), all.end(), [&](const auto& w) { return w.memory >= memory; });
    if (at == all.end() || at->memory != memory) at = all.insert(at, {memory});
    return at->bytes;
  }

  // On one thread.
  static size_t reference_workspace(const Node& node, const OpCall& call) {
    const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(node.op()))];
    size_t workspace = 0;
    if (kernel->workspace != nullptr && !kernel->workspace(call, 1, &workspace).ok())
      throw std::logic_error(fmt::format("{} '{}' has no workspace", op_name(node.op()), node.name));
    return workspace;
  }

  // Those for the most first. A session with more threads than there is workspace for halves their number.
  std::vector<uint64_t> for_more_threads(const Platform& platform, const OpCall& call) const {
    std::vector<uint64_t> wider;
    for (int threads = planned_threads(options_.target, call); threads > 1; threads /= 2) {
      size_t workspace = 0;
      if (platform.accept(options_.target, call, threads, &workspace).ok()) wider.push_back(workspace);
    }
    return wider;
  }
  // By the one backend that may compute it.
  bool taken(const PlannedStep& step, const OpCall& call, size_t* workspace) const {
    return options_.platforms[step.candidates[0]]
        ->accept(options_.target, call, kDeviceThreads, workspace)
        .ok();
  }
  // In memories that the reference kernels do not reach nothing is left to them.
  void check_taken(const PlannedProgram& program) const {
    for (size_t n = 0; n < program.steps.size(); ++n) {
      const Node& node = program.graph->nodes[n];
      if (program.steps[n].elided || memory_of(*program.graph, node) == 0 ||
          is_transfer(*program.graph, node))
        continue;
      const CallView view(*program.graph, node);
      size_t workspace = 0;
      if (!taken(program.steps[n], view.call, &workspace))
        throw std::logic_error(fmt::format("{} '{}' is placed in the memory of a backend that refuses it",
                                           op_name(node.op()), node.name));
    }
  }

  PlannedModel& model_;
  const PlanOptions& options_;
  double seconds_ = options_.seconds;  // left for the search
};

}  // namespace

namespace {

// Some platform computes the product with the narrow operand, in host memory, and none with memory of its own
// takes the wide one.
bool reads_narrow(const PlanOptions& options, const OpCall& narrow, size_t operand) {
  const std::vector<Accepted> accepted = accepted_by(options, narrow, 1);
  if (accepted.empty() || options.platforms[accepted[0].platform]->own_memory) return !accepted.empty();
  std::vector<TensorView> wide(narrow.inputs.begin(), narrow.inputs.end());
  wide[operand].dtype = wide[0].dtype;
  wide[operand].set_shape(narrow.in(operand).shape());
  const OpCall call{narrow.op, narrow.attributes, wide, narrow.outputs};
  size_t workspace = 0;
  return std::none_of(options.platforms.begin(), options.platforms.end(), [&](const Platform* p) {
    return p->own_memory && p->accept(options.target, call, 1, &workspace).ok();
  });
}

}  // namespace

std::vector<Accepted> accepted_by(const PlanOptions& options, const OpCall& call, int threads) {
  const Cpu cpu = cpu_of(options.target);
  std::vector<Accepted> best_first;
  for (size_t p = 0; p < options.platforms.size(); ++p) {
    const Platform& platform = *options.platforms[p];
    size_t workspace = 0;
    if (!platform.accept(options.target, call, threads, &workspace).ok()) continue;
    // Also before one that lists no time, if that stands before a slower one.
    const auto at = std::find_if(best_first.begin(), best_first.end(), [&](const Accepted& other) {
      return is_preferred(platform, *options.platforms[other.platform], cpu, call, options.preference);
    });
    best_first.insert(at, {p, workspace});
  }
  return best_first;
}

PlannedModel plan_model(std::shared_ptr<Graph> graph, const PlanOptions& options) {
  PlannedModel model;
  model.target = target_text(options.target);
  model.architecture = options.target.architecture;
  for (const Platform* p : options.platforms) model.backends.emplace_back(p->name);
  model.backends.emplace_back("reference");
  if (graph->stage == Stage::kPlanned) throw std::logic_error("a graph is planned for the second time");
  advance(*graph, Stage::kPlanned);
  limit_operands(*graph);
  if (options.stored_weights)
    store_weights(
        *graph, [&](const OpCall& narrow, size_t operand) { return reads_narrow(options, narrow, operand); });
  place_memories(*graph, options);
  read_states_early(*graph);
  const size_t inputs = graph->inputs.size();
  ModelPlanner(model, options).plan(std::move(graph), inputs, 0, 0);
  if (std::string fault = check_plan(model); !fault.empty()) throw std::logic_error("memory plan: " + fault);
  return model;
}

}  // namespace sinter::convert

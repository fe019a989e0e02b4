#include "converter/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/ir/call_view.h"
#include "converter/plan/candidates.h"
#include "converter/plan/elide.h"
#include "converter/plan/grow_workspaces.h"
#include "converter/plan/limit_operands.h"
#include "converter/plan/memory_choice.h"
#include "converter/plan/offsets_search.h"
#include "converter/plan/part_joins.h"
#include "converter/plan/place_memories.h"
#include "converter/plan/program_planner.h"
#include "converter/plan/read_states_early.h"
#include "converter/plan/region_offsets.h"
#include "converter/plan/step_order.h"
#include "converter/plan/store_weights.h"
#include "converter/target/target_names.h"
#include "runtime/backend/validate.h"

namespace sinter::convert {
namespace {

// A program whose steps are chosen, in the order of the graph's nodes, and whose values have no place yet.
struct UnplacedProgram {
  std::shared_ptr<const Graph> graph;
  std::vector<PlannedStep> steps;
  size_t own_inputs = 0;      // the first ones, which have memory in this program
  std::vector<ValueId> held;  // that live until the end besides the graph's outputs
};

bool is_on_device(const Graph& graph, const Node& node) {
  return memory_of(graph, node) > 0 && !is_transfer(graph, node);
}

// A few more steps take less time than moving what can be in place. A border takes about as long to fill as
// to copy, but in shorter runs.
bool moves_less(const Node& node, uint64_t in_place, uint64_t whole) {
  constexpr uint64_t kMuch = 4096;
  return in_place >= kMuch && (node.op() != Op::kPad || 4 * in_place >= 3 * whole);
}

// Returns whether all steps that make one of these results are elided.
bool all_elided(const PlannedProgram& program, const std::vector<ValueId>& results) {
  size_t elided = 0;
  for (size_t n = 0; n < program.steps.size(); ++n)
    if (program.steps[n].elided &&
        std::find(results.begin(), results.end(), program.graph->nodes[n].outputs[0]) != results.end())
      ++elided;
  return elided == results.size();
}

// The order of a program's steps, and the memory of its values: the best of what several ways give.
class Arranger {
 public:
  explicit Arranger(const PlanOptions& options) : options_(options) {}

  // Returns the program with its steps in order and its values in place, with strides where that saves
  // memory, and with joins taken apart where most of them can be written in place.
  PlannedProgram run(const UnplacedProgram& program) const {
    PlannedProgram best = in_best_order(program, false);
    if (!options_.strides) return best;
    const Storage storage(*program.graph, program.own_inputs, takes(program));
    if (!storage.strided().empty()) {
      PlannedProgram other = in_best_order(program, true);
      if (other.arena_bytes <= best.arena_bytes) best = std::move(other);
    }
    take_apart(program, storage.partial(), best);
    return best;
  }

 private:
  // Joins that are moved although most of them could be written in place, the largest first: taken apart
  // where that saves memory, or costs none and moves much less.
  void take_apart(const UnplacedProgram& program, std::vector<PartialJoin> joins,
                  PlannedProgram& best) const {
    constexpr size_t kMostTrials = 16;
    constexpr int64_t kMostCopies = 8;
    const Graph& graph = *program.graph;
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
      UnplacedProgram apart{parted.graph, {}, program.own_inputs, program.held};
      for (size_t n = 0; n < parted.origin.size(); ++n)
        apart.steps.push_back(parted.origin[n] == Parted::kNew
                                  ? step_of(*parted.graph, parted.graph->nodes[n], options_)
                                  : program.steps[parted.origin[n]]);
      PlannedProgram other = in_best_order(apart, true);
      if (all_elided(other, parted.whole) && other.arena_bytes < best.arena_bytes + (faster ? 1 : 0))
        best = std::move(other);
      else
        taken.pop_back();
    }
  }

  PlannedProgram in_best_order(const UnplacedProgram& program, bool strides) const {
    const std::vector<PlannedStep>& steps = program.steps;
    std::vector<bool> moved;
    PlannedProgram best = with_strides(program, strides, &moved);
    const uint64_t given = best.arena_bytes;
    if (options_.thorough) {
      const Graph& graph = *program.graph;
      const Storage storage(graph, program.own_inputs, strides ? takes(program) : Storage::Takes(), moved);
      std::vector<StepMemory> memory;
      for (size_t n = 0; n < steps.size(); ++n) {
        memory.push_back({steps[n].workspace_bytes, 0});
        if (steps[n].lead == PlannedStep::kNever) continue;
        const uint64_t result = storage.bytes(graph.nodes[n].outputs[0]);
        memory.back().overlap = result - std::min(result, align_up(steps[n].lead, kBufferAlignment));
      }
      const StepOrder order = find_step_order(graph, storage, memory, program.held, options_.effort);
      if (!std::is_sorted(order.nodes.begin(), order.nodes.end())) {
        auto copy = std::make_shared<Graph>(graph);
        UnplacedProgram reordered{copy, {}, program.own_inputs, program.held};
        copy->nodes.clear();
        for (const size_t n : order.nodes)
          copy->nodes.push_back(graph.nodes[n]), reordered.steps.push_back(steps[n]);
        PlannedProgram other = with_strides(reordered, strides, &moved);
        if (other.arena_bytes < best.arena_bytes) best = std::move(other);
      }
      best.order_proved = order.proved;
    }
    check_taken(best);
    best.given_order_bytes = given;
    return best;
  }

  // A step takes strided operands where its op's row does, and so does the kernel that computes it otherwise;
  // element by element any kernel but the reference one will do. Device memory holds dense values
  // only.
  Storage::Takes takes(const UnplacedProgram& program) const {
    return [&program, this](size_t n, const Storage& storage) {
      const Graph& graph = *program.graph;
      const Node& node = graph.nodes[n];
      const PlannedStep& step = program.steps[n];
      if (memory_of(graph, node) > 0 || is_transfer(graph, node)) return false;
      const CallView view(graph, node, storage);
      const OpInfo& info = *op_info(node.op());
      for (size_t i = 0; i < view.inputs.size(); ++i)
        if (view.inputs[i].present() && !takes_strides(info.in_strides, view.inputs[i], i == 0)) return false;
      for (size_t i = 0; i < view.outputs.size(); ++i)
        if (view.outputs[i].present() && !takes_strides(info.out_strides, view.outputs[i], i == 0))
          return false;
      const bool any = (info.traits & kElementwise) != 0;
      for (const uint8_t c : step.candidates) {
        if (c == options_.platforms.size()) return step.candidates.size() == 1;  // the reference kernels
        size_t workspace = 0;
        if (options_.platforms[c]->accept(options_.target, view.call, 1, &workspace).ok() &&
            workspace <= step.workspace_bytes)
          return true;
        if (!any) return false;
      }
      return false;
    };
  }

  // Values in place in the given order. `moved` is set to the steps for which strides would save nothing.
  PlannedProgram with_strides(const UnplacedProgram& program, bool strides, std::vector<bool>* moved) const {
    moved->assign(program.steps.size(), false);
    if (!strides) return in_place(program, Storage(*program.graph, program.own_inputs), true);
    const auto storage = [&] { return Storage(*program.graph, program.own_inputs, takes(program), *moved); };
    PlannedProgram best = in_place(program, storage(), false);
    // A value that is part of another keeps all of that alive; so each step only if it costs no memory.
    constexpr size_t kMostTrials = 64;
    std::vector<size_t> tried = storage().strided();
    if (tried.size() > kMostTrials) tried.resize(kMostTrials);
    for (const size_t n : tried) {
      (*moved)[n] = true;
      PlannedProgram other = in_place(program, storage(), false);
      if (other.arena_bytes < best.arena_bytes)
        best = std::move(other);
      else
        (*moved)[n] = false;
    }
    return in_place(program, storage(), true);
  }

  // `overlap`: results may be placed partly over operands.
  PlannedProgram in_place(const UnplacedProgram& given, const Storage& storage, bool overlap) const {
    const auto try_once = [&](uint64_t enough, bool states_first) {
      PlannedProgram program;
      program.graph = given.graph;
      program.own_inputs = given.own_inputs;
      program.steps = given.steps;
      plan_memory(program, storage, given.held, options_.thorough ? options_.effort : 0, enough,
                  states_first);
      return program;
    };
    const auto attempt = [&](uint64_t enough) {
      PlannedProgram program = try_once(enough, true);
      if (given.graph->states.empty()) return program;
      PlannedProgram other = try_once(enough, false);
      const auto cost = [](const PlannedProgram& p) {
        return std::pair(p.copied_state_bytes, p.arena_bytes);
      };
      return cost(other) < cost(program) ? other : program;
    };
    PlannedProgram best = attempt(UINT64_MAX);
    if (!overlap || std::ranges::all_of(given.steps, [](const PlannedStep& step) {
          return step.lead == PlannedStep::kNever;
        }))
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

  // In memories that the reference kernels do not reach nothing is left to them.
  void check_taken(const PlannedProgram& program) const {
    const Graph& graph = *program.graph;
    for (size_t n = 0; n < program.steps.size(); ++n)
      if (const Node& node = graph.nodes[n]; !program.steps[n].elided && is_on_device(graph, node) &&
                                             !convert::takes(options_, memory_of(graph, node), graph, node))
        throw std::logic_error(fmt::format("{} '{}' is placed in the memory of a backend that refuses it",
                                           op_name(node.op()), node.name));
  }

  const PlanOptions& options_;
};

// The programs of a model: a graph and its bodies.
class ModelPlanner {
 public:
  ModelPlanner(PlannedModel& model, const PlanOptions& options) : model_(model), options_(options) {}

  // Plans a graph with its bodies. The first `own_inputs` have memory in its program; those at
  // [carried_first, +carried_count) are written back when the last step has run. Returns the program's index.
  uint32_t plan(std::shared_ptr<const Graph> graph, size_t own_inputs, size_t carried_first,
                size_t carried_count) {
    const auto index = static_cast<uint32_t>(model_.programs.size());
    model_.programs.emplace_back();
    const auto first = graph->inputs.begin() + static_cast<ptrdiff_t>(carried_first);
    UnplacedProgram unplaced{graph, {}, own_inputs, {first, first + static_cast<ptrdiff_t>(carried_count)}};
    for (const Node& node : graph->nodes)
      unplaced.steps.push_back(node.bodies.empty() ? step_of(*graph, node, options_) : control_step(node));
    for (const Value& v : graph->values)
      for (const auto& [axis, id] : v.bounded_dims) unplaced.held.push_back(id);
    for (const GraphState& state : graph->states) unplaced.held.push_back(graph->inputs[state.input]);
    PlannedProgram program = Arranger(options_).run(unplaced);
    // The choices of strides are greedy: another start may lead further, even with larger workspaces.
    bool wider = false;
    for (PlannedStep& step : unplaced.steps)
      if (!step.wider.empty())
        wider = true, step.workspace_bytes = std::max(step.workspace_bytes, step.wider[0]);
    if (options_.thorough && wider) {
      PlannedProgram other = Arranger(options_).run(unplaced);
      if (other.arena_bytes < program.arena_bytes) program = std::move(other);
    }
    if (seconds_ > 0 && !program.proved) search_on(program);
    widen_workspaces(program, std::min(float_bytes(program), options_.thread_arena));
    // Wider workspaces were put where there was room; all blocks together may need less.
    if (!program.proved && options_.thorough) {
      OffsetOptions offsets{.alignment = kBufferAlignment};
      offsets.max_nodes = static_cast<uint64_t>(options_.effort * static_cast<double>(offsets.max_nodes));
      PlannedProgram other = program;
      assign_region_offsets(other, offsets);
      if (other.arena_bytes < program.arena_bytes) program = std::move(other);
    }
    grow_workspaces(program);
    keep_usable_candidates(program, options_);
    prefer_fused(program, options_);
    model_.programs[index] = std::move(program);
    return index;
  }

 private:
  // Returns the step of an If or a Loop, whose bodies become programs.
  PlannedStep control_step(const Node& node) {
    PlannedStep step;
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
    step.candidates = {static_cast<uint8_t>(options_.platforms.size())};
    return step;
  }

  static uint64_t& device_workspace(PlannedStep& step, uint8_t memory) {
    auto& all = step.device_workspaces;
    auto at = std::find_if(all.begin(), all.end(), [&](const auto& w) { return w.memory >= memory; });
    if (at == all.end() || at->memory != memory) at = all.insert(at, {memory});
    return at->bytes;
  }

  // Searches for better offsets in the seconds that are left.
  void search_on(PlannedProgram& program) {
    PlannedProgram other = program;
    const double start = steady_seconds();
    assign_region_offsets(other,
                          {.alignment = kBufferAlignment, .max_nodes = UINT64_MAX, .max_seconds = seconds_});
    seconds_ -= steady_seconds() - start;
    if (other.arena_bytes < program.arena_bytes || other.lower_bound > program.lower_bound)
      program = std::move(other);
  }

  PlannedModel& model_;
  const PlanOptions& options_;
  double seconds_ = options_.seconds;  // left for the search
};

// Returns whether some platform computes the product with the narrow operand, in host memory, and none with
// memory of its own takes the wide one.
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

#include "converter/plan/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/cost/node_cost.h"
#include "converter/ir/call_view.h"
#include "converter/ir/op_traits.h"
#include "converter/plan/place_memories.h"
#include "runtime/kernels/reference.h"

namespace sinter::convert {
namespace {

// Writing as much, when a session is created, takes longer than the faster kernel saves in a few runs.
constexpr size_t kMuchKept = 4 << 20;

const Kernel& reference_kernel(const Node& node) {
  return *reference_kernels()[static_cast<size_t>(op_index(node.op()))];
}

// Returns the workspace on one thread.
size_t reference_workspace(const Node& node, const OpCall& call) {
  const Kernel& kernel = reference_kernel(node);
  size_t workspace = 0;
  if (kernel.workspace != nullptr && !kernel.workspace(call, 1, &workspace).ok())
    throw std::logic_error(fmt::format("{} '{}' has no workspace", op_name(node.op()), node.name));
  return workspace;
}

// Returns the workspaces for more threads, those for the most first. A session with more threads than there
// is workspace for halves their number.
std::vector<uint64_t> for_more_threads(const PlanOptions& options, const Platform& platform,
                                       const OpCall& call) {
  std::vector<uint64_t> wider;
  for (int threads = planned_threads(options.target, call); threads > 1; threads /= 2) {
    size_t workspace = 0;
    if (platform.accept(options.target, call, threads, &workspace).ok()) wider.push_back(workspace);
  }
  return wider;
}

bool has_strides(const Node& node, const PlacedStrides& placed) {
  const auto strided = [&](ValueId id) { return id >= 0 && !placed.strides(id).empty(); };
  return std::ranges::any_of(node.inputs, strided) || std::ranges::any_of(node.outputs, strided);
}

bool takes_operands(const PlanOptions& options, uint8_t candidate, const OpCall& call) {
  size_t workspace = 0;
  return candidate >= options.platforms.size() ||  // the reference kernels
         options.platforms[candidate]->accept(options.target, call, 1, &workspace).ok();
}

bool reads(const Node& node, ValueId id) { return std::ranges::find(node.inputs, id) != node.inputs.end(); }

bool put_first(std::vector<uint8_t>& candidates, uint8_t platform) {
  const auto at = std::ranges::find(candidates, platform);
  if (at == candidates.end()) return false;
  std::rotate(candidates.begin(), at, at + 1);
  return true;
}

}  // namespace

size_t kept_bytes(const Platform& platform, const OpCall& call) {
  return platform.kept_bytes == nullptr ? 0 : platform.kept_bytes(call);
}

bool is_preferred(const Platform& a, const Platform& b, Cpu cpu, const OpCall& call, Preference preference) {
  const auto winograd = [&](const Platform& p) {
    return p.computes_winograd != nullptr && p.computes_winograd(call);
  };
  if (call.op == Op::kConv && call.attrs<ConvAttrs>().winograd != 0)
    if (winograd(a) != winograd(b)) return winograd(a);
  const auto reads = [&](const Platform& p) {
    return p.reads_large_weights != nullptr && p.reads_large_weights(call);
  };
  if (reads(a) != reads(b)) return reads(a);
  const size_t kept = kept_bytes(a, call), other_kept = kept_bytes(b, call);
  if (preference == Preference::kMemory && kept != other_kept) return kept < other_kept;
  if ((kept >= kMuchKept) != (other_kept >= kMuchKept)) return other_kept >= kMuchKept;
  if (a.time == nullptr || b.time == nullptr) return false;
  const std::optional<double> time = a.time(cpu, call), other = b.time(cpu, call);
  return time && other && *time < *other;
}

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

PlannedStep step_of(const Graph& graph, const Node& node, const PlanOptions& options) {
  PlannedStep step;
  const CallView view(graph, node);
  step.max_threads = worthwhile_threads(options.target, view.call);
  if (const uint8_t memory = memory_of(graph, node); memory > 0) {
    step.candidates = {static_cast<uint8_t>(memory - 1)};
    size_t workspace = 0;  // none where a step is elided that the backend would not take
    // Also for the reference kernels, on which every plan runs where the device is missing.
    if (!is_transfer(graph, node) && options.platforms[step.candidates[0]]
                                         ->accept(options.target, view.call, kDeviceThreads, &workspace)
                                         .ok())
      step.workspace_bytes = std::max(workspace, reference_workspace(node, view.call));
    return step;
  }
  for (const Accepted& accepted : accepted_by(options, view.call, 1)) {
    const Platform& platform = *options.platforms[accepted.platform];
    if (platform.own_memory) continue;
    std::vector<uint64_t> more = for_more_threads(options, platform, view.call);
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
  step.candidates.push_back(static_cast<uint8_t>(options.platforms.size()));
  // A session falls back to one thread where the plan has no workspace for more.
  step.needs.push_back(reference_workspace(node, view.call));
  step.workspace_bytes = std::max<uint64_t>(step.workspace_bytes, step.needs.back());
  const Kernel& kernel = reference_kernel(node);
  size_t lead = 0;
  // A Concat moves its first operand only where that is a state (program_planner.cc).
  if (options.overlap && step.candidates.size() == 1 && kernel.lead != nullptr && node.op() != Op::kConcat &&
      kernel.lead(view.call, &lead).ok())
    step.lead = lead;
  return step;
}

void keep_usable_candidates(PlannedProgram& program, const PlanOptions& options) {
  const PlacedStrides placed{program.values};
  for (size_t n = 0; n < program.steps.size(); ++n) {
    PlannedStep& step = program.steps[n];
    if (step.needs.empty()) continue;
    const Node& node = program.graph->nodes[n];
    const bool strided = !step.elided && has_strides(node, placed);
    std::vector<uint8_t> kept;
    for (size_t i = 0; i < step.needs.size(); ++i)
      if (step.needs[i] <= step.workspace_bytes &&
          (!strided ||
           takes_operands(options, step.candidates[i], CallView(*program.graph, node, placed).call)))
        kept.push_back(step.candidates[i]);
    step.candidates = std::move(kept);
  }
}

void prefer_fused(PlannedProgram& program, const PlanOptions& options) {
  const Graph& graph = *program.graph;
  const PlacedStrides placed{program.values};
  int before = -1;
  for (size_t n = 0; n < program.steps.size(); ++n) {
    PlannedStep& step = program.steps[n];
    if (step.elided) continue;
    const int first = std::exchange(before, static_cast<int>(n));
    const Node& node = graph.nodes[n];
    if (first < 0 || !is_elementwise(node.op())) continue;
    const Node& other = graph.nodes[static_cast<size_t>(first)];
    PlannedStep& other_step = program.steps[static_cast<size_t>(first)];
    if (!reads(node, other.outputs[0])) continue;
    const CallView call(graph, node, placed), other_call(graph, other, placed);
    for (const uint8_t p : step.candidates) {
      if (p >= options.platforms.size() || options.platforms[p]->fuses == nullptr ||
          !options.platforms[p]->fuses(other_call.call, call.call))
        continue;
      const bool computes = other_step.candidates.front() == p ||
                            (is_elementwise(other.op()) && put_first(other_step.candidates, p));
      if (!computes) continue;
      put_first(step.candidates, p);
      break;
    }
  }
}

}  // namespace sinter::convert

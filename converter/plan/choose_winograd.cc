#include "converter/plan/choose_winograd.h"

#include <algorithm>

#include "converter/cost/node_cost.h"
#include "converter/ir/call_view.h"
#include "converter/ir/narrow_weights.h"
#include "converter/plan/candidates.h"
#include "converter/plan/winograd_error.h"
#include "runtime/backend/winograd.h"

namespace sinter::convert {
namespace {

// The share of the direct convolution's time up to which the algorithm is worth the memory for its filters.
constexpr double kWorthwhile = 0.9;

bool is_candidate(const Graph& graph, const NarrowWeights& narrow, const Node& node,
                  const PlanOptions& options) {
  if (node.op() != Op::kConv || !graph.is_constant(node.inputs[1])) return false;
  // Many filters that are narrow in the file would take up to 14 times as much memory.
  if (options.stored_weights && narrow.of(node)) return false;
  const CallView view(graph, node);
  return view.call.in(0).dtype == DType::kFloat32 && view.call.in(0).rank == 4 &&
         winograd_fits(window_geometry<ConvAttrs>(view.call));
}

// Whether the platform that comes first computes the node so.
bool is_taken(const Graph& graph, const Node& node, const PlanOptions& options) {
  const CallView view(graph, node);
  const std::vector<Accepted> best = accepted_by(options, view.call, 1);
  if (best.empty()) return false;
  const Platform& first = *options.platforms[best[0].platform];
  return first.computes_winograd != nullptr && first.computes_winograd(view.call);
}

int64_t best_tile(const Graph& graph, const Node& node, const PlanOptions& options) {
  const Cpu cpu = cpu_of(options.target);
  const Value& weights = graph.value(node.inputs[1]);
  const Dims& output = graph.value(node.outputs[0]).dims;
  const double direct = float_cost(cpu, graph, node);
  std::vector<std::pair<double, int64_t>> tiles;
  for (const int64_t tile : kWinogradTiles)
    if (const double cost = winograd_cost(cpu, weights.dims, output, tile); cost < kWorthwhile * direct)
      tiles.emplace_back(cost, tile);
  std::sort(tiles.begin(), tiles.end());
  Node permitted = node;
  for (const auto& [cost, tile] : tiles) {
    permitted.as<ConvAttrs>()->winograd = tile;
    if (!is_taken(graph, permitted, options)) continue;
    const LoadedBytes loaded = weights.constant->load();
    const std::span<const float> data(reinterpret_cast<const float*>(loaded.bytes.data()),
                                      loaded.bytes.size() / sizeof(float));
    const WinogradError error = winograd_error(data, weights.dims[0], weights.dims[3], tile);
    if (error.rms <= kMostWinogradError && error.maximum <= kMostWinogradError) return tile;
  }
  return 0;
}

}  // namespace

int choose_winograd(Graph& graph, const PlanOptions& options) {
  if (std::none_of(options.platforms.begin(), options.platforms.end(),
                   [](const Platform* p) { return p->computes_winograd != nullptr; }))
    return 0;
  int chosen = 0;
  const NarrowWeights narrow(graph);
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) chosen += choose_winograd(*body, options);
    if (!is_candidate(graph, narrow, node, options)) continue;
    const int64_t tile = best_tile(graph, node, options);
    node.as<ConvAttrs>()->winograd = tile;
    chosen += tile != 0;
  }
  return chosen;
}

}  // namespace sinter::convert

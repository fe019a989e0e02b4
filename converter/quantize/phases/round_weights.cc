#include <fmt/format.h>

#include "converter/quantize/quantization.h"
#include "converter/quantize/weights/adaptive_rounding.h"

namespace sinter::convert {
namespace {

// Multiplications that adaptive rounding may take unless it was requested: some seconds.
constexpr double kRoundingBudget = 2e10;

// Returns weights that `round` rounds in the plan's graph by a part of the samples: chosen on one half,
// judged on the other, and then chosen on all of them.
std::optional<Proposal> propose_rounding(Quantization& q, std::function<void(Graph&, Part)> round) {
  const auto chosen = [&q, round = std::move(round)](Part part) {
    Graph graph = q.plan.graph;
    round(graph, part);
    q.work.did(Work::kWeightSteps);
    return rounded_weights(q.plan.graph, graph);
  };
  QuantizationPlan tried = q.from_half(q.plan);
  tried.weights = chosen(Part::kEven);
  if (tried.weights.empty()) return std::nullopt;
  return Proposal{fmt::format("{} products", tried.weights.size()), q.measured(tried, Part::kOdd),
                  [&q, chosen, weights = tried.weights] {
                    q.half.weights = weights, q.plan.weights = chosen(Part::kAll);
                    q.estimators.weights = chosen;
                    return true;
                  }};
}

}  // namespace

std::optional<Proposal> propose_clipped_weights(Quantization& q) {
  return propose_rounding(q, [&q](Graph& graph, Part part) {
    choose_weight_steps(graph, part == Part::kEven
                                   ? *q.half_observations()
                                   : q.trials->observe(graph, observable_values(graph), true, part));
  });
}

std::optional<Proposal> propose_adaptive_rounding(Quantization& q) {
  return propose_rounding(q, [&q](Graph& graph, Part part) {
    q.half_seen.reset();  // there is much else to hold now
    round_adaptively(graph, q.trials->samples(part), {.runner = q.options.runner});
  });
}

bool can_round_adaptively(const Quantization& q, size_t) {
  return q.options.adaptive_rounding || adaptive_rounding_cost(q.plan.graph) < kRoundingBudget;
}

}  // namespace sinter::convert

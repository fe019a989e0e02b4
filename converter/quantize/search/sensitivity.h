// How much of the outputs' noise comes from where: every value rounded by itself, every layer's weights
// rounded by themselves, everything else exact. Such noises add up, nearly: their sources are independent.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "converter/quantize/integers/insert_quantizers.h"
#include "converter/quantize/search/output_trials.h"

namespace sinter::convert {

// A rough time of one run on one core, in nanoseconds: budgets are counted in it, so that they do not depend
// on the machine's mood.
double run_cost(const Graph& graph);
double run_cost(const Graph& graph, const Node& node);

struct Sensitivity {
  std::map<ValueId, Noise> values;   // each rounded to its scale
  std::map<ValueId, Noise> weights;  // by the layer's output
  size_t samples = 0;                // that were run
};

// Samples that choose_scales() runs in each of `attempts` attempts, at values of the graph.
struct ProbedSamples {
  size_t each = 0;
  bool of_all = false;  // attempts; false: of the first one for each value
};
ProbedSamples samples_to_probe(const Graph& graph, size_t attempts, size_t values, size_t most);

using Step = std::function<void(int64_t done, int64_t total)>;

// For every value the number of the candidate (its first one is preferred) that adds the smallest noise to
// the outputs on samples of `part`: those that the candidates were not made from.
std::map<ValueId, size_t> choose_scales(const Trials& trials, Part part, const Graph& graph,
                                        const std::map<ValueId, std::vector<QuantParams>>& candidates,
                                        Sensitivity* sensitivity, const Step& step = {});

// Measures the noise by the weights of the operations that `roles` computes on integers.
void measure_weights(const Trials& trials, const Graph& graph, const std::vector<Role>& roles,
                     Sensitivity* sensitivity, const Step& step = {});

// The expected noise of the outputs with these roles: the sum over what they round.
Noise predict(const Sensitivity& sensitivity, const Graph& graph, const std::vector<Role>& roles);

}  // namespace sinter::convert

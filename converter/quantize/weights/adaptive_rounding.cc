#include "converter/quantize/weights/adaptive_rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "converter/quantize/weights/product_inputs.h"
#include "converter/quantize/weights/weight_rounding.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostBytes = 256 << 20;  // of sums that are kept at once

bool finite(const std::vector<double>& items) {
  return std::all_of(items.begin(), items.end(), [](double v) { return std::isfinite(v); });
}

// The rows of one product, with the step of each.
class RoundedProduct {
 public:
  explicit RoundedProduct(const ProductWeights& p)
      : p_(p), old_(p.weights->as_doubles()), now_(old_), bias_(static_cast<size_t>(p.rows), 0.0) {
    if (p.bias) bias_ = p.bias->as_doubles();
  }
  bool usable() const { return finite(old_); }

  // Steps from how much each weight matters.
  void choose_steps(const std::vector<InputBlock>& blocks) {
    std::map<int64_t, std::vector<double>> importance;  // by first row
    steps_.resize(static_cast<size_t>(p_.rows), 0);
    for (const InputBlock& b : blocks) {
      std::vector<double>& own = importance[b.first_row];
      own.resize(static_cast<size_t>(row_length(p_)), 0);
      for (size_t i = 0; i < b.weights.size(); ++i)
        own[static_cast<size_t>(b.weights[i])] =
            std::max(b.covariance[i * b.weights.size() + i], 0.0) + b.mean[i] * b.mean[i];
    }
    for (const InputBlock& b : blocks)
      for (int64_t row = b.first_row; b.weights[0] == 0 && row < b.first_row + b.rows; ++row)
        steps_[static_cast<size_t>(row)] = best_step(row_of(row), importance.at(b.first_row));
  }

  void round(InputBlock block, double damping) {
    const WeightRounding rounding(std::move(block.covariance), block.size(), damping);
    std::vector<double> w;
    for (int64_t row = block.first_row; row < block.first_row + block.rows; ++row)
      for (const int64_t i : block.weights) w.push_back(old_[at(row, i)]);
    const std::span<const double> steps(&steps_[static_cast<size_t>(block.first_row)],
                                        static_cast<size_t>(block.rows));
    const std::vector<int> q = rounding.round(w, steps);
    size_t k = 0;
    for (int64_t row = block.first_row; row < block.first_row + block.rows; ++row)
      for (size_t i = 0; i < block.weights.size(); ++i, ++k) {
        double& now = now_[at(row, block.weights[i])];
        now = static_cast<double>(static_cast<float>(q[k] * steps_[static_cast<size_t>(row)]));
        bias_[static_cast<size_t>(row)] += (w[k] - now) * block.mean[i];
      }
  }

  void store(Graph& graph, Node& node) const {
    if (finite(bias_)) set_weights(graph, node, &now_, &bias_);
  }

 private:
  size_t at(int64_t row, int64_t i) const { return static_cast<size_t>(element(p_, row, i)); }
  std::vector<double> row_of(int64_t row) const {
    std::vector<double> w;
    for (int64_t i = 0; i < row_length(p_); ++i) w.push_back(old_[at(row, i)]);
    return w;
  }

  const ProductWeights& p_;
  std::vector<double> old_, now_, bias_, steps_;
};

}  // namespace

int round_adaptively(Graph& graph, std::span<const Sample> samples, const AdaptiveRoundingOptions& options) {
  GraphRunner runner(graph, options.runner);
  int changed = 0;
  for (size_t next = 0; next < graph.nodes.size();) {
    // As many products at once as fit.
    std::map<size_t, std::unique_ptr<ProductInputs>> inputs;
    std::vector<ValueId> watched;
    for (int64_t bytes = 0; next < graph.nodes.size() && (bytes < kMostBytes || inputs.empty()); ++next) {
      const Node& node = graph.nodes[next];
      if (!product_weights(graph, node)) continue;
      auto& mine = inputs[next] = std::make_unique<ProductInputs>(graph, node, options.most_inputs,
                                                                  static_cast<int64_t>(samples.size()));
      bytes += mine->bytes();
      if (std::find(watched.begin(), watched.end(), node.inputs[0]) == watched.end())
        watched.push_back(node.inputs[0]);
    }
    runner.watch(watched);
    std::map<ValueId, int> times;
    for (const Sample& sample : samples)
      runner.run(sample, [&](ValueId id, const TensorView& view) {
        ++times[id];
        for (const auto& [n, collector] : inputs)
          if (graph.nodes[n].inputs[0] == id) collector->add(view.as<float>());
      });
    for (const auto& [n, collector] : inputs) {
      Node& node = graph.nodes[n];
      const auto p = product_weights(graph, node);
      RoundedProduct product(*p);
      std::vector<InputBlock> blocks = collector->take();
      if (times[node.inputs[0]] == 0 || !product.usable()) continue;
      if (!std::all_of(blocks.begin(), blocks.end(),
                       [](const InputBlock& b) { return finite(b.mean) && finite(b.covariance); }))
        continue;
      product.choose_steps(blocks);
      for (InputBlock& block : blocks) product.round(std::move(block), options.damping);
      product.store(graph, node);
      ++changed;
    }
  }
  return changed;
}

double adaptive_rounding_cost(const Graph& graph, const AdaptiveRoundingOptions& options) {
  double total = 0;
  for (const Node& node : graph.nodes) {
    const auto p = product_weights(graph, node);
    if (!p) continue;
    const int64_t length = row_length(*p), parts = (length + options.most_inputs - 1) / options.most_inputs;
    const auto n = static_cast<double>(length / parts);
    const auto blocks = static_cast<double>(parts * (p->depthwise ? p->columns : p->rows / p->per_group));
    const auto patches = static_cast<double>(enough_patches(static_cast<int64_t>(n)));
    total += blocks * n * n * (patches / 2 + n / 3) + 1.5 * n * n * static_cast<double>(p->rows * parts);
  }
  return total;
}

int choose_weight_steps(Graph& graph, const Observations& seen) {
  int changed = 0;
  for (Node& node : graph.nodes) {
    const auto p = product_weights(graph, node);
    if (!p) continue;
    const TensorSummary* x = seen.find(node.inputs[0]);
    if (x == nullptr || x->not_finite > 0 || static_cast<int64_t>(x->channels.size()) != p->columns) continue;
    std::vector<double> squares;
    for (const Moments& m : x->channels) {
      const double mean = m.sum / static_cast<double>(std::max<uint64_t>(x->channel_elements, 1));
      const double spread = (static_cast<double>(m.max) - m.min) / 6;
      squares.push_back(mean * mean + spread * spread);
    }
    std::vector<double> w = p->weights->as_doubles();
    if (!finite(w)) continue;
    bool any = false;
    for (int64_t row = 0; row < p->rows; ++row) {
      std::vector<double> own, importance;
      double largest = 0;
      for (int64_t i = 0; i < row_length(*p); ++i) {
        const int64_t k = element(*p, row, i);
        own.push_back(w[static_cast<size_t>(k)]);
        importance.push_back(squares[static_cast<size_t>(p->first_column(row) + i % p->each)]);
        largest = std::max(largest, std::fabs(own.back()));
      }
      const double step = best_step(own, importance);
      if (!(step > 0) || step >= largest / 127) continue;
      any = true;
      for (size_t i = 0; i < own.size(); ++i) {
        const double q = std::clamp(std::nearbyint(own[i] / step), -127.0, 127.0);
        w[static_cast<size_t>(element(*p, row, static_cast<int64_t>(i)))] = q * step;
      }
    }
    if (any) set_weights(graph, node, &w, nullptr);
    changed += any ? 1 : 0;
  }
  return changed;
}

}  // namespace sinter::convert

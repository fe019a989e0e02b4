#include "converter/cost/winograd_cost.h"

#include "converter/cost/tables.h"

namespace sinter::convert {
namespace {

// Tiles for which transformed filters are read once: about those that a kernel computes together.
constexpr double kBlockTiles = 24;

double pieces(double n, double unit) {
  return static_cast<double>(static_cast<int64_t>((n + unit - 1) / unit));
}

}  // namespace

WinogradCounts winograd_counts(double vector, const Dims& weights, const Dims& output, int64_t tile) {
  const auto length = [](const Dims& dims, size_t axis) { return static_cast<double>(dims[axis]); };
  const auto m = static_cast<double>(tile);
  const double positions = (m + 2) * (m + 2), channels = length(weights, 3);
  const double columns = pieces(length(weights, 0), vector) * vector;
  const double tiles = length(output, 0) * pieces(length(output, 1), m) * pieces(length(output, 2), m);
  const double filters = positions * channels * columns;
  return {.products = positions * tiles * channels * columns,
          .inputs = positions * tiles * channels,
          .outputs = positions * tiles * length(weights, 0),
          .filters = filters > kFarWeights ? filters * pieces(tiles, kBlockTiles) : 0};
}

double winograd_cost(Cpu cpu, const Dims& weights, const Dims& output, int64_t tile) {
  const CostTable& t = cost_table(cpu);
  const WinogradRate& rate = t.winograd;
  const WinogradCounts n = winograd_counts(t.vector, weights, output, tile);
  return rate.step + rate.product * n.products + rate.input * n.inputs + rate.output * n.outputs +
         rate.filter * n.filters;
}

}  // namespace sinter::convert

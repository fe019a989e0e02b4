// What a convolution costs by Winograd's algorithm (runtime/backend/winograd.h), beside float_cost, which is
// for a direct one.
#pragma once

#include "converter/ir/graph.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {

// What the rates of CostTable::winograd are multiplied by. Elements of all positions of all tiles.
struct WinogradCounts {
  double products = 0;  // of whole vectors of output channels
  double inputs = 0;    // transformed
  double outputs = 0;   // before they are transformed
  double filters =
      0;  // elements of transformed ones that are read from outer caches, once for every block of tiles
};
// A Conv of rank 4, on tiles of `tile` outputs an axis.
WinogradCounts winograd_counts(double vector, const Dims& weights, const Dims& output, int64_t tile);

// Nanoseconds of one core, as float_cost. Infinite where the processor's rates are unknown.
double winograd_cost(Cpu cpu, const Dims& weights, const Dims& output, int64_t tile);

}  // namespace sinter::convert

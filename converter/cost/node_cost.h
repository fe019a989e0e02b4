// The costs of an operation of a float graph in float32, on int8 and on int16, by the fastest kernels. They
// decide where integers would be slower. Pure functions of the graph and of the device's processor,
// so that a conversion gives the same on every machine. Nanoseconds of one core; only ratios mean something.
#pragma once

#include "converter/cost/tables.h"
#include "converter/cost/work.h"
#include "runtime/backend/cpu.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/target.h"

namespace sinter::convert {

// Returns the cost in float32.
double float_cost(Cpu cpu, const Graph& graph, const Node& node);
// Returns the cost as the integer operation that it becomes. Operations that are kept in float cost what they
// do.
double int8_cost(Cpu cpu, const Graph& graph, const Node& node);
// The same with activations of 16 bits.
double int16_cost(Cpu cpu, const Graph& graph, const Node& node);
// Returns the cost of a step of a plan, by the type of its first operand.
double step_cost(Cpu cpu, const OpCall& call);
// The numbers that a table's rates are multiplied by for a call of a float operation, and the name of its
// row: "one_row".
struct Counts {
  const char* row;
  const Rates* rates;  // of that row
  double float_products, int8_products, outputs, inputs;
};
Counts counts_of(Cpu cpu, const CallShape& call);
// Returns the cost of Quantize, Dequantize or Requantize of this many elements; the last costs most.
double boundary_cost(Cpu cpu, int64_t elements);

// Returns how many threads a step is worth: 1 where a second one would cost more than it brings, else 0
// (all).
uint32_t worthwhile_threads(const Target& target, const OpCall& call);

// Returns the threads that workspaces are planned for: all of the target's cores, or one where a step is not
// worth more.
int planned_threads(const Target& target, const OpCall& call);

// A backend that computes in memory of its own has threads of its own.
inline constexpr int kDeviceThreads = 1;

// The numbers that the rates of CostTable::winograd are multiplied by: elements of all positions of all
// tiles.
struct WinogradCounts {
  double products = 0;  // of whole vectors of output channels
  double inputs = 0;    // transformed
  double outputs = 0;   // before they are transformed
  // Elements of transformed filters that are read from outer caches, once for every block of tiles.
  double filters = 0;
};
// Returns the counts of a Conv of rank 4, on tiles of `tile` outputs an axis.
WinogradCounts winograd_counts(double vector, const Dims& weights, const Dims& output, int64_t tile);

// Returns the cost of a convolution by Winograd's algorithm (runtime/backend/winograd.h), where float_cost is
// that of a direct one. Infinite where the processor's rates are unknown.
double winograd_cost(Cpu cpu, const Dims& weights, const Dims& output, int64_t tile);

}  // namespace sinter::convert

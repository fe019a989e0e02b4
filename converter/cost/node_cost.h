// What an operation of a float graph costs in float32, on int8 and on int16, by the kernels that compute it
// fastest: decides where integers would be slower. Pure functions of the graph and of the device's processor,
// so that a conversion gives the same on every machine. Nanoseconds of one core; only ratios mean something.
#pragma once

#include "converter/cost/tables.h"
#include "converter/cost/work.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {

double float_cost(Cpu cpu, const Graph& graph, const Node& node);
// As the integer operation that it becomes. Operations that are kept in float cost what they do.
double int8_cost(Cpu cpu, const Graph& graph, const Node& node);
// The same with activations of 16 bits.
double int16_cost(Cpu cpu, const Graph& graph, const Node& node);
// Of a step of a plan, by the type of its first operand.
double step_cost(Cpu cpu, const OpCall& call);
// What a table's rates are multiplied by for a call of a float operation, and the name of its row: "one_row".
struct Counts {
  const char* row;
  const Rates* rates;  // of that row
  double float_products, int8_products, outputs, inputs;
};
Counts counts_of(Cpu cpu, const CallShape& call);
// Quantize, Dequantize or Requantize of this many elements; the last costs most.
double boundary_cost(Cpu cpu, int64_t elements);

}  // namespace sinter::convert

// What an operation of a float graph costs in float32, on int8 and on int16: the tables that decide where
// integers would be slower. Pure functions of the graph and of the device's instruction set, so that a
// conversion gives the same on every machine. Nanoseconds of one core; only ratios mean something.
#pragma once

#include "converter/ir/graph.h"
#include "runtime/backend/target.h"

namespace sinter::convert {

// Whose costs: the instruction set that the device's kernels use.
enum class Cpu {
  kAvx512Vnni,  // x86-64 with dot products of bytes; measured
  kAvx2,        // x86-64 with FMA, without dot products of bytes; measured
  kDotprod,     // ARM with dot products of bytes; instructions counted, not measured
  kNeon,        // ARM without; instructions counted, not measured
};
inline constexpr Cpu kCpus[] = {Cpu::kAvx512Vnni, Cpu::kAvx2, Cpu::kDotprod, Cpu::kNeon};
const char* cpu_name(Cpu cpu);  // "avx512vnni", "avx2", "dotprod", "neon"
// The best one that the target has the features for.
Cpu cpu_of(const Target& target);

// Products of two numbers that are summed up: convolutions, products of matrices, recurrent layers,
// attention.
double multiply_adds(const Graph& graph, const Node& node);

double float_cost(Cpu cpu, const Graph& graph, const Node& node);
// As the integer operation that it becomes. Operations that stay float cost what they do.
double int8_cost(Cpu cpu, const Graph& graph, const Node& node);
// The same with activations of 16 bits.
double int16_cost(Cpu cpu, const Graph& graph, const Node& node);
// Quantize, Dequantize or Requantize of this many elements; the last costs most.
double boundary_cost(Cpu cpu, int64_t elements);

}  // namespace sinter::convert

// The tables of costs, one for each processor: what an operation takes in float32, on int8 and on int16, and
// from which work on a second thread pays. Times of each platform's kernels, by which one of them is chosen,
// are in the platform's folder, for the same processors (Platform::time).
//
// bench/README.md: what is measured, where, and how to measure it again.
#pragma once

#include "runtime/backend/cpu.h"

namespace sinter::convert {

// Weights from which on they are read from outer caches, in elements.
inline constexpr double kFarWeights = 1 << 20;

// Nanoseconds for a step, and for each: multiplication (of whole vectors of output channels), output, input.
struct Rate {
  double step, product, output, input;
  Provenance provenance = Provenance::kUnmeasured;
};
struct Rates {
  Rate float32, int8, int16;
};

// The rates of Winograd's algorithm in float32, in nanoseconds: for a step, and for each unit of
// WinogradCounts (winograd_cost()).
struct WinogradRate {
  double step, product, input, output, filter;
  Provenance provenance = Provenance::kUnmeasured;
};

// Where the measured numbers of a table come from; "": none is measured.
struct Origin {
  const char *machine, *date, *program;
};

struct CostTable {
  Origin origin;
  double vector, dot;  // channels that a vector holds, and multiplications that one instruction sums
  Rates conv, depthwise, conv_transpose;
  WinogradRate winograd;
  Rates one_row;   // weights that are read once
  Rate far_float;  // `product`: one in float32 with more than far_weights, which come from outer caches
  double far_weights = kFarWeights;
  Rates mat_mul;  // of two computed matrices
  // For each step of a sequence in one direction, multiplication, and (as `output`) row of gates.
  Rates recurrent;
  // The rates of operations that work element by element; a table of results counts as a `function`.
  Rates arithmetic, function, cheap_function, prelu, pool, movement, resize, other;
  Rate boundary;  // Quantize and Dequantize
  // A step that takes less than this on one thread, in nanoseconds, gains nothing from a second one.
  struct {
    double time;
    Provenance provenance;
  } second_thread;
};

extern const CostTable kAvx512VnniCosts, kAvx2Costs, kDotprodCosts, kNeonCosts, kArmv7Costs, kPortableCosts,
    kCortexMCosts;

const CostTable& cost_table(Cpu cpu);

}  // namespace sinter::convert

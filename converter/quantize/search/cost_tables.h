// The numbers behind cost.h, one table for each instruction set.
#pragma once

#include "converter/quantize/search/cost.h"

namespace sinter::convert {

// Nanoseconds for a step, and for each: multiplication (of whole vectors of output channels), output, input.
struct Rate {
  double step, product, output, input;
};
struct Rates {
  Rate float32, int8, int16;
};

struct CostTable {
  double vector, dot;  // channels that a vector holds, and multiplications that one instruction sums
  Rates conv, depthwise, conv_transpose;
  Rates one_row;     // weights that are read once
  double far_float;  // a float32 product with weights from outer caches
  Rates recurrent;   // for each step of a sequence in one direction, multiplication, and (as `output`) row of
                     // gates
  Rate portable_int16;  // products of two activations on int16 have a portable kernel only
  // What is computed element by element; a table for one-input functions.
  Rates arithmetic, function, cheap_function, prelu, pool, movement, resize, other;
  double boundary_step, boundary;  // Quantize and Dequantize
};
const CostTable& cost_table(Cpu cpu);

}  // namespace sinter::convert

// The reference kernels, for targets that have no others. Cortex-M counted: instructions of a Cortex-M4 with
// -Os under qemu, 2026-11-28, half a nanosecond each (bench/kernel_times.py --cpu cortex-m4 --counts).
// Products of float32 sum doubles, which it computes in software. Rates of the steps alone, where the cases
// do not tell them apart, are read from the smallest cases.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kCortexMCosts = {
    .origin = {"", "", ""},
    .vector = 1,
    .dot = 1,
    .conv = {{500, 70, 170, 0, kCounted}, {500, 1.5, 82, 0, kCounted}, {500, 15, 90, 0, kCounted}},
    .depthwise = {{500, 64, 290, 0, kCounted}, {500, 4.5, 58, 0, kCounted}, {500, 13.4, 90, 0, kCounted}},
    .conv_transpose = {{500, 73, 10, 0, kCounted},
                       {500, 5, 80, 0, kUnmeasured},
                       {500, 15, 90, 0, kUnmeasured}},
    .winograd = {500, 70, 100, 100, 1, kUnmeasured},
    .one_row = {{500, 73, 10, 0, kCounted}, {300, 2.6, 3.2, 0, kCounted}, {300, 13.1, 23, 0, kCounted}},
    .far_float = {0, 73, 0, 0, kCounted},
    .mat_mul = {{500, 70, 150, 0, kCounted}, {500, 4, 80, 0, kUnmeasured}, {500, 15, 90, 0, kUnmeasured}},
    .recurrent = {{500, 65, 800, 0, kCounted}, {500, 3, 600, 0, kUnmeasured}, {500, 14, 600, 0, kUnmeasured}},
    .arithmetic = {{300, 0, 6.5, 0, kCounted}, {300, 0, 24, 0, kCounted}, {300, 0, 25, 0, kUnmeasured}},
    .function = {{300, 0, 45, 0, kCounted}, {300, 0, 4.5, 0, kCounted}, {300, 0, 30, 0, kUnmeasured}},
    .cheap_function = {{300, 0, 10, 0, kCounted}, {300, 0, 4.5, 0, kCounted}, {300, 0, 30, 0, kUnmeasured}},
    .prelu = {{300, 0, 9.1, 0, kCounted}, {300, 0, 29, 0, kCounted}, {300, 0, 30, 0, kUnmeasured}},
    .pool = {{500, 28, 0.5, 0, kCounted}, {500, 25, 0.5, 0, kCounted}, {500, 25, 0.5, 0, kUnmeasured}},
    .movement = {{300, 0, 8, 0, kCounted}, {300, 0, 8, 0, kCounted}, {300, 0, 8, 0, kUnmeasured}},
    .resize = {{500, 0, 20, 0, kCounted}, {500, 0, 20, 0, kUnmeasured}, {500, 0, 25, 0, kUnmeasured}},
    .other = {{300, 0, 20, 1, kUnmeasured}, {300, 0, 20, 1, kUnmeasured}, {300, 0, 20, 1, kUnmeasured}},
    .boundary = {300, 0, 21, 0, kCounted},
    .second_thread = {4000, kUnmeasured},
};

// Unmeasured: a processor that computes doubles executes about 6 instructions for a product of float32, where
// the Cortex-M4 executes 140, and 3 for one of int8.
constexpr CostTable kPortableCosts = [] {
  CostTable t = kCortexMCosts;
  t.conv = {{100, 3, 5, 0, kUnmeasured}, {100, 1, 10, 0, kUnmeasured}, {100, 2, 10, 0, kUnmeasured}};
  t.depthwise = {{100, 4, 8, 0, kUnmeasured}, {100, 3, 10, 0, kUnmeasured}, {100, 3, 10, 0, kUnmeasured}};
  t.conv_transpose = t.mat_mul = t.conv;
  t.one_row = {{100, 2, 2, 0, kUnmeasured}, {100, 0.7, 3, 0, kUnmeasured}, {100, 2, 3, 0, kUnmeasured}};
  t.far_float.product = 2;
  t.recurrent = {{500, 2, 50, 0, kUnmeasured}, {500, 1, 50, 0, kUnmeasured}, {500, 2, 50, 0, kUnmeasured}};
  t.arithmetic = {{100, 0, 1, 0, kUnmeasured}, {100, 0, 4, 0, kUnmeasured}, {100, 0, 5, 0, kUnmeasured}};
  t.function = {{100, 0, 10, 0, kUnmeasured}, {100, 0, 1, 0, kUnmeasured}, {100, 0, 4, 0, kUnmeasured}};
  t.cheap_function = {
      {100, 0, 1.5, 0, kUnmeasured}, {100, 0, 1, 0, kUnmeasured}, {100, 0, 4, 0, kUnmeasured}};
  t.prelu = {{100, 0, 1.5, 0, kUnmeasured}, {100, 0, 4, 0, kUnmeasured}, {100, 0, 5, 0, kUnmeasured}};
  t.boundary = {100, 0, 3, 0, kUnmeasured};
  t.far_float.provenance = kUnmeasured;
  return t;
}();

}  // namespace sinter::convert

// Counted: instructions under qemu as Cortex-A76, or as Cortex-A72 without dot products, on the faster
// platform, 2026-11-23 (float32 and int8 of conv and depthwise: 2026-11-25), half a nanosecond each.
// Unmeasured: estimates of the same, as are the 100 ns of a step.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kDotprodCosts = {
    .origin = {"", "", ""},
    .vector = 8,
    .dot = 4,
    .conv = {{100, 0.145, 0.2, 0, kCounted},
             {200, 0.0355, 0.9, 0, kCounted},
             {161434, 0.367, 32.5, 0, kCounted}},
    .depthwise = {{300, 0.2, 0, 0, kCounted}, {300, 0.18, 0.3, 0, kCounted}, {100, 1.95, 19, 0, kCounted}},
    .conv_transpose = {{600, 0.125, 0.5, 0.1, kUnmeasured},
                       {800, 0.031, 1, 0.2, kUnmeasured},
                       {1000, 1, 5, 1, kUnmeasured}},
    .winograd = {27800, 0.147, 1.64, 2.78, 0.0656, kCounted},
    .one_row = {{100, 0.239, 0, 0, kCounted},
                {100, 0.0788, 0, 0, kCounted},
                {200, 0.25, 3, 0.2, kUnmeasured}},
    .far_float = {0, 0.4, 0, 0, kUnmeasured},
    .mat_mul = {{100, 0.148, 4.02, 0, kCounted},
                {500, 0.031, 1, 0.1, kUnmeasured},
                {400, 2, 2, 0.2, kUnmeasured}},
    .recurrent = {{500, 0.25, 10, 0, kUnmeasured},
                  {400, 0.19, 10, 0, kUnmeasured},
                  {400, 0.19, 10, 0, kUnmeasured}},
    .arithmetic = {{120, 0, 0.5, 0, kUnmeasured},
                   {200, 0, 0.9, 0, kUnmeasured},
                   {200, 0, 0.9, 0, kUnmeasured}},
    .function = {{120, 0, 3, 0, kUnmeasured}, {120, 0, 0.5, 0, kUnmeasured}, {120, 0, 2, 0, kUnmeasured}},
    .cheap_function = {{120, 0, 0.5, 0, kUnmeasured},
                       {120, 0, 0.5, 0, kUnmeasured},
                       {120, 0, 2, 0, kUnmeasured}},
    .prelu = {{120, 0, 0.6, 0, kUnmeasured}, {200, 0, 1, 0, kUnmeasured}, {200, 0, 1, 0, kUnmeasured}},
    .pool = {{300, 0.25, 0.3, 0, kUnmeasured},
             {400, 0.19, 0.5, 0, kUnmeasured},
             {400, 0.25, 0.5, 0, kUnmeasured}},
    .movement = {{120, 0, 0.5, 0, kUnmeasured}, {120, 0, 0.2, 0, kUnmeasured}, {120, 0, 0.3, 0, kUnmeasured}},
    .resize = {{400, 0, 2, 0.1, kUnmeasured}, {600, 0, 2, 0.1, kUnmeasured}, {600, 0, 2, 0.1, kUnmeasured}},
    .other = {{120, 0, 1, 0.1, kUnmeasured}, {120, 0, 1, 0.1, kUnmeasured}, {120, 0, 1, 0.1, kUnmeasured}},
    .boundary = {120, 0, 0.75, 0, kUnmeasured},
    .second_thread = {4000, kUnmeasured},
};

constexpr CostTable kNeonCosts = [] {
  CostTable t = kDotprodCosts;
  t.conv.int8 = {100, 0.12, 2.9, 0, kCounted};
  t.depthwise.int8 = {300, 0.29, 0.5, 0, kCounted};
  t.mat_mul.int8.product = t.conv_transpose.int8.product = 0.094;
  t.one_row.int8.product = 0.16;
  return t;
}();

// As Cortex-A15, 2026-11-28: XNNPACK, whose kernels execute fewer instructions there in every case.
constexpr CostTable kArmv7Costs = [] {
  CostTable t = kNeonCosts;
  t.conv.float32 = {100, 0.19, 1.5, 0, kCounted};
  t.conv.int8 = {200, 0.187, 2.1, 0, kCounted};
  t.depthwise.float32 = {300, 0.77, 1, 0, kCounted};
  t.depthwise.int8 = {300, 0.45, 3, 0, kCounted};
  t.one_row.float32 = t.one_row.int8 = {100, 0.285, 0, 0, kCounted};
  // Instructions do not show that weights beyond a cache of 256 KB are read from memory, at 3 GB/s.
  t.far_float = {0, 1.33, 0, 0, kUnmeasured};
  t.far_weights = 1 << 16;
  t.arithmetic.float32 = {120, 0, 1, 0, kCounted};
  t.arithmetic.int8 = {200, 0, 3, 0, kCounted};
  t.boundary = {120, 0, 14, 0, kCounted};  // the reference kernels
  t.mat_mul.float32.product = t.conv_transpose.float32.product = 0.19;
  t.mat_mul.int8.product = t.conv_transpose.int8.product = 0.187;
  return t;
}();

}  // namespace sinter::convert

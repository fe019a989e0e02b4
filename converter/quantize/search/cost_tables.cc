#include "converter/quantize/search/cost_tables.h"

namespace sinter::convert {
namespace {

// Measured by bench/op_backends.cc on a server core with AVX-512 and VNNI.
constexpr CostTable kAvx512Vnni = {
    .vector = 16,
    .dot = 4,
    .conv = {{150, 0.0092, 0.05, 0.01}, {250, 0.0024, 0.12, 0.05}, {400, 0.013, 10, 0.05}},
    .depthwise = {{150, 0.028, 0.02, 0.02}, {250, 0.016, 0.1, 0.05}, {300, 0.22, 0.3, 0.1}},
    .conv_transpose = {{300, 0.012, 0.1, 0.05}, {400, 0.008, 0.2, 0.1}, {500, 1, 5, 1}},
    .one_row = {{60, 0.022, 0.1, 0.1}, {100, 0.0068, 0.3, 0.1}, {100, 0.013, 10, 0.1}},
    .far_float = 0.1,
    .recurrent = {{250, 0.026, 2.6, 0}, {200, 0.019, 5, 0}, {200, 0.019, 5, 0}},
    .portable_int16 = {200, 1, 1, 0.1},
    .arithmetic = {{60, 0, 0.2, 0}, {100, 0, 0.12, 0}, {100, 0, 0.16, 0}},
    .function = {{60, 0, 0.37, 0}, {60, 0, 0.026, 0}, {60, 0, 0.35, 0}},
    .cheap_function = {{60, 0, 0.1, 0}, {60, 0, 0.026, 0}, {60, 0, 0.35, 0}},
    .prelu = {{60, 0, 0.13, 0}, {100, 0, 0.15, 0}, {100, 0, 0.17, 0}},
    .pool = {{150, 0.1, 0.05, 0}, {200, 0.09, 0.1, 0}, {200, 0.14, 0.1, 0}},
    .movement = {{60, 0, 0.19, 0}, {60, 0, 0.055, 0}, {60, 0, 0.1, 0}},
    .resize = {{200, 0, 0.5, 0.05}, {300, 0, 0.5, 0.05}, {300, 0, 0.5, 0.05}},
    .other = {{60, 0, 0.3, 0.1}, {60, 0, 0.3, 0.1}, {60, 0, 0.3, 0.1}},
    .boundary_step = 60,
    .boundary = 0.1,
};

// Measured likewise on that core with SINTER_CPU_CAP=avx2, but for int16 (twice the rates above), resizing
// and recurrent layers (products as of one row).
constexpr CostTable kAvx2 = {
    .vector = 8,
    .dot = 4,
    .conv = {{150, 0.0228, 0.06, 0.02}, {250, 0.0166, 0.36, 0.1}, {400, 0.026, 20, 0.1}},
    .depthwise = {{150, 0.045, 0.05, 0.05}, {250, 0.055, 0.15, 0.05}, {300, 0.44, 0.6, 0.2}},
    .conv_transpose = {{300, 0.042, 0.1, 0.05}, {400, 0.03, 0.36, 0.1}, {500, 2, 10, 2}},
    .one_row = {{60, 0.043, 0.1, 0.1}, {100, 0.026, 0.36, 0.1}, {100, 0.026, 20, 0.2}},
    .far_float = 0.137,
    .recurrent = {{250, 0.043, 5, 0}, {200, 0.026, 10, 0}, {200, 0.026, 10, 0}},
    .portable_int16 = {200, 1, 1, 0.1},
    .arithmetic = {{60, 0, 0.275, 0}, {100, 0, 0.213, 0}, {100, 0, 0.32, 0}},
    .function = {{60, 0, 0.675, 0}, {60, 0, 0.196, 0}, {60, 0, 0.7, 0}},
    .cheap_function = {{60, 0, 0.16, 0}, {60, 0, 0.196, 0}, {60, 0, 0.7, 0}},
    .prelu = {{60, 0, 0.17, 0}, {100, 0, 0.217, 0}, {100, 0, 0.34, 0}},
    .pool = {{150, 0.17, 0.05, 0}, {200, 0.18, 0.1, 0}, {200, 0.28, 0.2, 0}},
    .movement = {{60, 0, 0.256, 0}, {60, 0, 0.059, 0}, {60, 0, 0.12, 0}},
    .resize = {{200, 0, 1, 0.1}, {300, 0, 1, 0.1}, {300, 0, 1, 0.1}},
    .other = {{60, 0, 0.4, 0.1}, {60, 0, 0.4, 0.1}, {60, 0, 0.4, 0.1}},
    .boundary_step = 60,
    .boundary = 0.19,
};

// Counted, not measured: instructions of 16 bytes for an element, at one each cycle of 2 GHz. A float32
// product takes a quarter of one, a product of bytes a sixteenth with dot products.
constexpr CostTable kDotprod = {
    .vector = 8,
    .dot = 4,
    .conv = {{300, 0.125, 0.3, 0.1}, {500, 0.031, 1, 0.1}, {800, 0.125, 3, 0.2}},
    .depthwise = {{300, 0.25, 0.3, 0.1}, {500, 0.19, 1, 0.1}, {600, 0.5, 3, 0.2}},
    .conv_transpose = {{600, 0.125, 0.5, 0.1}, {800, 0.031, 1, 0.2}, {1000, 1, 5, 1}},
    .one_row = {{120, 0.25, 0.3, 0.1}, {200, 0.063, 1, 0.1}, {200, 0.25, 3, 0.2}},
    .far_float = 0.4,
    .recurrent = {{500, 0.25, 10, 0}, {400, 0.19, 10, 0}, {400, 0.19, 10, 0}},
    .portable_int16 = {400, 2, 2, 0.2},
    .arithmetic = {{120, 0, 0.5, 0}, {200, 0, 0.9, 0}, {200, 0, 0.9, 0}},
    .function = {{120, 0, 3, 0}, {120, 0, 0.5, 0}, {120, 0, 2, 0}},
    .cheap_function = {{120, 0, 0.5, 0}, {120, 0, 0.5, 0}, {120, 0, 2, 0}},
    .prelu = {{120, 0, 0.6, 0}, {200, 0, 1, 0}, {200, 0, 1, 0}},
    .pool = {{300, 0.25, 0.3, 0}, {400, 0.19, 0.5, 0}, {400, 0.25, 0.5, 0}},
    .movement = {{120, 0, 0.5, 0}, {120, 0, 0.2, 0}, {120, 0, 0.3, 0}},
    .resize = {{400, 0, 2, 0.1}, {600, 0, 2, 0.1}, {600, 0, 2, 0.1}},
    .other = {{120, 0, 1, 0.1}, {120, 0, 1, 0.1}, {120, 0, 1, 0.1}},
    .boundary_step = 120,
    .boundary = 0.75,
};

// As above; without dot products three instructions take 16 products of bytes.
constexpr CostTable kNeon = [] {
  CostTable t = kDotprod;
  t.conv.int8.product = t.conv_transpose.int8.product = 0.094;
  t.one_row.int8.product = 0.16;
  return t;
}();

}  // namespace

const CostTable& cost_table(Cpu cpu) {
  switch (cpu) {
    case Cpu::kAvx2:
      return kAvx2;
    case Cpu::kDotprod:
      return kDotprod;
    case Cpu::kNeon:
      return kNeon;
    case Cpu::kAvx512Vnni:
      break;
  }
  return kAvx512Vnni;
}

const char* cpu_name(Cpu cpu) {
  switch (cpu) {
    case Cpu::kAvx2:
      return "avx2";
    case Cpu::kDotprod:
      return "dotprod";
    case Cpu::kNeon:
      return "neon";
    case Cpu::kAvx512Vnni:
      break;
  }
  return "avx512vnni";
}

Cpu cpu_of(const Target& target) {
  if (target.has(Feature::kAvx512Vnni)) return Cpu::kAvx512Vnni;
  if (target.has(Feature::kDotprod)) return Cpu::kDotprod;
  if (target.has(Feature::kNeon) || target.architecture == Architecture::kCortexM) return Cpu::kNeon;
  return Cpu::kAvx2;
}

}  // namespace sinter::convert

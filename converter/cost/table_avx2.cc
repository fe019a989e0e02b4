// Not a processor without AVX-512: one whose instruction set is capped. Rates of int16 are twice those with
// AVX-512; recurrent layers by `sinter bench`.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kAvx2Costs = {
    .origin = {"a server with two cores, AMD EPYC (Zen 4), SINTER_CPU_CAP=avx2", "2026-11-25",
               "bench/device/cost_rates.cc"},
    .vector = 8,
    .dot = 4,
    .conv = {{150, 0.0178, 0.03, 0.01, kMeasured},
             {250, 0.0078, 0.17, 0.02, kMeasured},
             {800, 0.0125, 0.09, 0, kMeasured}},
    .depthwise = {{150, 0.0195, 0.04, 0.045, kMeasured},
                  {150, 0.0161, 0.075, 0.057, kMeasured},
                  {2000, 0.038, 0.06, 0, kMeasured}},
    .conv_transpose = {{300, 0.0197, 0.057, 0, kMeasured},
                       {400, 0.045, 0.36, 0.1, kUnmeasured},
                       {500, 2, 10, 2, kUnmeasured}},
    .winograd = {4215, 0.0199, 0.272, 0.229, 0.205, kMeasured},
    .one_row = {{30, 0.034, 0.1, 0.1, kMeasured},
                {30, 0.0145, 0.3, 0, kMeasured},
                {60, 0.0193, 0.1, 0, kMeasured}},
    .far_float = {0, 0.08, 0, 0, kMeasured},
    .mat_mul = {{100, 0.0178, 0.09, 0.05, kMeasured},
                {250, 0.0115, 0.14, 0.05, kUnmeasured},
                {200, 1, 1, 0.1, kUnmeasured}},
    .recurrent = {{130, 0.032, 0.6, 0, kMeasured},
                  {200, 0.019, 3, 0, kMeasured},
                  {200, 0.026, 10, 0, kUnmeasured}},
    .arithmetic = {{60, 0, 0.12, 0, kMeasured}, {100, 0, 0.1, 0, kMeasured}, {100, 0, 0.32, 0, kUnmeasured}},
    .function = {{60, 0, 0.343, 0, kMeasured}, {60, 0, 0.138, 0, kMeasured}, {60, 0, 0.7, 0, kUnmeasured}},
    .cheap_function = {{60, 0, 0.083, 0, kMeasured},
                       {60, 0, 0.138, 0, kMeasured},
                       {60, 0, 0.7, 0, kUnmeasured}},
    .prelu = {{60, 0, 0.087, 0, kMeasured}, {100, 0, 0.104, 0, kMeasured}, {100, 0, 0.34, 0, kUnmeasured}},
    .pool = {{60, 0.031, 0.13, 0, kMeasured},
             {100, 0.12, 0.05, 0, kMeasured},
             {200, 0.28, 0.2, 0, kUnmeasured}},
    .movement = {{60, 0, 0.06, 0.028, kMeasured},
                 {60, 0, 0.039, 0, kMeasured},
                 {60, 0, 0.12, 0, kUnmeasured}},
    .resize = {{200, 0, 0.24, 0.05, kMeasured},
               {300, 0, 0.3, 0.05, kUnmeasured},
               {300, 0, 1, 0.1, kUnmeasured}},
    .other = {{60, 0, 0.4, 0.1, kUnmeasured}, {60, 0, 0.4, 0.1, kUnmeasured}, {60, 0, 0.4, 0.1, kUnmeasured}},
    .boundary = {60, 0, 0.165, 0, kMeasured},
    .second_thread = {1500, kMeasured},
};

}  // namespace sinter::convert

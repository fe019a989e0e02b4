// Server processors with AVX-512 and VNNI. int8 of transposed convolutions and of recurrent layers by `sinter
// bench`.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kAvx512VnniCosts = {
    .origin = {"a server with two cores, AMD EPYC (Zen 4)", "2026-11-25", "bench/device/cost_rates.cc"},
    .vector = 16,
    .dot = 4,
    .conv = {{150, 0.0171, 0.02, 0.01, kMeasured},
             {250, 0.0044, 0.09, 0.01, kMeasured},
             {800, 0.0112, 0.08, 0, kMeasured}},
    .depthwise = {{150, 0.0154, 0.06, 0.024, kMeasured},
                  {150, 0.0115, 0.01, 0.055, kMeasured},
                  {2000, 0.034, 0.06, 0, kMeasured}},
    .conv_transpose = {{300, 0.0192, 0.025, 0, kMeasured},
                       {400, 0.026, 0.1, 0.05, kMeasured},
                       {500, 1, 5, 1, kUnmeasured}},
    .winograd = {1010, 0.0153, 0.219, 0.159, 0.109, kMeasured},
    .one_row = {{30, 0.034, 0.1, 0.1, kMeasured},
                {30, 0.0098, 0.1, 0, kMeasured},
                {60, 0.0178, 0.1, 0, kMeasured}},
    .far_float = {0, 0.078, 0, 0, kMeasured},
    .mat_mul = {{100, 0.0177, 0.06, 0.025, kMeasured},
                {250, 0.0044, 0.09, 0.05, kUnmeasured},
                {200, 1, 1, 0.1, kUnmeasured}},
    .recurrent = {{130, 0.03, 0.6, 0, kMeasured},
                  {200, 0.015, 3, 0, kMeasured},
                  {200, 0.019, 5, 0, kUnmeasured}},
    .arithmetic = {{60, 0, 0.12, 0, kMeasured}, {100, 0, 0.1, 0, kMeasured}, {100, 0, 0.16, 0, kUnmeasured}},
    .function = {{60, 0, 0.267, 0, kMeasured}, {60, 0, 0.018, 0, kMeasured}, {60, 0, 0.35, 0, kUnmeasured}},
    .cheap_function = {{60, 0, 0.083, 0, kMeasured},
                       {60, 0, 0.018, 0, kMeasured},
                       {60, 0, 0.35, 0, kUnmeasured}},
    .prelu = {{60, 0, 0.086, 0, kMeasured}, {100, 0, 0.1, 0, kMeasured}, {100, 0, 0.17, 0, kUnmeasured}},
    .pool = {{60, 0.034, 0.12, 0, kMeasured},
             {100, 0.1, 0.05, 0, kMeasured},
             {200, 0.14, 0.1, 0, kUnmeasured}},
    .movement = {{60, 0, 0.06, 0.028, kMeasured}, {60, 0, 0.055, 0, kMeasured}, {60, 0, 0.1, 0, kUnmeasured}},
    .resize = {{200, 0, 0.2, 0.05, kMeasured},
               {300, 0, 0.25, 0.05, kUnmeasured},
               {300, 0, 0.5, 0.05, kUnmeasured}},
    .other = {{60, 0, 0.3, 0.1, kUnmeasured}, {60, 0, 0.3, 0.1, kUnmeasured}, {60, 0, 0.3, 0.1, kUnmeasured}},
    .boundary = {60, 0, 0.13, 0, kMeasured},
    .second_thread = {1500, kMeasured},
};

}  // namespace sinter::convert

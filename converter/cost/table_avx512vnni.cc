// Server processors with AVX-512. Layers of recurrent networks were measured by `sinter bench`.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kAvx512VnniCosts = {
    .origin = {"a server with two cores, Intel Xeon with AVX-512 and VNNI", "2026-11-22",
               "bench/op_backends.cc"},
    .vector = 16,
    .dot = 4,
    .conv = {{150, 0.0092, 0.05, 0.01, kMeasured},
             {250, 0.0024, 0.12, 0.05, kMeasured},
             {400, 0.013, 10, 0.05, kUnmeasured}},
    .depthwise = {{150, 0.028, 0.02, 0.02, kMeasured},
                  {250, 0.016, 0.1, 0.05, kMeasured},
                  {300, 0.22, 0.3, 0.1, kUnmeasured}},
    .conv_transpose = {{300, 0.012, 0.1, 0.05, kMeasured},
                       {400, 0.008, 0.2, 0.1, kUnmeasured},
                       {500, 1, 5, 1, kUnmeasured}},
    .winograd = {363, 0.012, 0.187, 0.198, 0.265, kMeasured},
    .one_row = {{60, 0.022, 0.1, 0.1, kMeasured},
                {100, 0.0068, 0.3, 0.1, kMeasured},
                {100, 0.013, 10, 0.1, kUnmeasured}},
    .far_float = {0, 0.1, 0, 0, kMeasured},
    .mat_mul = {{150, 0.0092, 0.05, 0.01, kMeasured},
                {250, 0.0024, 0.12, 0.05, kUnmeasured},
                {200, 1, 1, 0.1, kUnmeasured}},
    .recurrent = {{250, 0.026, 2.6, 0, kMeasured},
                  {200, 0.019, 5, 0, kMeasured},
                  {200, 0.019, 5, 0, kUnmeasured}},
    .arithmetic = {{60, 0, 0.2, 0, kMeasured}, {100, 0, 0.12, 0, kMeasured}, {100, 0, 0.16, 0, kUnmeasured}},
    .function = {{60, 0, 0.37, 0, kMeasured}, {60, 0, 0.026, 0, kMeasured}, {60, 0, 0.35, 0, kUnmeasured}},
    .cheap_function = {{60, 0, 0.1, 0, kMeasured},
                       {60, 0, 0.026, 0, kMeasured},
                       {60, 0, 0.35, 0, kUnmeasured}},
    .prelu = {{60, 0, 0.13, 0, kMeasured}, {100, 0, 0.15, 0, kMeasured}, {100, 0, 0.17, 0, kUnmeasured}},
    .pool = {{150, 0.1, 0.05, 0, kMeasured},
             {200, 0.09, 0.1, 0, kMeasured},
             {200, 0.14, 0.1, 0, kUnmeasured}},
    .movement = {{60, 0, 0.19, 0, kMeasured}, {60, 0, 0.055, 0, kMeasured}, {60, 0, 0.1, 0, kUnmeasured}},
    .resize = {{200, 0, 0.5, 0.05, kUnmeasured},
               {300, 0, 0.5, 0.05, kUnmeasured},
               {300, 0, 0.5, 0.05, kUnmeasured}},
    .other = {{60, 0, 0.3, 0.1, kUnmeasured}, {60, 0, 0.3, 0.1, kUnmeasured}, {60, 0, 0.3, 0.1, kUnmeasured}},
    .boundary = {60, 0, 0.1, 0, kMeasured},
    .second_thread = {1500, kMeasured},
};

}  // namespace sinter::convert

// Not a processor without AVX-512: one whose instruction set is capped. Rates of int16 are twice those with
// AVX-512; products of recurrent layers are as those of one row.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kAvx2Costs = {
    .origin = {"a server with two cores, Intel Xeon with AVX-512 and VNNI, SINTER_CPU_CAP=avx2", "2026-11-23",
               "bench/op_backends.cc"},
    .vector = 8,
    .dot = 4,
    .conv = {{150, 0.0228, 0.06, 0.02, kMeasured},
             {250, 0.0166, 0.36, 0.1, kMeasured},
             {400, 0.026, 20, 0.1, kUnmeasured}},
    .depthwise = {{150, 0.045, 0.05, 0.05, kMeasured},
                  {250, 0.055, 0.15, 0.05, kMeasured},
                  {300, 0.44, 0.6, 0.2, kUnmeasured}},
    .conv_transpose = {{300, 0.042, 0.1, 0.05, kMeasured},
                       {400, 0.03, 0.36, 0.1, kUnmeasured},
                       {500, 2, 10, 2, kUnmeasured}},
    .winograd = {252, 0.0232, 0.212, 0.314, 0.279, kMeasured},
    .one_row = {{60, 0.043, 0.1, 0.1, kMeasured},
                {100, 0.026, 0.36, 0.1, kMeasured},
                {100, 0.026, 20, 0.2, kUnmeasured}},
    .far_float = {0, 0.137, 0, 0, kMeasured},
    .mat_mul = {{150, 0.0228, 0.06, 0.02, kMeasured},
                {250, 0.0166, 0.36, 0.1, kUnmeasured},
                {200, 1, 1, 0.1, kUnmeasured}},
    .recurrent = {{250, 0.043, 5, 0, kUnmeasured},
                  {200, 0.026, 10, 0, kUnmeasured},
                  {200, 0.026, 10, 0, kUnmeasured}},
    .arithmetic = {{60, 0, 0.275, 0, kMeasured},
                   {100, 0, 0.213, 0, kMeasured},
                   {100, 0, 0.32, 0, kUnmeasured}},
    .function = {{60, 0, 0.675, 0, kMeasured}, {60, 0, 0.196, 0, kMeasured}, {60, 0, 0.7, 0, kUnmeasured}},
    .cheap_function = {{60, 0, 0.16, 0, kMeasured},
                       {60, 0, 0.196, 0, kMeasured},
                       {60, 0, 0.7, 0, kUnmeasured}},
    .prelu = {{60, 0, 0.17, 0, kMeasured}, {100, 0, 0.217, 0, kMeasured}, {100, 0, 0.34, 0, kUnmeasured}},
    .pool = {{150, 0.17, 0.05, 0, kMeasured},
             {200, 0.18, 0.1, 0, kMeasured},
             {200, 0.28, 0.2, 0, kUnmeasured}},
    .movement = {{60, 0, 0.256, 0, kMeasured}, {60, 0, 0.059, 0, kMeasured}, {60, 0, 0.12, 0, kUnmeasured}},
    .resize = {{200, 0, 1, 0.1, kUnmeasured}, {300, 0, 1, 0.1, kUnmeasured}, {300, 0, 1, 0.1, kUnmeasured}},
    .other = {{60, 0, 0.4, 0.1, kUnmeasured}, {60, 0, 0.4, 0.1, kUnmeasured}, {60, 0, 0.4, 0.1, kUnmeasured}},
    .boundary = {60, 0, 0.19, 0, kMeasured},
    .second_thread = {1500, kMeasured},
};

}  // namespace sinter::convert

// Estimates: instructions of 16 bytes that an element takes, at one each cycle of 2 GHz. A float32 product
// takes a quarter of one, a product of bytes a sixteenth with dot products; without them three instructions
// take 16 products.
#include "converter/cost/tables.h"

namespace sinter::convert {

using enum Provenance;

constexpr CostTable kDotprodCosts = {
    .origin = {"", "", ""},
    .vector = 8,
    .dot = 4,
    .conv = {{300, 0.125, 0.3, 0.1, kUnmeasured},
             {500, 0.031, 1, 0.1, kUnmeasured},
             {800, 0.125, 3, 0.2, kUnmeasured}},
    .depthwise = {{300, 0.25, 0.3, 0.1, kUnmeasured},
                  {500, 0.19, 1, 0.1, kUnmeasured},
                  {600, 0.5, 3, 0.2, kUnmeasured}},
    .conv_transpose = {{600, 0.125, 0.5, 0.1, kUnmeasured},
                       {800, 0.031, 1, 0.2, kUnmeasured},
                       {1000, 1, 5, 1, kUnmeasured}},
    .winograd = {2000, 0.15, 1, 1, 0.8, kUnmeasured},
    .one_row = {{120, 0.25, 0.3, 0.1, kUnmeasured},
                {200, 0.063, 1, 0.1, kUnmeasured},
                {200, 0.25, 3, 0.2, kUnmeasured}},
    .far_float = {0, 0.4, 0, 0, kUnmeasured},
    .mat_mul = {{300, 0.125, 0.3, 0.1, kUnmeasured},
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
    .second_thread = {250e3, kUnmeasured},
};

constexpr CostTable kNeonCosts = [] {
  CostTable t = kDotprodCosts;
  t.conv.int8.product = t.mat_mul.int8.product = t.conv_transpose.int8.product = 0.094;
  t.one_row.int8.product = 0.16;
  return t;
}();

}  // namespace sinter::convert

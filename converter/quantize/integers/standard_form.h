// The form in which ONNX states a quantized graph: float operations between Quantize and Dequantize, whose
// constants are integers behind a Dequantize, as their recipes (recipe.h) have them. Every runtime that takes
// ONNX recognises integer operations in it; the integer pass (integer_form.h) computes the same integers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// What the form consists of, and where it states less than integers that this program computes with.
struct StandardForm {
  size_t pairs = 0;                       // values that are rounded, by Quantize and Dequantize
  size_t weights = 0, biases = 0;         // constants that are integers
  std::vector<std::string> float_biases;  // products whose bias fits no int32
};

// Gives a graph that place_quantizers() and its corrections are done with this form: weights as int8 with a
// scale for each channel, biases as int32 in steps of x's scale times the weights', other operands in steps
// as int8, a pair behind operations that only move elements, no clamp that the Quantize behind it does by
// itself.
StandardForm give_standard_form(Graph& graph);

}  // namespace sinter::convert

// --input-type uint8: inputs that take a picture get bytes instead, and the model begins with the
// preprocessing.
//
//   bytes uint8 -> the model's layout and order of channels -> float32 -> - mean -> * scale -> the input's
//   type
//
// The same float32 operations in the same order as picture_input() (converter/data/preprocessing.h). Passes
// may fold them into the first product.
#pragma once

#include <string>

#include "converter/data/preprocessing.h"
#include "converter/import/lower.h"

namespace sinter::convert {

// The origin of the nodes of the preprocessing, which have the input's name.
inline constexpr const char* kByteInputOrigin = "--input-type";

// Returns whether --input-type applies to an input of this type and shape: a float that takes one picture.
bool takes_bytes(const ByteInputs& bytes, const DataInput& input);

// Adds the uint8 input to the graph, in the layout that `how` gives (else the model's), and returns the value
// that the model reads. Throws UsageError where `how` does not suit the input.
ValueId add_byte_input(const DataInput& input, const Preprocessing& how, GraphLowering& lowering);

}  // namespace sinter::convert

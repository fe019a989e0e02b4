// Resize to a size that depends on data.
#pragma once

#include "converter/import/lengths/lengths.h"
#include "converter/import/lowering.h"

namespace sinter::convert {

// `x` with `axis` resized from its length to `size`; mode, coordinates, nearest_mode and cubic_coeff_a as in
// `a`, by operations that compute every tap's place and weight at run time. Refuses antialiasing, cubic
// weights that leave out what is outside, and cropping.
ValueId resize_axis_to(NodeLowering& n, ValueId x, int64_t axis, LengthId size, const ResizeAttrs& a);

}  // namespace sinter::convert

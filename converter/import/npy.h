// The .npy format (NumPy's NEP 1): one array with a text header.
#pragma once

#include <span>
#include <string>

#include "converter/ir/constant.h"

namespace sinter::convert {

// `what` names the source in errors. Versions 1 to 3, little-endian, either order. Throws DataError.
ConstantPtr parse_npy(std::span<const std::byte> bytes, const std::string& what);
Bytes make_npy(const Constant& array);

}  // namespace sinter::convert

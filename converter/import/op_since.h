// The operator-set version with which an ONNX operator first came.
#pragma once

#include <string_view>

namespace sinter::convert {

// 1 for those of the first set, for other domains, and for operators that files used before they were
// standard.
int op_since(std::string_view domain, std::string_view op_type);

}  // namespace sinter::convert

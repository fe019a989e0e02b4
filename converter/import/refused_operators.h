// Operators that are not read for a reason of their own, which the refusal gives.
#pragma once

#include <string_view>

namespace sinter::convert {

struct RefusedOperator {
  std::string_view domain, op_type;
  std::string_view reason;  // continues "operator X is not supported: "
  std::string_view advice;  // what the user can do about it
};

// Null: the operator is read, or just unknown.
const RefusedOperator* find_refused(std::string_view domain, std::string_view op_type);

}  // namespace sinter::convert

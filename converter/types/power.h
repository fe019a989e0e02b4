// The types of a power (rule pow.base).
#pragma once

#include <cstddef>
#include <vector>

#include "converter/types/settle.h"

namespace sinter::convert {

// Base and exponent, two of the operands, may have different types: the result is of the base's type, unless
// a fraction of an integer base is meant (ResultFact::fractions). Adds what becomes of both and of the result
// to `settled`, or a warning where the fraction of an integer base is lost.
void settle_power(const std::vector<OperandFact>& operands, size_t base, size_t exponent,
                  const ResultFact& result, Settlement* settled);

}  // namespace sinter::convert

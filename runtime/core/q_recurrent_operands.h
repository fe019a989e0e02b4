// The operands of QLstm and QGru.
#pragma once

#include <cstddef>

namespace sinter::recurrent {

// The numbers are their places among the inputs.
enum QOperand : size_t {
  kX,
  kW,
  kR,
  kXMultipliers,
  kHMultipliers,
  kBias,
  kTables,
  kLengths,
  kInitialH,
  kInitialC
};

}  // namespace sinter::recurrent

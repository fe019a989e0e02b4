// A stored matrix of integers of 2, 4 or 8 bits, which is processed a byte at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "converter/ir/constant.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {

class PackedIntegers {
 public:
  // Returns nothing if the constant is empty, or not of an integer type of 2, 4 or 8 bits.
  static std::optional<PackedIntegers> of(const ConstantPtr& constant);

  // Returns the smallest and the largest integer.
  std::pair<int64_t, int64_t> range() const;
  // Returns every integer less `offset`, as the low bits of a type of as many bits.
  Bytes shifted(int64_t offset) const;
  int bits() const { return format_.bits; }

 private:
  // Returns the number of integers in the last byte if it is not full, else 0.
  int64_t rest() const { return constant_->size() % format_.unit(); }
  int64_t value(unsigned code) const { return code_integer(format_, code); }
  ConstantPtr constant_;
  WeightFormat format_;
};

}  // namespace sinter::convert

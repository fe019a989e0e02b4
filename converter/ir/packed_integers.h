// A matrix of integers of 4 or 8 bits as it is stored, worked on a byte at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "converter/ir/constant.h"

namespace sinter::convert {

class PackedIntegers {
 public:
  // nullopt: not int4, uint4, int8 or uint8, or empty.
  static std::optional<PackedIntegers> of(const ConstantPtr& constant);

  // The smallest and the largest integer.
  std::pair<int64_t, int64_t> range() const;
  // Every integer less `offset`, as the low bits of a type of as many bits.
  Bytes shifted(int64_t offset) const;
  bool four_bits() const { return bits_ == 4; }

 private:
  int64_t value(unsigned code) const {
    return sign_ && code >> (bits_ - 1) ? code - (int64_t{1} << bits_) : code;
  }
  ConstantPtr constant_;
  int bits_ = 8;
  bool sign_ = false;
};

}  // namespace sinter::convert

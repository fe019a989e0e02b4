#include "converter/ir/packed_integers.h"

#include <algorithm>
#include <array>

namespace sinter::convert {

std::optional<PackedIntegers> PackedIntegers::of(const ConstantPtr& constant) {
  const DType t = constant->dtype();
  if ((t != DType::kInt4 && t != DType::kUint4 && t != DType::kInt8 && t != DType::kUint8) ||
      constant->size() == 0)
    return std::nullopt;
  PackedIntegers packed;
  packed.constant_ = constant;
  packed.bits_ = bit_width(t);
  packed.sign_ = t == DType::kInt4 || t == DType::kInt8;
  return packed;
}

std::pair<int64_t, int64_t> PackedIntegers::range() const {
  std::array<bool, 256> bytes{}, codes{};
  const LoadedBytes loaded = constant_->load();
  // The last byte of an odd number of halves has one integer.
  const bool half = four_bits() && constant_->size() % 2 != 0;
  for (const std::byte b : loaded.bytes.first(loaded.bytes.size() - (half ? 1 : 0)))
    bytes[static_cast<uint8_t>(b)] = true;
  for (unsigned b = 0; b < 256; ++b) {
    if (!bytes[b]) continue;
    codes[four_bits() ? b & 15 : b] = true;
    if (four_bits()) codes[b >> 4] = true;
  }
  if (half) codes[static_cast<uint8_t>(loaded.bytes.back()) & 15] = true;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (unsigned code = 0; code < 256; ++code)
    if (codes[code]) low = std::min(low, value(code)), high = std::max(high, value(code));
  return {low, high};
}

Bytes PackedIntegers::shifted(int64_t offset) const {
  std::array<std::byte, 256> table{};
  const auto less = [&](unsigned code) {
    return static_cast<unsigned>(value(code) - offset) & ((1u << bits_) - 1);
  };
  for (unsigned b = 0; b < 256; ++b)
    table[b] = static_cast<std::byte>(four_bits() ? less(b & 15) | less(b >> 4) << 4 : less(b));
  const LoadedBytes loaded = constant_->load();
  Bytes result(loaded.bytes.size());
  std::transform(loaded.bytes.begin(), loaded.bytes.end(), result.begin(),
                 [&](std::byte b) { return table[static_cast<uint8_t>(b)]; });
  if (four_bits() && constant_->size() % 2 != 0) result.back() &= std::byte{15};
  return result;
}

}  // namespace sinter::convert

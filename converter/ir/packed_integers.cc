#include "converter/ir/packed_integers.h"

#include <algorithm>
#include <array>

namespace sinter::convert {

std::optional<PackedIntegers> PackedIntegers::of(const ConstantPtr& constant) {
  const WeightFormat* format = find_weight_format(constant->dtype(), 0, false);
  if (format == nullptr || !format->is_integer() || constant->size() == 0) return std::nullopt;
  PackedIntegers packed;
  packed.constant_ = constant;
  packed.format_ = *format;
  return packed;
}

std::pair<int64_t, int64_t> PackedIntegers::range() const {
  std::array<bool, 256> bytes{}, codes{};
  const LoadedBytes loaded = constant_->load();
  const unsigned mask = (1u << bits()) - 1;
  for (const std::byte b : loaded.bytes.first(loaded.bytes.size() - (rest() > 0 ? 1 : 0)))
    bytes[static_cast<uint8_t>(b)] = true;
  for (unsigned b = 0; b < 256; ++b)
    for (int at = 0; bytes[b] && at < 8; at += bits()) codes[b >> at & mask] = true;
  for (int64_t i = 0; i < rest(); ++i)
    codes[static_cast<unsigned>(loaded.bytes.back()) >> (i * bits()) & mask] = true;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (unsigned code = 0; code < 256; ++code)
    if (codes[code]) low = std::min(low, value(code)), high = std::max(high, value(code));
  return {low, high};
}

Bytes PackedIntegers::shifted(int64_t offset) const {
  std::array<std::byte, 256> table{};
  const unsigned mask = (1u << bits()) - 1;
  for (unsigned b = 0; b < 256; ++b)
    for (int at = 0; at < 8; at += bits())
      table[b] |=
          static_cast<std::byte>((static_cast<unsigned>(value(b >> at & mask) - offset) & mask) << at);
  const LoadedBytes loaded = constant_->load();
  Bytes result(loaded.bytes.size());
  std::transform(loaded.bytes.begin(), loaded.bytes.end(), result.begin(),
                 [&](std::byte b) { return table[static_cast<uint8_t>(b)]; });
  if (rest() > 0) result.back() &= static_cast<std::byte>((1u << (rest() * bits())) - 1);
  return result;
}

}  // namespace sinter::convert

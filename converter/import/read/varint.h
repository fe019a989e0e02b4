// Protobuf's variable-length integers: seven bits a byte, the lowest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sinter::convert {

inline void append_varint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

// Returns the integer at `*at`, which is moved behind it; nullopt: it does not end within `bytes`, or is too
// long.
inline std::optional<uint64_t> read_varint(std::span<const std::byte> bytes, size_t* at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (*at >= bytes.size()) return std::nullopt;
    const auto byte = static_cast<uint8_t>(bytes[(*at)++]);
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace sinter::convert

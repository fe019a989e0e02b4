// Casts to and from 16 bits convert many elements at once where all of them are ordinary; the definitions are
// those of one element.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "converter/ir/builder.h"
#include "runtime/core/float_formats.h"

namespace sinter::convert {
namespace {

template <class To, class From>
std::vector<To> cast(const std::vector<From>& items, DType from, DType to) {
  std::vector<ConstantPtr> result;
  const auto x = Constant::of<From>(from, {static_cast<int64_t>(items.size())}, items);
  EXPECT_TRUE(evaluate(CastAttrs{static_cast<int64_t>(to), 1}, {x}, 1, &result, false).ok());
  std::vector<To> out(items.size());
  const LoadedBytes loaded = result[0]->load();
  std::memcpy(out.data(), loaded.bytes.data(), loaded.bytes.size());
  return out;
}

TEST(Cast, EveryNumberOf16BitsIsWidened) {
  std::vector<uint16_t> codes;
  for (uint32_t code = 0; code < 0x10000; ++code) codes.push_back(static_cast<uint16_t>(code));
  const auto halves = cast<uint32_t>(codes, DType::kFloat16, DType::kFloat32),
             brains = cast<uint32_t>(codes, DType::kBFloat16, DType::kFloat32);
  size_t wrong = 0;
  for (const uint32_t code : codes) {
    wrong += halves[code] != std::bit_cast<uint32_t>(static_cast<float>(decode_float<kFloat16Format>(code)));
    wrong += brains[code] != std::bit_cast<uint32_t>(static_cast<float>(decode_float<kBFloat16Format>(code)));
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(Cast, NumbersAreRoundedToFloat16) {
  // Each half, the number between it and the next one, and the neighbours of both.
  std::vector<float> items;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<float>(decode_float<kFloat16Format>(code));
    const float step =
        std::isfinite(half) ? std::ldexp(1.0f, std::max(std::ilogb(half == 0 ? 1e-8f : half), -14) - 10) : 0;
    for (const float x : {half, half + step / 2})
      for (const float to : {-1e30f, x, 1e30f}) items.push_back(std::nextafter(x, to));
  }
  for (const float x : {1e10f, -1e10f, 1e-30f, std::numeric_limits<float>::denorm_min()}) items.push_back(x);
  const auto halves = cast<uint16_t>(items, DType::kFloat32, DType::kFloat16);
  size_t wrong = 0;
  for (size_t i = 0; i < items.size(); ++i) wrong += halves[i] != float16_bits(static_cast<double>(items[i]));
  EXPECT_EQ(wrong, 0u);
}

TEST(Cast, IntegersAreRoundedToFloat16) {
  std::vector<int32_t> items;
  for (int32_t i = -70000; i <= 70000; ++i) items.push_back(i);
  for (const int32_t i : {INT32_MIN, INT32_MAX, 1 << 24, -(1 << 24) - 1}) items.push_back(i);
  const auto halves = cast<uint16_t>(items, DType::kInt32, DType::kFloat16);
  size_t wrong = 0;
  for (size_t i = 0; i < items.size(); ++i) wrong += halves[i] != float16_bits(static_cast<double>(items[i]));
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace sinter::convert

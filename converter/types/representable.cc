#include "converter/types/representable.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sinter::convert {
namespace {

// From here on not every whole number is a float32.
constexpr double kExactFloat32 = 16777216.0;

double largest(DType t) {
  switch (t) {
    case DType::kFloat16:
      return 65504.0;
    case DType::kBFloat16:
      return 3.3895313892515355e38;
    case DType::kFloat32:
      return 3.4028234663852886e38;
    default:
      return HUGE_VAL;
  }
}

}  // namespace

DType computable(DType t) {
  switch (t) {
    case DType::kInt4:
    case DType::kInt2:
      return DType::kInt8;
    case DType::kUint4:
    case DType::kUint2:
      return DType::kUint8;
    default:
      return is_float8(t) || t == DType::kFloat4E2M1 ? DType::kFloat32 : t;
  }
}

std::optional<double> fraction_as_truth(const Constant& constant) {
  if (!is_float(constant.dtype())) return std::nullopt;
  for (const double v : constant.as_doubles())
    if (v != std::trunc(v)) return v;
  return std::nullopt;
}

bool survives(const Constant& constant, DType to, bool exact) {
  const DType from = constant.dtype();
  if (from == to || from == DType::kBool) return true;
  if (is_float(to)) {
    // Widening changes nothing: no need to check.
    if (to == DType::kFloat64 && (is_float(from) || bit_width(from) <= 32)) return true;
    if (to == DType::kFloat32 &&
        ((is_float(from) && !is_wide_float(from)) || (!is_float(from) && bit_width(from) <= 16)))
      return true;
    const auto same = [&](double v) {
      if (to == DType::kFloat64) return true;
      if (to == DType::kFloat32) return static_cast<double>(static_cast<float>(v)) == v;
      const std::vector<double> back = Constant::scalar(to, v)->as_doubles();
      return back[0] == v;
    };
    if (to == DType::kFloat64) {
      for (const int64_t v : constant.as_int64s()) {
        // 53 bits from the first to the last that is set (2^63 and more of uint64 are negative here).
        const auto bits = static_cast<uint64_t>(v);
        const uint64_t size = v < 0 && from != DType::kUint64 ? 0 - bits : bits;
        if (size != 0 && size >> std::countr_zero(size) >= uint64_t{1} << 53) return false;
      }
      return true;
    }
    if (bit_width(from) == 64 && is_integer(from) && !survives(constant, DType::kFloat64, true)) return false;
    for (const double v : constant.as_doubles()) {
      if (std::isnan(v) || std::isinf(v)) continue;
      if (std::abs(v) > largest(to)) return false;
      if (same(v)) continue;
      // A lone epsilon must not become 0, nor one of the few numbers that are left near it.
      if (constant.size() == 1 && std::abs(v) < std::numeric_limits<float>::min()) return false;
      if (exact || !is_float(from) || std::abs(v) >= kExactFloat32) return false;
    }
    return true;
  }
  if ((!is_float(from) && !is_integer(from) && !is_sub_byte(from)) || byte_width(to) == 0 ||
      to == DType::kBool)
    return false;
  if (is_float(from)) {
    for (const double v : constant.as_doubles()) {
      if (!(v == std::trunc(v)) || std::abs(v) > 9e15) return false;
      if (Constant::scalar_int(to, static_cast<int64_t>(v))->as_int64s()[0] != static_cast<int64_t>(v))
        return false;
    }
    return true;
  }
  // Read as int64: the upper half of uint64 is negative.
  const std::vector<int64_t> items = constant.as_int64s();
  if (items.empty()) return true;
  if (from == DType::kUint64 || to == DType::kUint64)
    if (*std::min_element(items.begin(), items.end()) < 0) return false;
  const auto [low, high] = std::minmax_element(items.begin(), items.end());
  return Constant::scalar_int(to, *low)->as_int64s()[0] == *low &&
         Constant::scalar_int(to, *high)->as_int64s()[0] == *high;
}

}  // namespace sinter::convert

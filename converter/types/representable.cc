#include "converter/types/representable.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "converter/ir/builder.h"

namespace sinter::convert {
namespace {

// The magnitude from which on not every whole number is a float32.
constexpr double kExactFloat32 = 16777216.0;

// The magnitude up to which every whole number is one of the type's; 0: not listed.
int64_t exact_integers(DType t) { return t == DType::kFloat16 ? 2048 : t == DType::kBFloat16 ? 256 : 0; }

// Returns `values` as they are once rounded to a type that nothing computes in.
std::vector<double> rounded(std::span<const double> values, DType to) {
  const ConstantPtr wide =
      Constant::of<double>(DType::kFloat64, {static_cast<int64_t>(values.size())}, values);
  std::vector<ConstantPtr> narrow;
  if (!evaluate(CastAttrs{static_cast<int64_t>(to), 1}, {wide}, 1, &narrow).ok())
    throw std::logic_error("a cast of float64 failed");
  return narrow[0]->as_doubles();
}

// survives() for floating-point `to` other than float64.
bool survives_in_float(const Constant& constant, DType to, bool exact) {
  constexpr size_t kPiece = 4096;  // values that are rounded at a time
  const DType from = constant.dtype();
  if (!is_float(from) && from != DType::kUint64 && exact_integers(to) > 0) {
    const std::vector<int64_t> items = constant.as_int64s();
    const int64_t end = exact_integers(to);
    if (std::all_of(items.begin(), items.end(), [&](int64_t v) { return -end <= v && v <= end; }))
      return true;
  }
  const std::vector<double> values = constant.as_doubles();
  std::vector<double> back;
  for (size_t i = 0; i < values.size(); ++i) {
    if (to != DType::kFloat32 && i % kPiece == 0)
      back = rounded(std::span(values).subspan(i, std::min(kPiece, values.size() - i)), to);
    const double v = values[i];
    if (std::isnan(v) || std::isinf(v)) continue;
    if (std::abs(v) > largest_number(to)) return false;
    if ((to == DType::kFloat32 ? static_cast<double>(static_cast<float>(v)) : back[i % kPiece]) == v)
      continue;
    // A lone epsilon must not become 0, nor one of the few numbers that are left near it.
    if (values.size() == 1 && std::abs(v) < std::numeric_limits<float>::min()) return false;
    if (exact || !is_float(from) || std::abs(v) >= kExactFloat32) return false;
  }
  return true;
}

// Returns whether an integer type holds all numbers from `low` to `high`.
bool holds(DType to, int64_t low, int64_t high) {
  return Constant::scalar_int(to, low)->as_int64s()[0] == low &&
         Constant::scalar_int(to, high)->as_int64s()[0] == high;
}

}  // namespace

double largest_number(DType t) {
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
    return survives_in_float(constant, to, exact);
  }
  if ((!is_float(from) && !is_integer(from) && !is_sub_byte(from)) || byte_width(to) == 0 ||
      to == DType::kBool)
    return false;
  if (is_float(from)) {
    const std::vector<double> values = constant.as_doubles();
    if (values.empty()) return true;
    for (const double v : values)
      if (!(v == std::trunc(v)) || std::abs(v) > 9e15) return false;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return holds(to, static_cast<int64_t>(*low), static_cast<int64_t>(*high));
  }
  // Read as int64: the upper half of uint64 is negative.
  const std::vector<int64_t> items = constant.as_int64s();
  if (items.empty()) return true;
  if (from == DType::kUint64 || to == DType::kUint64)
    if (*std::min_element(items.begin(), items.end()) < 0) return false;
  const auto [low, high] = std::minmax_element(items.begin(), items.end());
  return holds(to, *low, *high);
}

}  // namespace sinter::convert

#include "converter/import/read/given_constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "converter/ir/builder.h"

namespace sinter::convert {

namespace {

// Elements that a number is written out to.
constexpr int64_t kMostFilled = int64_t{1} << 24;

// Does every dimension that the model fixes have this size?
bool fits(const Dims& dims, const ImportedValueInfo& declared) {
  if (!declared.has_shape) return true;
  if (dims.size() != declared.dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (declared.dims[i].symbol.empty() && declared.dims[i].value >= 0 && declared.dims[i].value != dims[i])
      return false;
  return true;
}

std::string declared_shape(const ImportedValueInfo& declared) {
  std::string text;
  for (const ImportedDim& d : declared.dims)
    text += (text.empty() ? "" : ",") + (!d.symbol.empty() ? d.symbol
                                         : d.value < 0     ? "?"
                                                           : fmt::format("{}", d.value));
  return "[" + text + "]";
}

// The code of a number in a sub-byte type, or -1.
int code_of(DType dtype, double x) {
  if (dtype == DType::kFloat4E2M1) {
    constexpr std::array<double, 8> kMagnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const auto* at = std::find(kMagnitudes.begin(), kMagnitudes.end(), std::abs(x));
    if (at == kMagnitudes.end()) return -1;
    return static_cast<int>(at - kMagnitudes.begin()) | (std::signbit(x) ? 8 : 0);
  }
  const int bits = bit_width(dtype);
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  const int low = is_signed ? -(1 << (bits - 1)) : 0;
  if (std::trunc(x) != x || x < low || x >= low + (1 << bits)) return -1;
  return static_cast<int>(x) & ((1 << bits) - 1);
}

ConstantPtr packed(const ConstantPtr& array, DType dtype) {
  const std::vector<double> numbers = array->as_doubles();
  const size_t bits = static_cast<size_t>(bit_width(dtype));
  Bytes bytes((numbers.size() * bits + 7) / 8);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int code = code_of(dtype, numbers[i]);
    if (code < 0) return nullptr;
    bytes[i * bits / 8] |= static_cast<std::byte>(code << (i * bits % 8));
  }
  return Constant::owned(dtype, array->dims(), std::move(bytes));
}

// Returns the declared shape, filled with one number of the declared type.
ConstantPtr filled(double number, const ImportedValueInfo& declared, std::string* problem) {
  Dims dims;
  int64_t count = 1;
  for (const ImportedDim& d : declared.dims) {
    if (!d.symbol.empty() || d.value < 0) {
      *problem =
          fmt::format("one number does not say how long the dimensions of {} are", declared_shape(declared));
      return nullptr;
    }
    dims.push_back(d.value);
    if (__builtin_mul_overflow(count, d.value, &count) || count > kMostFilled) {
      *problem = fmt::format("one number fills at most {} elements", kMostFilled);
      return nullptr;
    }
  }
  const std::vector<double> numbers(static_cast<size_t>(count), number);
  const ConstantPtr wide = Constant::of<double>(DType::kFloat64, dims, numbers);
  std::vector<ConstantPtr> cast;
  if (is_sub_byte(declared.dtype)) {
    if (ConstantPtr done = packed(wide, declared.dtype)) return done;
  } else if (evaluate(CastAttrs{static_cast<int64_t>(declared.dtype), 1}, {wide}, 1, &cast).ok()) {
    const bool holds = is_float(declared.dtype) || cast[0]->as_doubles() == numbers;
    if (holds) return cast[0];
  }
  *problem = fmt::format("{} is not a number of {}", number, dtype_name(declared.dtype));
  return nullptr;
}

}  // namespace

ConstantPtr given_constant(const ConstantPtr& array, const ImportedValueInfo& declared,
                           std::string* problem) {
  const DType have = array->dtype(), want = declared.dtype;
  if (is_number(*array) && want != DType::kNone && declared.has_shape &&
      (want != have || !declared.dims.empty()))
    return filled(array->as_doubles()[0], declared, problem);
  if (!fits(array->dims(), declared)) {
    *problem = fmt::format("the array is {}, the model declares {}", to_string(have, array->dims()),
                           declared_shape(declared));
    return nullptr;
  }
  if (want == DType::kNone || have == want) return array;
  const bool bits =
      (want == DType::kBFloat16 && have == DType::kUint16) || (is_float8(want) && have == DType::kUint8);
  if (bits) {
    const LoadedBytes loaded = array->load();
    return Constant::owned(want, array->dims(), Bytes(loaded.bytes.begin(), loaded.bytes.end()));
  }
  if (have == DType::kFloat32 && (want == DType::kBFloat16 || is_float8(want))) {
    std::vector<ConstantPtr> cast;
    if (evaluate(CastAttrs{static_cast<int64_t>(want), 1}, {array}, 1, &cast).ok()) return cast[0];
  }
  const bool small_float = want == DType::kFloat4E2M1 && have == DType::kFloat32;
  const bool small_integer =
      is_sub_byte(want) && want != DType::kFloat4E2M1 && (have == DType::kInt8 || have == DType::kUint8);
  if (small_float || small_integer) {
    if (ConstantPtr done = packed(array, want)) return done;
    *problem = fmt::format("a value of the array does not fit {}", dtype_name(want));
    return nullptr;
  }
  *problem = fmt::format("the array is {}, the model declares {}", dtype_name(have), dtype_name(want));
  return nullptr;
}

}  // namespace sinter::convert

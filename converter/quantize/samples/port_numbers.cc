#include "converter/quantize/samples/port_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

constexpr float kLow = -128, kHigh = 127;

}  // namespace

ConstantPtr as_integers(const ConstantPtr& numbers, const IntegerScale& of, const std::string& input) {
  const auto scale = static_cast<float>(of.scale), zero = static_cast<float>(of.zero_point);
  std::vector<int8_t> integers;
  int64_t far = 0;
  float farthest = 0;
  for (const double number : numbers->as_doubles()) {
    const auto x = static_cast<float>(number);
    if (std::isnan(x)) throw DataError(fmt::format("input '{}' contains NaN, which no integer is", input));
    const float q = std::nearbyint(x / scale) + zero;
    if (q < 2 * kLow - kHigh || q > 2 * kHigh - kLow) ++far, farthest = x;
    integers.push_back(static_cast<int8_t>(std::clamp(q, kLow, kHigh)));
  }
  if (2 * far > numbers->size())
    throw DataError(
        fmt::format("input '{}' takes numbers from {:g} to {:g}, but most are far outside the range, such as "
                    "{:g}; scale the data as in training (pictures and sounds: --mean and --scale)",
                    input, (kLow - zero) * scale, (kHigh - zero) * scale, farthest));
  return Constant::of<int8_t>(DType::kInt8, numbers->dims(), integers);
}

ConstantPtr as_numbers(const ConstantPtr& integers, const IntegerScale& of) {
  std::vector<float> numbers;
  for (const double q : integers->as_doubles())
    numbers.push_back(static_cast<float>(q - static_cast<double>(of.zero_point)) *
                      static_cast<float>(of.scale));
  return Constant::of<float>(DType::kFloat32, integers->dims(), numbers);
}

}  // namespace sinter::convert

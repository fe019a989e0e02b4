#include "converter/quantize/samples/made_up_inputs.h"

#include <cmath>
#include <vector>

#include "converter/diagnostics/errors.h"
#include "converter/ir/builder.h"

namespace sinter::convert {

double MadeUpInputs::number() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state_ >> 11) * 0x1p-53;
}

ConstantPtr MadeUpInputs::next(DType dtype, const Dims& dims, double low, double high) {
  std::vector<float> items(static_cast<size_t>(element_count(dims)));
  for (float& item : items) {
    const double u = number();
    const double integer = integers_ == Integers::kOnes    ? 1
                           : integers_ == Integers::kZeros ? 0
                           : dtype == DType::kUint8        ? std::floor(u * 256)
                                                           : std::floor(u * 2);
    item = static_cast<float>(is_float(dtype) ? low + u * (high - low) : integer);
  }
  const ConstantPtr floats = Constant::of<float>(DType::kFloat32, dims, items);
  if (dtype == DType::kFloat32) return floats;
  std::vector<ConstantPtr> cast;
  if (!evaluate(CastAttrs{static_cast<int64_t>(dtype), 1}, {floats}, 1, &cast).ok())
    throw DataError("an input cannot be generated");
  return cast[0];
}

}  // namespace sinter::convert

#include "converter/quantize/samples/usual_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace sinter::convert {
namespace {

constexpr UsualScale kScales[] = {
    {"0 to 1", "--scale 1/255", 0, 1 / 255.0},
    {"0 to 255", "--scale 1", 0, 1},
    {"-1 to 1", "--mean 127.5 --scale 1/127.5", 127.5, 1 / 127.5},
    {"mean 0 and deviation 1", "--mean 123.675,116.28,103.53 --scale 1/58.395,1/57.12,1/57.375", 116.5,
     1 / 57.6}};
// Numbers that were divided by 255 twice: scales to come from, not to go to.
constexpr UsualScale kDividedTwice = {"0 to 1/255", "", 0, 1 / 65025.0};
constexpr UsualScale kSignedDividedTwice = {"-1/255 to 1/255", "", 127.5, 1 / (127.5 * 255)};

// Null: data of this reach has none of these scales.
const UsualScale* scale_of(Reach reach) {
  const auto [low, high] = reach;
  if (low >= 0 && high > 16 && high <= 255) return &kScales[1];
  if (low >= 0 && high > 0.1 && high <= 1.001) return &kScales[0];
  if (low >= 0 && high > 0.1 / 255 && high <= 1.001 / 255) return &kDividedTwice;
  if (low >= -1.001 / 255 && low < -0.2 / 255 && high <= 1.001 / 255) return &kSignedDividedTwice;
  if (low >= -1.001 && low < -0.2 && high <= 1.001) return &kScales[2];
  return low >= -3.5 && low < -1 && high > 1 && high <= 3.5 ? &kScales[3] : nullptr;
}

ConstantPtr moved(const ConstantPtr& array, double factor, double offset) {
  if (array->dtype() != DType::kFloat32) return array;
  const LoadedBytes loaded = array->load();
  Bytes bytes(loaded.bytes.begin(), loaded.bytes.end());
  auto* x = reinterpret_cast<float*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(float); ++i)
    x[i] = static_cast<float>(static_cast<double>(x[i]) * factor + offset);
  return Constant::owned(array->dtype(), array->dims(), std::move(bytes));
}

}  // namespace

Reach reach_of(const std::vector<Sample>& samples) {
  Reach reach{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const Sample& sample : samples)
    for (const ConstantPtr& array : sample) {
      if (array->dtype() != DType::kFloat32) continue;
      for (const double x : array->as_doubles())
        reach.low = std::min(reach.low, x), reach.high = std::max(reach.high, x);
    }
  return reach;
}

std::vector<const UsualScale*> other_scales(Reach reach) {
  const UsualScale* now = scale_of(reach);
  std::vector<const UsualScale*> others;
  for (const UsualScale& scale : kScales)
    if (now != nullptr && &scale != now) others.push_back(&scale);
  return others;
}

std::vector<Sample> rescaled(const std::vector<Sample>& samples, Reach reach, const UsualScale& to) {
  const UsualScale& from = *scale_of(reach);
  std::vector<Sample> result;
  for (const Sample& sample : samples) {
    result.emplace_back();
    for (const ConstantPtr& array : sample)
      result.back().push_back(moved(array, to.scale / from.scale, (from.mean - to.mean) * to.scale));
  }
  return result;
}

std::vector<Sample> multiplied(const std::vector<Sample>& samples, double factor) {
  std::vector<Sample> result;
  for (const Sample& sample : samples) {
    result.emplace_back();
    for (const ConstantPtr& array : sample) result.back().push_back(moved(array, factor, 0));
  }
  return result;
}

std::string names_of_scales(const std::vector<const UsualScale*>& scales) {
  std::vector<std::string> names;
  for (const UsualScale* scale : scales)
    names.push_back(fmt::format("{} (pictures: {})", scale->name, scale->flags));
  return fmt::format("{}", fmt::join(names, ", or "));
}

}  // namespace sinter::convert

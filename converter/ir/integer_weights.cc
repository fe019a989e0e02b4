#include "converter/ir/integer_weights.h"

#include <algorithm>
#include <cmath>

#include "converter/ir/builder.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/low_bit_parts.h"
#include "converter/ir/weight_memory.h"

namespace sinter::convert {
namespace {

// Returns a broadcast operand's number for each channel; nothing if it differs within a channel.
std::optional<std::vector<double>> per_channel(const ConstantPtr& c, const Dims& dims, int64_t axis,
                                               double absent) {
  const auto n = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
  if (!c) return std::vector<double>(n, absent);
  const std::vector<double> v = c->as_doubles();
  if (v.size() == 1) return std::vector<double>(n, v[0]);
  if (c->dims().size() > dims.size()) return std::nullopt;
  const int64_t own = axis - static_cast<int64_t>(dims.size() - c->dims().size());
  if (own < 0) return std::nullopt;
  const Channels channels(c->dims(), own);
  if (channels.count() != n) return std::nullopt;
  std::vector<double> result(n, std::nan(""));
  for (size_t i = 0; i < v.size(); ++i) {
    double& r = result[channels.of(i)];
    if (!std::isnan(r) && r != v[i]) return std::nullopt;
    r = v[i];
  }
  return result;
}

constexpr double kRounding = 0x1p-21;  // the relative rounding of the scale and of the product

// Returns IntegerWeights without its constant and magnitudes; the integers of the constant go to `items`.
std::optional<IntegerWeights> from_parts(const LowBitParts& parts, const std::vector<double>& w,
                                         const Dims& dims, int64_t axis, std::vector<int8_t>* items) {
  if (parts.q->dims() != dims || !parts.table.empty()) return std::nullopt;
  const auto scales = per_channel(parts.s, dims, axis, 1), zeros = per_channel(parts.z, dims, axis, 0);
  if (!scales || !zeros) return std::nullopt;
  const std::vector<int64_t> q = parts.q->as_int64s();
  if (q.size() != w.size()) return std::nullopt;
  // The integers have to be within 8 bits after a shift by the same amount.
  const auto [low, high] = std::minmax_element(q.begin(), q.end());
  int64_t move = 0;
  if (!q.empty() && (*low < -128 || *high > 127)) move = 128;
  if (!q.empty() && (*low - move < -128 || *high - move > 127)) return std::nullopt;
  IntegerWeights result;
  const Channels channels(dims, axis);
  bool zero_points = false;
  for (double z : *zeros) {
    z -= static_cast<double>(move);
    if (z != std::floor(z) || z < -128 || z > 127) return std::nullopt;
    zero_points |= z != 0;
    result.zeros.push_back(static_cast<int8_t>(z));
  }
  if (!zero_points) result.zeros.clear();
  items->resize(q.size());
  for (size_t i = 0; i < q.size(); ++i) {
    const size_t c = channels.of(i);
    const double scale = (*scales)[c];
    if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
    const double value = (static_cast<double>(q[i]) - (*zeros)[c]) * scale;
    if (std::fabs(value - w[i]) > kRounding * std::fabs(value)) return std::nullopt;
    (*items)[i] = static_cast<int8_t>(q[i] - move);
    result.wide |= (*items)[i] == -128;
  }
  result.scales = *scales;
  return result;
}

std::optional<IntegerWeights> from_values(const std::vector<double>& w, const Dims& dims, int64_t axis,
                                          std::vector<int8_t>* integers) {
  const Channels channels(dims, axis);
  if (!std::all_of(w.begin(), w.end(), [](double x) { return std::isfinite(x); })) return std::nullopt;
  IntegerWeights result;
  integers->assign(w.size(), 0);
  result.scales.resize(channels.count());
  result.zeros.resize(channels.count());
  bool zero_points = false;
  std::vector<double> items;
  for (size_t c = 0; c < channels.count(); ++c) {
    items.clear();
    channels.each(c, w.size(), [&](size_t i) { items.push_back(w[i]); });
    const auto [low, high] = std::minmax_element(items.begin(), items.end());
    const double largest = items.empty() ? 0 : std::max(std::fabs(*low), std::fabs(*high));
    if (largest == 0) continue;
    const int steps = whole_steps(items, largest);
    if (steps == 0) return std::nullopt;
    const double scale = largest / steps, least = std::nearbyint(*low / scale),
                 most = std::nearbyint(*high / scale);
    result.scales[c] = scale;
    double zero = 0;
    if (least < -127 || most > 127) {
      // The zero point makes the smallest integer -128, or the largest 127.
      zero = least < -127 ? std::min(-128 - least, 127.0) : 127 - most;
      if (most + zero > 127 || least + zero < -128 || zero < -128) return std::nullopt;
      result.zeros[c] = static_cast<int8_t>(zero);
      zero_points = true;
    }
    channels.each(c, w.size(), [&](size_t i) {
      const auto q = static_cast<int8_t>(nearest_whole(w[i] / scale) + zero);
      (*integers)[i] = q;
      result.wide |= q == -128;
    });
  }
  if (!zero_points) result.zeros.clear();
  return result;
}

void add_magnitudes(IntegerWeights& w, const std::vector<int8_t>& q, const Dims& dims, int64_t axis) {
  const Channels channels(dims, axis);
  w.magnitudes.assign(channels.count(), 0);
  for (size_t c = 0; c < channels.count(); ++c) {
    const int zero = w.zeros.empty() ? 0 : w.zeros[c];
    int64_t sum = 0;
    channels.each(c, q.size(), [&](size_t i) { sum += std::abs(q[i] - zero); });
    w.magnitudes[c] = static_cast<double>(sum);
  }
}

// The integers of one constant along one axis.
struct FoundIntegers {
  static constexpr int kKind = 0;
  std::shared_ptr<const IntegerWeights> weights;  // null: it has none
  size_t bytes() const { return weights ? weights->q->byte_size() + weights->scales.size() * 17 : 0; }
};

struct FoundSteps {
  static constexpr int kKind = 1;
  std::vector<double> steps;  // the step of each channel
  ConstantPtr rounded;
  size_t bytes() const { return steps.size() * sizeof(double) + rounded->byte_size(); }
};

ConstantPtr rounded_to(const std::vector<double>& w, const Dims& dims, const Channels& channels,
                       const std::vector<double>& steps) {
  Bytes bytes(w.size() * sizeof(float));
  float* const rounded = reinterpret_cast<float*>(bytes.data());
  for (size_t c = 0; c < channels.count(); ++c)
    if (const double step = steps[c]; step > 0)
      channels.each(c, w.size(),
                    [&](size_t i) { rounded[i] = static_cast<float>(nearest_whole(w[i] / step) * step); });
  return Constant::owned(DType::kFloat32, dims, std::move(bytes));
}

}  // namespace

int whole_steps(const std::vector<double>& items, double largest) {
  for (int steps = 1; steps <= 255; ++steps) {
    const double scale = largest / steps;
    const bool whole = std::all_of(items.begin(), items.end(), [&](double x) {
      const double q = x / scale;
      return std::fabs(q - nearest_whole(q)) <= kRounding * std::max(1.0, std::fabs(q));
    });
    if (whole) return steps;
  }
  return 0;
}

std::shared_ptr<const IntegerWeights> integer_weights(const ConstantPtr& constant, int64_t axis) {
  return WeightMemory::of<FoundIntegers>(
             constant, axis,
             [&] {
               const std::vector<double> w = constant->as_doubles();
               const Dims& dims = constant->dims();
               std::optional<IntegerWeights> found;
               std::vector<int8_t> q;
               for (const LowBitParts& parts : low_bit_parts(constant))
                 if (found = from_parts(parts, w, dims, axis, &q); found) break;
               if (!found) found = from_values(w, dims, axis, &q);
               if (!found) return FoundIntegers{};
               add_magnitudes(*found, q, dims, axis);
               found->q = Constant::of<int8_t>(DType::kInt8, dims, q);
               return FoundIntegers{std::make_shared<const IntegerWeights>(std::move(*found))};
             })
      ->weights;
}

std::optional<IntegerWeights> byte_weights(const ConstantPtr& numbers) {
  const auto range = integer_range(*numbers);
  if (!range || range->high - range->low > 255) return std::nullopt;
  const int64_t less = std::clamp<int64_t>(0, range->high - 127, range->low + 128);
  if (less < -127 || less > 128) return std::nullopt;
  IntegerWeights w;
  if (less != 0) w.zeros.push_back(static_cast<int8_t>(-less));
  ConstantPtr at_zero = numbers;
  if (less != 0) at_zero = evaluated(SubAttrs{}, {numbers, Constant::scalar_int(DType::kInt32, less)});
  if (at_zero != nullptr) w.q = evaluated(CastAttrs{static_cast<int64_t>(DType::kInt8), 1}, {at_zero});
  if (w.q == nullptr) return std::nullopt;
  const LoadedBytes loaded = w.q->load();
  w.wide = std::find(loaded.bytes.begin(), loaded.bytes.end(), std::byte{0x80}) != loaded.bytes.end();
  return w;
}

ConstantPtr in_steps(const ConstantPtr& constant, int64_t axis, const std::vector<double>& least) {
  const Channels channels(constant->dims(), axis);
  const auto own = WeightMemory::of<FoundSteps>(constant, axis, [&] {
    const std::vector<double> w = constant->as_doubles();
    FoundSteps found;
    std::vector<double> items;
    for (size_t c = 0; c < channels.count(); ++c) {
      items.clear();
      double largest = 0;
      channels.each(c, w.size(), [&](size_t i) {
        items.push_back(w[i]);
        largest = std::max(largest, std::fabs(w[i]));
      });
      const int whole = largest > 0 && std::isfinite(largest) ? whole_steps(items, largest) : 0;
      found.steps.push_back(largest / (whole > 0 && whole <= 127 ? whole : 127));
    }
    found.rounded = rounded_to(w, constant->dims(), channels, found.steps);
    return found;
  });
  std::vector<double> steps = own->steps;
  for (size_t c = 0; c < least.size(); ++c) steps[c] = std::max(steps[c], least[c]);
  return steps == own->steps ? own->rounded
                             : rounded_to(constant->as_doubles(), constant->dims(), channels, steps);
}

}  // namespace sinter::convert

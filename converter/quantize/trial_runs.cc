#include "converter/quantize/trial_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/report/errors.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostTrialBytes = size_t{1} << 30;

// Repeatable numbers in [0, 1).
class Numbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = 1;
};

ConstantPtr input(const Value& v, double low, double high, Numbers& numbers) {
  std::vector<float> items(static_cast<size_t>(element_count(v.dims)));
  const bool bytes = v.dtype == DType::kUint8;
  for (float& item : items) {
    const double u = numbers.next();
    item = static_cast<float>(is_float(v.dtype) ? low + u * (high - low)
                              : bytes           ? std::floor(u * 256)
                                                : std::floor(u * 2));
  }
  const ConstantPtr floats = Constant::of<float>(DType::kFloat32, v.dims, items);
  if (v.dtype == DType::kFloat32) return floats;
  std::vector<ConstantPtr> cast;
  if (!evaluate(CastAttrs{static_cast<int64_t>(v.dtype), 1}, {floats}, 1, &cast).ok())
    throw DataError("an input cannot be made up");
  return cast[0];
}

double largest(const TensorView& v) {
  double most = 0;
  const float* p = v.as<float>();
  for (int64_t i = 0; i < v.size(); ++i)
    if (const double size = std::fabs(p[i]); !(size <= most))
      most = std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
  return most;
}

}  // namespace

std::map<ValueId, TrialRange> try_out(const Graph& graph, const RunnerOptions& options) {
  size_t bytes = 0;
  for (const Value& v : graph.values)
    if (v.constant) bytes += v.constant->byte_size();
  if (bytes > kMostTrialBytes) return {};
  std::map<ValueId, TrialRange> ranges;
  std::vector<ValueId> values;
  for (const ValueId id : observable_values(graph))
    if (graph.value(id).dtype == DType::kFloat32) values.push_back(id);
  RunnerOptions bounded = options;
  bounded.most_bytes = kMostTrialBytes;
  try {
    GraphRunner runner(graph, bounded);
    runner.watch(values);
    Numbers numbers;
    for (const bool unit : {true, false}) {
      Sample sample;
      for (const ValueId id : graph.inputs)
        sample.push_back(input(graph.value(id), unit ? -1 : 0, unit ? 1 : 255, numbers));
      runner.run(sample, [&](ValueId id, const TensorView& view) {
        if (view.dtype == DType::kFloat32) (unit ? ranges[id].unit : ranges[id].bytes) = largest(view);
      });
    }
  } catch (const DataError&) {
    return {};
  }
  return ranges;
}

}  // namespace sinter::convert

#include <algorithm>
#include <cmath>

#include "converter/quantize/quantize.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostTried = 64;  // samples that the result is measured with

std::vector<double> numbers(const TensorView& v) {
  std::vector<double> result;
  if (v.dtype == DType::kFloat32)
    for (int64_t i = 0; i < v.size(); ++i) result.push_back(static_cast<double>(v.as<float>()[i]));
  return result;
}

}  // namespace

std::vector<OutputNoise> measure_noise(const Graph& exact, const Graph& rounded, SampleSource& samples,
                                       const QuantizeOptions& options, int64_t* tried) {
  GraphRunner a(exact, options.runner), b(rounded, options.runner);
  const size_t count = exact.outputs.size();
  std::vector<double> signal(count, 0), noise(count, 0);
  samples.rewind();
  const int64_t total = samples.count() < 0 ? kMostTried : std::min(samples.count(), kMostTried);
  Sample sample;
  for (*tried = 0; *tried < kMostTried && samples.next(&sample); ++*tried) {
    a.run(sample);
    b.run(sample);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<double> x = numbers(a.output(i)), y = numbers(b.output(i));
      for (size_t k = 0; k < x.size() && k < y.size(); ++k) {
        signal[i] += x[k] * x[k];
        noise[i] += (x[k] - y[k]) * (x[k] - y[k]);
      }
    }
    if (options.progress) options.progress("measuring", *tried + 1, total);
  }
  std::vector<OutputNoise> result;
  for (size_t i = 0; i < count; ++i) {
    const double db = noise[i] == 0 ? 999 : signal[i] == 0 ? -999 : 10 * std::log10(signal[i] / noise[i]);
    result.push_back({exact.value(exact.outputs[i]).name, db});
  }
  return result;
}

}  // namespace sinter::convert

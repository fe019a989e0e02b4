#include "converter/quantize/trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/quantize/sample_list.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostKeptBytes = 8 << 20;
constexpr int64_t kFewest = 4, kMost = 64;
constexpr size_t kFewestHalved = 8;
constexpr float kHalfEven = 12582912.0f;  // 1.5 * 2^23: adding it leaves no place for a fraction

std::vector<float> floats(const TensorView& v) {
  std::vector<float> result;
  const auto n = static_cast<size_t>(v.size());
  const auto copy = [&](const auto* p) {
    for (size_t i = 0; i < n; ++i) result.push_back(static_cast<float>(p[i]));
  };
  switch (v.dtype) {
    case DType::kFloat32:
      result.assign(v.as<float>(), v.as<float>() + n);
      break;
    case DType::kFloat64:
      copy(v.as<double>());
      break;
    case DType::kInt64:
      copy(v.as<int64_t>());
      break;
    case DType::kInt32:
      copy(v.as<int32_t>());
      break;
    case DType::kUint8:
      copy(v.as<uint8_t>());
      break;
    case DType::kInt8:
      copy(v.as<int8_t>());
      break;
    case DType::kBool:
      copy(v.as<uint8_t>());
      break;
    default: {
      const Bytes bytes(v.data, v.data + v.dense_bytes());
      const auto wide =
          Constant::owned(v.dtype, Dims(v.shape().begin(), v.shape().end()), bytes)->as_doubles();
      for (const double x : wide) result.push_back(static_cast<float>(x));
    }
  }
  return result;
}

// Squares of an output's exact numbers, and of what another one differs by.
void add_squares(const std::vector<float>& x, const TensorView& other, double* signal, double* noise) {
  const bool counts = is_float(other.dtype);
  const std::vector<float> y = floats(other);
  for (size_t k = 0; k < x.size() && k < y.size(); ++k) {
    const double a = static_cast<double>(x[k]), d = a - static_cast<double>(y[k]);
    if (!std::isfinite(a)) continue;
    *signal += counts ? a * a : 1;
    *noise += counts ? (std::isfinite(d) ? d * d : std::numeric_limits<double>::infinity()) : d != 0;
  }
}

Noise ratio(const std::vector<double>& signal, const std::vector<double>& noise) {
  Noise result;
  for (size_t i = 0; i < signal.size(); ++i)
    result.outputs.push_back(noise[i] <= 0    ? 0
                             : signal[i] <= 0 ? std::numeric_limits<double>::infinity()
                                              : noise[i] / signal[i]);
  return result;
}

int64_t bytes_of(const Graph& graph, const std::vector<ValueId>& ids) {
  int64_t bytes = 0;
  for (const ValueId id : ids) bytes += element_count(graph.value(id).dims) * 4;
  return bytes;
}

}  // namespace

double to_db(double noise) { return noise <= 0 ? 999 : std::max(-999.0, -10 * std::log10(noise)); }

double Noise::worst() const {
  return outputs.empty() ? 0 : *std::max_element(outputs.begin(), outputs.end());
}
double Noise::worst_db() const { return to_db(worst()); }

Noise& Noise::operator+=(const Noise& other) {
  if (outputs.empty()) outputs.assign(other.outputs.size(), 0);
  for (size_t i = 0; i < outputs.size() && i < other.outputs.size(); ++i) outputs[i] += other.outputs[i];
  return *this;
}

Noise measure_all(const Graph& exact, const Graph& candidate, SampleSource& samples,
                  const RunnerOptions& options, const std::function<void(int64_t, int64_t)>& progress,
                  int64_t* count) {
  GraphRunner a(exact, options), b(candidate, options);
  std::vector<double> signal(exact.outputs.size(), 0), noise(exact.outputs.size(), 0);
  *count = 0;
  samples.rewind();
  for (Sample sample; samples.next(&sample);) {
    a.run(sample), b.run(sample);
    for (size_t i = 0; i < signal.size(); ++i)
      add_squares(floats(a.output(i)), b.output(i), &signal[i], &noise[i]);
    ++*count;
    if (progress) progress(*count, samples.count());
  }
  return ratio(signal, noise);
}

KeepingSource::KeepingSource(SampleSource& source, size_t most) : source_(source), most_(most) {}

bool KeepingSource::next(Sample* sample) {
  if (!source_.next(sample)) return false;
  const int64_t at = seen_++, total = source_.count(), most = static_cast<int64_t>(most_);
  if (total >= 0) {
    // As many as may be, evenly spread.
    const int64_t wanted = std::min(total, most);
    if (at * wanted / total != (at - 1) * wanted / total || at == 0) kept_.push_back(*sample);
    return true;
  }
  if (at % stride_ != 0) return true;
  if (kept_.size() == most_) {
    // A stream goes on: every second one stays.
    size_t n = 0;
    for (size_t i = 0; i < kept_.size(); i += 2) kept_[n++] = std::move(kept_[i]);
    kept_.resize(n);
    stride_ *= 2;
    if (at % stride_ != 0) return true;
  }
  kept_.push_back(*sample);
  return true;
}

void KeepingSource::rewind() {
  source_.rewind();
  kept_.clear();
  seen_ = 0;
}

size_t Trials::most_samples(const Graph& exact) {
  const int64_t each = std::max<int64_t>(1, bytes_of(exact, exact.inputs) + bytes_of(exact, exact.outputs));
  return static_cast<size_t>(std::clamp(kMostKeptBytes / each, kFewest, kMost));
}

Trials::Trials(const Graph& exact, std::vector<Sample> samples, RunnerOptions options)
    : options_(std::move(options)), samples_(std::move(samples)), outputs_(exact.outputs.size()) {
  GraphRunner runner(exact, options_);
  for (const Sample& sample : samples_) {
    runner.run(sample);
    auto& row = exact_.emplace_back();
    for (size_t i = 0; i < outputs_; ++i) row.push_back(floats(runner.output(i)));
  }
}

void Trials::add(const GraphRunner& runner, size_t sample, std::vector<double>* signal,
                 std::vector<double>* noise) const {
  for (size_t i = 0; i < outputs_; ++i)
    add_squares(exact_[sample][i], runner.output(i), &(*signal)[i], &(*noise)[i]);
}

bool Trials::belongs(size_t sample, Part part) const {
  if (part == Part::kAll || samples_.size() < kFewestHalved) return true;
  return (sample % 2 == 0) == (part == Part::kEven);
}

std::vector<Sample> Trials::samples(Part part) const {
  std::vector<Sample> list;
  for (size_t s = 0; s < samples_.size(); ++s)
    if (belongs(s, part)) list.push_back(samples_[s]);
  return list;
}

Noise Trials::measure(const Graph& candidate, size_t most, Part part) const {
  GraphRunner runner(candidate, options_);
  std::vector<double> signal(outputs_, 0), noise(outputs_, 0);
  for (size_t s = 0; s < samples_.size() && most > 0; ++s) {
    if (!belongs(s, part)) continue;
    --most;
    runner.run(samples_[s]);
    add(runner, s, &signal, &noise);
  }
  return ratio(signal, noise);
}

Trials::Probe::Probe(const Trials& trials, const Graph& exact)
    : trials_(trials), runner_(exact, trials.options_) {}

Noise Trials::Probe::Halves::both() const {
  Noise noise = even;
  noise += odd;
  for (double& x : noise.outputs) x /= 2;
  return noise;
}

Trials::Probe::Halves Trials::Probe::round(ValueId value, const QuantParams& params, size_t most) {
  const ValueId watched[] = {value};
  runner_.watch(watched);
  const QuantRange range = quant_range(params.type);
  const auto low = static_cast<float>(range.min - params.zero),
             high = static_cast<float>(range.max - params.zero);
  const auto scale = static_cast<float>(params.scale);
  // Later steps read the rounded numbers.
  const auto round = [&](ValueId, const TensorView& view) {
    float* const p = const_cast<float*>(view.as<float>());
    for (int64_t i = 0; i < view.size(); ++i)
      p[i] = ((std::clamp(p[i] / scale, low, high) + kHalfEven) - kHalfEven) * scale;
  };
  std::vector<double> signal[2], noise[2];
  for (const int half : {0, 1})
    signal[half].assign(trials_.outputs_, 0), noise[half].assign(trials_.outputs_, 0);
  for (size_t s = 0; s < std::min(most, trials_.samples_.size()); ++s) {
    runner_.run(trials_.samples_[s], round);
    trials_.add(runner_, s, &signal[s % 2], &noise[s % 2]);
  }
  Halves result{ratio(signal[0], noise[0]), ratio(signal[1], noise[1])};
  if (std::min(most, trials_.samples_.size()) < 2) result.odd = result.even;
  return result;
}

Observations Trials::observe(const Graph& graph, std::span<const ValueId> values, bool channels,
                             Part part) const {
  const std::vector<Sample> list = samples(part);
  SampleList kept(list);
  ObserveOptions options;
  options.runner = options_;
  options.channels = channels;
  return sinter::convert::observe(graph, kept, values, options);
}

}  // namespace sinter::convert

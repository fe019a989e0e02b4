#include "converter/quantize/search/output_trials.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "converter/quantize/samples/sample_list.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostKeptBytes = 32 << 20;
constexpr int64_t kFewest = 4, kMost = 96;
constexpr size_t kRunsOfHalves = 12;
constexpr float kHalfEven = 12582912.0f;  // 1.5 * 2^23: adding it leaves no place for a fraction

std::vector<float> floats(const TensorView& v) {
  if (v.dtype == DType::kFloat32) return {v.as<float>(), v.as<float>() + v.size()};
  std::vector<float> result;
  for (const double x : copy_of(v)->as_doubles()) result.push_back(static_cast<float>(x));
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

Noise ratio(const std::vector<DType>& types, const std::vector<double>& signal,
            const std::vector<double>& noise) {
  const bool any_float = std::any_of(types.begin(), types.end(), is_float);
  Noise result;
  for (size_t i = 0; i < signal.size(); ++i) {
    const double share = noise[i] <= 0    ? 0
                         : signal[i] <= 0 ? std::numeric_limits<double>::infinity()
                                          : noise[i] / signal[i];
    const bool whole = !is_float(types[i]);
    result.outputs.push_back(whole && any_float ? 0 : share);
    result.unequal.push_back(whole ? std::optional(share) : std::nullopt);
  }
  return result;
}

std::vector<DType> output_types(const Graph& graph) {
  std::vector<DType> types;
  for (const ValueId id : graph.outputs) types.push_back(graph.value(id).dtype);
  return types;
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
  return ratio(output_types(exact), signal, noise);
}

size_t Trials::most_samples(const Graph& exact) {
  const int64_t each = std::max<int64_t>(1, bytes_of(exact, exact.inputs) + bytes_of(exact, exact.outputs));
  return static_cast<size_t>(std::clamp(kMostKeptBytes / each, kFewest, kMost));
}

Trials::Trials(const Graph& exact, std::vector<Sample> samples, RunnerOptions options)
    : options_(std::move(options)),
      samples_(std::move(samples)),
      outputs_(exact.outputs.size()),
      types_(output_types(exact)) {
  GraphRunner runner(exact, options_);
  for (const Sample& sample : samples_) {
    runner.run(sample);
    auto& row = exact_.emplace_back();
    for (size_t i = 0; i < outputs_; ++i) row.push_back(floats(runner.output(i)));
  }
}

void Trials::join(Trials other) {
  std::move(other.samples_.begin(), other.samples_.end(), std::back_inserter(samples_));
  std::move(other.exact_.begin(), other.exact_.end(), std::back_inserter(exact_));
}

std::optional<double> Trials::variation() const {
  if (!halved()) return std::nullopt;
  double most = 0;
  for (size_t i = 0; i < outputs_; ++i) {
    double squares = 0, of_means = 0;
    for (size_t k = 0; k < exact_[0][i].size(); ++k) {
      double sum = 0;
      for (const auto& row : exact_) {
        const auto x = static_cast<double>(row[i][k]);
        sum += x, squares += x * x;
      }
      of_means += sum * sum / static_cast<double>(exact_.size());
    }
    if (squares > 0) most = std::max(most, std::sqrt(std::max(0.0, squares - of_means) / squares));
  }
  return most;
}

void Trials::add(const GraphRunner& runner, size_t sample, std::vector<double>* signal,
                 std::vector<double>* noise) const {
  for (size_t i = 0; i < outputs_; ++i)
    add_squares(exact_[sample][i], runner.output(i), &(*signal)[i], &(*noise)[i]);
}

bool Trials::halved() const { return samples_.size() >= kFewestHalved; }

bool Trials::belongs(size_t sample, Part part) const {
  if (part == Part::kAll || !halved()) return true;
  // In runs, as the judges of sample_split.h.
  const size_t run = std::max<size_t>(1, samples_.size() / kRunsOfHalves);
  return (sample / run % 2 == 0) == (part == Part::kEven);
}

std::vector<size_t> Trials::chosen(size_t most, Part part) const {
  std::vector<size_t> all, spread;
  for (size_t s = 0; s < samples_.size(); ++s)
    if (belongs(s, part)) all.push_back(s);
  const size_t count = std::min(most, all.size());
  for (size_t i = 0; i < count; ++i) spread.push_back(all[i * all.size() / count]);
  return spread;
}

std::vector<Sample> Trials::samples(Part part) const {
  std::vector<Sample> list;
  for (const size_t s : chosen(size(), part)) list.push_back(samples_[s]);
  return list;
}

Noise Trials::measure(const Graph& candidate, size_t most, Part part) const {
  GraphRunner runner(candidate, options_);
  std::vector<double> signal(outputs_, 0), noise(outputs_, 0);
  const std::vector<size_t> list = chosen(most, part);
  for (const size_t s : list) {
    runner.run(samples_[s]);
    add(runner, s, &signal, &noise);
  }
  did(Work::kTrial, trial_units(list.size()));
  return ratio(types_, signal, noise);
}

Noise Trials::measure(const Graph& candidate, std::vector<SqnrSpread>* spreads) const {
  GraphRunner runner(candidate, options_);
  // By output, by sample.
  std::vector<std::vector<double>> signals(outputs_), noises(outputs_);
  std::vector<double> signal(outputs_, 0), noise(outputs_, 0);
  for (size_t s = 0; s < size(); ++s) {
    std::vector<double> own_signal(outputs_, 0), own_noise(outputs_, 0);
    runner.run(samples_[s]);
    add(runner, s, &own_signal, &own_noise);
    for (size_t i = 0; i < outputs_; ++i) {
      signals[i].push_back(own_signal[i]), noises[i].push_back(own_noise[i]);
      signal[i] += own_signal[i], noise[i] += own_noise[i];
    }
  }
  did(Work::kTrial, trial_units(size()));
  spreads->assign(outputs_, {});
  for (size_t i = 0; i < outputs_; ++i)
    if (is_float(types_[i]))
      (*spreads)[i] = {sqnr_interval(signals[i], noises[i]), sample_sqnr(signals[i], noises[i])};
  return ratio(types_, signal, noise);
}

Trials::Probe::Probe(const Trials& trials, const Graph& exact)
    : trials_(trials), runner_(exact, trials.options_) {}

Noise Trials::Probe::Halves::both() const {
  Noise noise = even;
  noise += odd;
  for (double& x : noise.outputs) x /= 2;
  return noise;
}

Trials::Probe::Halves Trials::Probe::round(ValueId value, const QuantParams& params, size_t most, Part part) {
  const ValueId watched[] = {value};
  runner_.watch(watched);
  const QuantRange range = quant_range(params.type);
  const auto low = static_cast<float>(range.min - params.zero_point),
             high = static_cast<float>(range.max - params.zero_point);
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
  const std::vector<size_t> list = trials_.chosen(most, part);
  for (size_t i = 0; i < list.size(); ++i) {
    runner_.run(trials_.samples_[list[i]], round);
    trials_.add(runner_, list[i], &signal[i % 2], &noise[i % 2]);
  }
  trials_.did(Work::kProbing, static_cast<double>(list.size()));
  const std::vector<DType>& types = trials_.types_;
  Halves result{ratio(types, signal[0], noise[0]), ratio(types, signal[1], noise[1])};
  if (list.size() < 2) result.odd = result.even;
  return result;
}

Observations Trials::observe(const Graph& graph, std::span<const ValueId> values, bool channels,
                             Part part) const {
  const std::vector<Sample> list = samples(part);
  SampleList kept(list);
  ObserveOptions options;
  options.runner = options_;
  options.channels = channels;
  options.progress = [this](int64_t, int64_t) { did(Work::kObserving); };
  return sinter::convert::observe(graph, kept, values, options);
}

}  // namespace sinter::convert

#include "converter/quantize/samples/check_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "converter/quantize/samples/usual_scales.h"

namespace sinter::convert {
namespace {

// How often the deviation of a BatchNormalization's input may be that of training, and how many deviations
// its mean may be off. On right data these were 0.77 to 1.03 and at most 0.61 (docs/quantization.md).
constexpr double kMostSpread = 3, kLeastSpread = 1 / kMostSpread, kMostShift = 1.25;
// Beyond this a warning needs no other scale that fits.
constexpr double kAnySpread = 5;
// A bias in deviations of what it is added to. On right data it was at most 2.2; data divided by 8 gave 4.7
// to 7.1, data divided by 255 21 to 440.
constexpr double kLargeBias = 4, kUsualBias = 0.5;
constexpr double kFits = 0.75;           // the distance of a scale that is named, in e-folds
constexpr size_t kMostBytes = 64 << 20;  // of samples held

// A value that shows the scale, and what it should be.
struct Gauge {
  std::string value, node, op;
  size_t axis = 1;                      // of channels; behind the last: the last
  std::vector<double> mean, deviation;  // of a BatchNormalization
  std::vector<double> bias;             // else
  bool normalizes() const { return !mean.empty(); }
};

std::vector<double> constant_of(const std::map<std::string_view, ConstantPtr>& constants,
                                const std::string& name) {
  const auto at = constants.find(name);
  return at == constants.end() || !at->second ? std::vector<double>() : at->second->as_doubles();
}

bool is_among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The first BatchNormalization of an affine function of one input, else the first bias that is added to one.
std::optional<Gauge> find_gauge(const ImportedGraph& model) {
  std::map<std::string_view, ConstantPtr> constants;
  for (const ImportedTensor& t : model.initializers) constants[t.name] = t.data;
  for (const ImportedNode& n : model.nodes)
    if (const ImportedAttribute* value = n.op_type == "Constant" ? n.find("value") : nullptr;
        value != nullptr && !value->tensors.empty())
      constants[n.outputs[0]] = value->tensors[0].data;
  std::set<std::string_view> affine, products, normalized;
  for (const ImportedValueInfo& input : model.inputs)
    if (is_float(input.dtype)) affine.insert(input.name);
  for (const ImportedNode& n : model.nodes)
    if (n.op_type.ends_with("Normalization") && n.op_type != "BatchNormalization" && !n.inputs.empty())
      normalized.insert(n.inputs[0]);
  std::optional<Gauge> by_bias;
  const auto take_bias = [&](const ImportedNode& n, const std::string& bias, size_t axis) {
    if (by_bias || normalized.contains(n.outputs[0])) return;
    if (std::vector<double> b = constant_of(constants, bias); b.size() > 1)
      by_bias = Gauge{n.outputs[0], n.name, n.op_type, axis, {}, {}, std::move(b)};
  };
  for (const ImportedNode& n : model.nodes) {
    if (!n.domain.empty() || n.inputs.empty() || n.outputs.empty()) continue;
    const auto from_input = [&](size_t i) { return i < n.inputs.size() && affine.contains(n.inputs[i]); };
    const auto known = [&](size_t i) { return i < n.inputs.size() && constants.contains(n.inputs[i]); };
    bool stays = false;
    if (n.op_type == "BatchNormalization" && from_input(0) && n.inputs.size() == 5) {
      const ImportedAttribute* training = n.find("training_mode");
      Gauge gauge{n.inputs[0],
                  n.name,
                  n.op_type,
                  1,
                  constant_of(constants, n.inputs[3]),
                  constant_of(constants, n.inputs[4]),
                  {}};
      // Means of 0 and variances of 1 are those of a network that was not trained.
      const bool trained =
          std::any_of(gauge.mean.begin(), gauge.mean.end(), [](double m) { return m != 0; }) ||
          std::any_of(gauge.deviation.begin(), gauge.deviation.end(), [](double v) { return v != 1; });
      if (trained && !gauge.mean.empty() && gauge.mean.size() == gauge.deviation.size() &&
          (training == nullptr || training->i == 0)) {
        const ImportedAttribute* epsilon = n.find("epsilon");
        const double least = epsilon == nullptr ? 1e-5 : static_cast<double>(epsilon->f);
        for (double& d : gauge.deviation) d = std::sqrt(std::max(d, 0.0) + least);
        return gauge;
      }
    } else if (is_among(n.op_type, {"Conv", "Gemm"}) && from_input(0) && known(1)) {
      stays = true;
      products.insert(n.outputs[0]);
      if (known(2)) take_bias(n, n.inputs[2], n.op_type == "Conv" ? 1 : SIZE_MAX);
    } else if (n.op_type == "MatMul" && from_input(0) && known(1)) {
      stays = true;
      products.insert(n.outputs[0]);
    } else if (is_among(n.op_type, {"Add", "Sub", "Mul", "Div"}) && n.inputs.size() == 2) {
      stays = (from_input(0) && known(1)) || (n.op_type != "Div" && known(0) && from_input(1));
      const size_t other = known(0) ? 0 : 1;
      if (stays && n.op_type == "Add" && products.contains(n.inputs[1 - other])) {
        const auto dims = constants[n.inputs[other]] ? constants[n.inputs[other]]->dims() : Dims();
        take_bias(n, n.inputs[other], dims.size() > 1 && dims.back() == 1 ? 1 : SIZE_MAX);
      }
    } else if (is_among(n.op_type, {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity",
                                    "Pad", "Cast", "Slice", "Dropout", "Concat"})) {
      stays = from_input(0);
    }
    if (stays) affine.insert(n.outputs[0]);
  }
  return by_bias;
}

double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<int64_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

// The gauge's reading as medians over channels: for a BatchNormalization the deviation as a multiple of that
// in training, and the distance of the means; else the bias and the mean, in deviations.
struct Reading {
  double spread = 1, shift = 0, bias = kUsualBias;

  bool off(const Gauge& gauge) const {
    if (gauge.normalizes()) return spread > kMostSpread || spread < kLeastSpread || shift > kMostShift;
    return bias > kLargeBias && shift > kLargeBias;
  }
  // Whether that is certain even where no other scale fits.
  bool certain(const Gauge& gauge) const {
    return gauge.normalizes() && (spread > kAnySpread || spread < 1 / kAnySpread);
  }
  // The distance from what is usual, in e-folds.
  double distance(const Gauge& gauge) const {
    return gauge.normalizes() ? std::fabs(std::log(spread)) + shift / 2
                              : std::fabs(std::log(bias / kUsualBias)) / 2;
  }
};

class ScaleCheck {
 public:
  ScaleCheck(const Graph& graph, Gauge gauge, ValueId value, SampleSource& source,
             const RunnerOptions& options)
      : gauge_(std::move(gauge)), options_(options), beginning_(graph) {
    beginning_.outputs = {value};
    beginning_.bindable_inputs.clear(), beginning_.bindable_outputs.clear();
    remove_dead_nodes(beginning_);
    source.rewind();
    size_t bytes = 0;
    Sample sample;
    while (static_cast<int64_t>(samples_.size()) < kScaleSamples && bytes < kMostBytes &&
           source.next(&sample)) {
      for (const ConstantPtr& array : sample) bytes += array->byte_size();
      samples_.push_back(sample);
    }
    source.rewind();
    reach_ = reach_of(samples_);
  }

  // Whether it warned.
  bool report(Diagnostics& diagnostics) {
    const auto [low, high] = reach_;
    if (samples_.size() < 2 || !(low < high)) return false;
    GraphRunner runner(beginning_, options_);
    const Reading now = read(runner, samples_);
    if (!now.off(gauge_)) return false;
    const std::string ranges = fitting(runner);
    if (ranges.empty() && !now.certain(gauge_)) return false;
    std::string message = fmt::format(
        "calibration data reaches from {:g} to {:g}, which is not the scale that the model was trained "
        "with: ",
        low, high);
    if (!gauge_.normalizes())
      message += fmt::format(
          "the bias that is added here is {:.2g} times the deviation of what it is added to", now.bias);
    else if (now.spread > kMostSpread || now.spread < kLeastSpread)
      message += fmt::format("what is normalized here has {:.2g} times the deviation that it had in training",
                             now.spread);
    else
      message += fmt::format("the mean of what is normalized here is {:.2g} deviations off that in training",
                             now.shift);
    diagnostics.warn(
        gauge_.node, gauge_.op, std::move(message),
        !ranges.empty() ? "scale the data as for training: " + ranges
        : now.spread > 1
            ? fmt::format("scale the data as for training: divided by about {:.2g}", now.spread)
            : fmt::format("scale the data as for training: multiplied by about {:.2g}", 1 / now.spread));
    return true;
  }

 private:
  Reading read(GraphRunner& runner, const std::vector<Sample>& samples) {
    std::vector<double> sum, squares;
    int64_t each = 0;
    for (const Sample& sample : samples) {
      runner.run(sample);
      const TensorView view = runner.output(0);
      const auto shape = view.shape();
      const size_t axis = std::min(gauge_.axis, shape.size() - 1);
      const auto channels = static_cast<size_t>(shape[axis]);
      size_t inner = 1;
      for (size_t a = axis + 1; a < shape.size(); ++a) inner *= static_cast<size_t>(shape[a]);
      sum.resize(channels), squares.resize(channels);
      const std::vector<double> y = copy_of(view)->as_doubles();
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t c = i / inner % channels;
        sum[c] += y[i], squares[c] += y[i] * y[i];
      }
      each += static_cast<int64_t>(y.size() / channels);
    }
    const size_t known = gauge_.normalizes() ? gauge_.mean.size() : gauge_.bias.size();
    if (sum.size() != known) return {};
    std::vector<double> spread, shift, bias;
    for (size_t c = 0; c < known; ++c) {
      const double mean = sum[c] / static_cast<double>(each);
      const double deviation =
          std::sqrt(std::max(squares[c] / static_cast<double>(each) - mean * mean, 1e-30));
      if (gauge_.normalizes()) {
        spread.push_back(deviation / gauge_.deviation[c]);
        shift.push_back(std::fabs(mean - gauge_.mean[c]) / gauge_.deviation[c]);
      } else {
        shift.push_back(std::fabs(mean) / deviation);
        bias.push_back(std::max(std::fabs(gauge_.bias[c]), 1e-30) / deviation);
      }
    }
    Reading result;
    result.shift = median(std::move(shift));
    if (gauge_.normalizes())
      result.spread = median(std::move(spread));
    else
      result.bias = median(std::move(bias));
    return result;
  }

  // The usual scales that fit, the best first, else a factor that brings the data to the reach of one and
  // fits; empty: there is none.
  std::string fitting(GraphRunner& runner) {
    std::vector<std::pair<double, const UsualScale*>> fits;
    for (const UsualScale* scale : other_scales(reach_)) {
      const double distance = read(runner, rescaled(samples_, reach_, *scale)).distance(gauge_);
      if (distance < kFits) fits.emplace_back(distance, scale);
    }
    std::stable_sort(fits.begin(), fits.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const UsualScale*> scales;
    for (const auto& [distance, scale] : fits) scales.push_back(scale);
    if (scales.empty()) return fitting_factor(runner);
    return "of the usual scales, " + names_of_scales(scales) + (scales.size() == 1 ? " fits" : " fit");
  }

  std::string fitting_factor(GraphRunner& runner) {
    double least = kFits;
    std::string text;
    for (const double end : {1.0, 255.0}) {
      const double factor = end / std::max(reach_.high, -reach_.low);
      const double distance = read(runner, multiplied(samples_, factor)).distance(gauge_);
      if (!(distance < least)) continue;
      least = distance;
      text = fmt::format("multiplied by {:.3g}, so that it reaches from {:.3g} to {:.3g}, it fits", factor,
                         reach_.low * factor, reach_.high * factor);
    }
    return text;
  }

  const Gauge gauge_;
  const RunnerOptions options_;
  Graph beginning_;
  std::vector<Sample> samples_;
  Reach reach_;
};

}  // namespace

bool check_scale(const Graph& graph, const ImportedGraph& model, SampleSource& samples,
                 const RunnerOptions& options, Diagnostics& diagnostics) {
  if (!samples.is_file() || !graph.states.empty() || !graph.lengths.empty()) return false;
  std::optional<Gauge> gauge = find_gauge(model);
  if (!gauge) return false;
  const auto at = std::find_if(graph.values.begin(), graph.values.end(),
                               [&](const Value& v) { return v.name == gauge->value; });
  if (at == graph.values.end() || at->constant || !at->bounded_dims.empty() || at->dims.size() < 2 ||
      !is_float(at->dtype))
    return false;
  const auto value = static_cast<ValueId>(at - graph.values.begin());
  if (Uses(graph).producer[static_cast<size_t>(value)] < 0) return false;
  return ScaleCheck(graph, std::move(*gauge), value, samples, options).report(diagnostics);
}

}  // namespace sinter::convert

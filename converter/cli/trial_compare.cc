#include "converter/cli/trial_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "converter/cli/file_view.h"
#include "converter/cli/layer_noise.h"

namespace sinter::convert {
namespace {

// The most roundings of the largest element by which floats may differ, as sums of a thousand terms do.
constexpr double kUnits = 1024;
// The model's own types may lose as much at other elements of the value.
constexpr double kTimesOwn = 8;

// The largest errors of rounding to a type once, relative and, near zero, absolute: half the distance of
// subnormal numbers, or these numbers themselves where kernels flush them.
struct Precision {
  double unit, tiny;
};

Precision precision_of(DType type) {
  switch (type) {
    case DType::kFloat16:
      return {std::ldexp(1, -11), std::ldexp(1, -25)};
    case DType::kBFloat16:
      return {std::ldexp(1, -8), std::ldexp(1, -126)};
    default:
      return {std::ldexp(1, -24), std::ldexp(1, -126)};
  }
}

struct Distance {
  double difference = 0, explained = 0;
  bool in_steps = false;
  bool beyond() const { return difference > explained; }
};

// Decides whether roundings explain the distance of a file's value from the exact one.
class Judgement {
 public:
  // `coarsest` is the precision of the coarsest type in which the file computes.
  Judgement(const ExactLayers& exact, Precision coarsest) : exact_(exact), coarsest_(coarsest) {}

  // Returns the distance of a value that `op` computed from operands whose largest element is `operands`.
  Distance operator()(Op op, const StepValue& value, const LayerPair& pair, double operands) const {
    if (const auto before = exact_.find_unrounded(value);
        before && before->exact->size() == static_cast<int64_t>(pair.rounded.size())) {
      const std::vector<double> numbers = before->exact->as_doubles();
      const double arithmetic = op == Op::kQResize ? kResizeSteps : kMoreSteps;
      return {largest(numbers, pair.rounded) / before->step,
              0.5 + arithmetic + rounding(coarsest_, peak_of(numbers)) / before->step, true};
    }
    if (value.params) return {largest(pair.exact, pair.rounded) / value.params->scale, 1, true};
    const double peak = peak_of(pair.exact);
    const double most = largest(pair.exact, pair.rounded);
    const Precision own = precision_of(pair.dtype), p = own.unit > coarsest_.unit ? own : coarsest_;
    const double rounded = rounding(p, std::max(peak, operands));  // terms may be larger than their sum
    if (!(peak > 0)) return {most, rounded, false};
    return {most / peak, rounded / peak, false};
  }
  // Returns the largest finite magnitude; trial_run.h is about NaN and infinity.
  static double peak_of(const std::vector<double>& numbers) {
    double peak = 0;
    for (const double x : numbers)
      if (std::isfinite(x)) peak = std::max(peak, std::fabs(x));
    return peak;
  }
  // Returns the ratio of the error of the file's coarsest type to float32's.
  double coarseness() const { return std::max(1.0, coarsest_.unit / precision_of(DType::kFloat32).unit); }

 private:
  static double rounding(Precision p, double peak) { return kUnits * (p.unit * peak + p.tiny); }
  static double largest(const std::vector<double>& exact, const std::vector<double>& rounded) {
    double most = 0;
    for (size_t i = 0; i < exact.size(); ++i)
      if (const double e = std::fabs(exact[i] - rounded[i]); std::isfinite(e)) most = std::max(most, e);
    return most;
  }
  const ExactLayers& exact_;
  Precision coarsest_;
};

// A step whose result is further from the exact one than its roundings explain.
struct Suspect {
  uint32_t step = 0;
  size_t output = 0;
  std::string name, node, op;
  DType dtype = DType::kNone;
  double operands = 0;
  Distance distance;
};

// Returns by step the operation that computed its results; for a View, that of the viewed value.
std::vector<Op> computing_ops(const fb::Program& program) {
  std::vector<Op> ops;
  std::map<int32_t, Op> by_value;
  for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
    const fb::Step& step = *program.steps()->Get(s);
    const auto inputs = detail::items(step.inputs());
    const auto viewed = inputs.empty() ? by_value.end() : by_value.find(inputs[0]);
    const auto op = static_cast<Op>(step.op());
    ops.push_back(op == Op::kView && viewed != by_value.end() ? viewed->second : op);
    for (const int32_t id : detail::items(step.outputs())) by_value[id] = ops.back();
  }
  return ops;
}

// Returns the coarsest precision of the types in which the steps compute.
Precision coarsest_precision(const fb::Program& program) {
  Precision coarsest = precision_of(DType::kFloat32);
  for (uint32_t i = 0; i < detail::length(program.values()); ++i) {
    const fb::Value& v = *program.values()->Get(i);
    if (v.kind() != fb::ValueKind::Temporary) continue;
    if (const Precision p = precision_of(static_cast<DType>(v.dtype())); p.unit > coarsest.unit) coarsest = p;
  }
  return coarsest;
}

// Returns the bytes of the program's values in float64.
double value_bytes(const fb::Program& program) {
  double bytes = 0;
  for (uint32_t i = 0; i < detail::length(program.values()); ++i) {
    const fb::Value& v = *program.values()->Get(i);
    if (v.constant() >= 0) continue;
    double size = sizeof(double);
    for (const int64_t d : detail::items(v.dims())) size *= static_cast<double>(d);
    bytes += size;
  }
  return bytes;
}

bool has_custom_steps(const Model& model) {
  const auto& programs = *model.state()->root->programs();
  for (uint32_t p = 0; p < programs.size(); ++p)
    for (uint32_t s = 0; s < detail::length(programs.Get(p)->steps()); ++s)
      if (static_cast<Op>(programs.Get(p)->steps()->Get(s)->op()) == Op::kCustom) return true;
  return false;
}

// Whether roundings can be judged. A table's entry contains several roundings of the model, within 64 steps
// for int16 (docs/numerics.md), and a Dequantize moves a tie that went the other way.
bool is_compared(Op op, const StepValue& value, DType dtype) {
  if (op == Op::kLut || op == Op::kQTable || op == Op::kQRequantize || op == Op::kDequantize) return false;
  return value.params.has_value() || is_float(dtype);
}

// Returns the first step whose results may jump where its operands hardly differ: integers and truth values
// from floats, roundings, and control flow. Any difference is possible behind it.
uint32_t first_jump(const fb::Program& program, const std::vector<std::vector<StepValue>>& values) {
  const auto floats = [&](int32_t id) {
    return id >= 0 && is_float(static_cast<DType>(program.values()->Get(static_cast<uint32_t>(id))->dtype()));
  };
  const uint32_t count = detail::length(program.steps());
  for (uint32_t s = 0; s < count; ++s) {
    const fb::Step& step = *program.steps()->Get(s);
    const auto op = static_cast<Op>(step.op());
    const auto inputs = detail::items(step.inputs()), outputs = detail::items(step.outputs());
    if (op == Op::kRound || op == Op::kSign || op == Op::kMod || detail::is_control(step)) return s;
    if (std::none_of(inputs.begin(), inputs.end(), floats)) continue;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] >= 0 && !floats(outputs[i]) && !values[s][i].params) return s;
  }
  return count;
}

// The largest elements of the operands of steps.
class Peaks {
 public:
  Peaks(const fb::Program& program, const Arrays& inputs) : program_(program) {
    for (const auto& [name, array] : inputs)
      of_inputs_ = std::max(of_inputs_, Judgement::peak_of(array->as_doubles()));
  }
  void keep(uint32_t step, size_t output, double peak) {
    by_value_[detail::items(program_.steps()->Get(step)->outputs())[output]] = peak;
  }
  // Returns the largest element of a step's operands, or nothing if one of them is not known.
  std::optional<double> operands(uint32_t step) const {
    double peak = 0;
    for (const int32_t id : detail::items(program_.steps()->Get(step)->inputs())) {
      if (id < 0) continue;
      const fb::Value& v = *program_.values()->Get(static_cast<uint32_t>(id));
      const auto known = by_value_.find(id);
      if (v.constant() >= 0) continue;
      if (known == by_value_.end() && v.kind() != fb::ValueKind::Input) return std::nullopt;
      peak = std::max(peak, known == by_value_.end() ? of_inputs_ : known->second);
    }
    return peak;
  }

 private:
  const fb::Program& program_;
  double of_inputs_ = 0;
  std::map<int32_t, double> by_value_;
};

// Runs every step of the file on exact operands, and calls `judge` for each result.
void look_at_steps(const Model& model, HostSession& session, const ExactLayers& exact, const Arrays& inputs,
                   const LayerNoise::Judge& judge) {
  session.session().reset();
  session.set_inputs(inputs);
  LayerNoise(model, session.entry()).run(session, exact, {}, judge);
}

// Returns the model's values in its own types, behind the exact reading's roundings; null if not computed.
std::unique_ptr<ExactLayers> layers_of_own_types(const OpenReading& open, const ExactLayers& exact,
                                                 const Arrays& inputs) {
  try {
    const std::unique_ptr<OpenModel> own = open(false);
    if (own == nullptr) return nullptr;
    auto layers = std::make_unique<ExactLayers>(own->model(), 0);
    own->session().set_inputs(inputs);
    layers->run(own->session(), &exact);
    return layers;
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Returns why the steps cannot be compared; empty if they can. `bytes`: the exact values.
std::string why_not_compared(const Model& model, HostSession& session, Precision coarsest, double bytes,
                             bool by_bytes) {
  if (has_custom_steps(model)) return "the model has custom operators";
  for (uint32_t i = 0; i < model.input_count(session.entry()); ++i)
    by_bytes |= takes_numbers(model.input(i, session.entry()));
  if (by_bytes) return "--input-type gives integers";
  if (kUnits * coarsest.unit >= 1) return "roundings to bfloat16 explain any difference";
  for (uint32_t i = 0; i < model.state_count(); ++i)
    if (!session.session().state(i).present() || session.session().state(i).memory != 0)
      return "states are in a device's memory";
  if (bytes <= kMostComparedBytes) return {};
  return fmt::format("the exact values take {:.0f} MB, more than {:.0f}", bytes / 1e6,
                     kMostComparedBytes / 1e6);
}

}  // namespace

nlohmann::json TrialComparison::to_json() const {
  if (!note.empty()) return {{"values", 0}, {"note", note}};
  nlohmann::json json{{"values", values}};
  if (differs())
    json["differs"] = {{"step", step},           {"op", op},
                       {"value", value},         {"difference", difference},
                       {"explained", explained}, {"unit", in_steps ? "steps of the scale" : "share"}};
  return json;
}

TrialComparison compare_steps(const Model& model, HostSession& session, const Arrays& inputs,
                              OpenModel& exact, const OpenReading& open, bool by_bytes) {
  TrialComparison result;
  const fb::Program& program = program_of(model, session.entry());
  const Precision coarsest = coarsest_precision(program);
  result.note =
      why_not_compared(model, session, coarsest, value_bytes(program_of(exact.model(), 0)), by_bytes);
  if (!result.note.empty()) return result;
  const std::vector<std::vector<StepValue>> values = step_values(model, session.entry());
  ExactLayers layers(exact.model(), 0);
  exact.session().set_inputs(in_float64(inputs));
  layers.run(exact.session());
  const std::vector<Op> ops = computing_ops(program);
  const Judgement judge(layers, coarsest);
  std::vector<Suspect> suspects;
  const uint32_t end = first_jump(program, values);
  Peaks peaks(program, inputs);
  look_at_steps(model, session, layers, inputs, [&](const LayerNoise::Row& row, const LayerPair& pair) {
    const StepValue& value = values[row.step][row.output];
    peaks.keep(row.step, row.output, Judgement::peak_of(pair.exact));
    const std::optional<double> operands = peaks.operands(row.step);
    if (value.bounded || value.rescaled || row.step >= end || !operands ||
        !is_compared(ops[row.step], value, pair.dtype))
      return;
    ++result.values;
    const Distance d = judge(ops[row.step], value, pair, *operands);
    if (d.beyond())
      suspects.push_back({row.step, row.output, row.name, row.node, row.op, pair.dtype, *operands, d});
  });
  if (result.values == 0) result.note = "no step gives a value of a fixed shape that the model has, too";
  if (suspects.empty()) return result;
  const std::unique_ptr<ExactLayers> own = layers_of_own_types(open, layers, inputs);
  for (Suspect& s : suspects) {
    Distance& d = s.distance;
    const StepValue& value = values[s.step][s.output];
    const ConstantPtr x = layers.find_as_held(value), y = own ? own->find_as_held(value) : nullptr;
    if (y && y->dims() == x->dims()) {
      const Distance lost =
          judge(ops[s.step], value, {x->as_doubles(), y->as_doubles(), s.dtype}, s.operands);
      d.explained +=
          kTimesOwn * std::max(0.0, lost.difference - (lost.in_steps ? 0.5 : 0)) * judge.coarseness();
    }
    if (!d.beyond()) continue;
    result.step = s.node, result.op = s.op, result.value = s.name;
    result.difference = d.difference, result.explained = d.explained, result.in_steps = d.in_steps;
    break;
  }
  return result;
}

}  // namespace sinter::convert

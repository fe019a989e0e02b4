#include "converter/cli/trial_run.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "converter/cli/layer_noise.h"
#include "converter/cli/reference_model.h"
#include "converter/cost/work.h"
#include "converter/diagnostics/errors.h"
#include "converter/ir/call_view.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/quant_params.h"
#include "converter/quantize/samples/made_up_inputs.h"

namespace sinter::convert {
namespace {

// The limits of the exact reading where NaN was found, which may take longer.
constexpr double kMostReferenceWork = 2e9;
constexpr double kMostReferenceBytes = 256 << 20;  // constants in float64

NotFinite count_found(const TensorView& v) {
  if (!v.present() || v.memory != 0 || !is_float(v.dtype)) return {};
  if (v.dense() && bit_width(v.dtype) >= 16)
    return count_not_finite(v.dtype, {v.data, static_cast<size_t>(v.dense_bytes())});
  NotFinite found;
  if (!has_numbers(v.dtype)) return found;
  std::vector<double> numbers;
  read_numbers(v, std::nullopt, &numbers);
  for (const double x : numbers) found.nan += std::isnan(x), found.infinite += std::isinf(x);
  return found;
}

// Returns the number of elements that are not finite, but finite in the reference.
uint64_t count_appeared(const std::vector<double>& exact, const std::vector<double>& rounded) {
  uint64_t count = 0;
  for (size_t i = 0; i < exact.size() && i < rounded.size(); ++i)
    count += std::isfinite(exact[i]) && !std::isfinite(rounded[i]);
  return count;
}

// Runs a session from its initial states, and calls `use` for every result of the main list's steps.
void each_result(HostSession& session,
                 const std::function<void(uint32_t step, size_t output, const TensorView& v)>& use) {
  session.session().reset();
  session.run([&](const StepInfo& info, const OpCall& call) {
    for (size_t i = 0; i < call.outputs.size(); ++i) use(info.step, i, call.outputs[i]);
  });
}

struct FirstRun {
  Arrays inputs;
  bool suspicious = false;
};

// Returns the range of the integers' numbers if a Quantize reads the input, else -1 to 1.
std::pair<double, double> made_up_range(const Graph& graph, ValueId input) {
  std::set<ValueId> same{input};
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty() || !same.contains(node.inputs[0])) continue;
    if (moves(node.op())) same.insert(node.outputs.begin(), node.outputs.end());
    const auto params = node.as<QuantizeAttrs>() != nullptr ? quant_params(graph, node) : std::nullopt;
    if (!params) continue;
    const QuantRange range = quant_range(params->type);
    const auto number = [&](int64_t q) {
      return static_cast<double>(q - params->zero_point) * params->scale;
    };
    return {number(range.min), number(range.max)};
  }
  return {-1, 1};
}

// Runs on inputs that the model takes. Throws DataError with the last reason where it takes none.
FirstRun run_on_made_up_inputs(const Graph& graph, const Model& model, HostSession& session) {
  using Integers = MadeUpInputs::Integers;
  for (const Integers integers : {Integers::kVaried, Integers::kOnes, Integers::kZeros}) {
    MadeUpInputs made(integers);
    FirstRun first;
    for (uint32_t i = 0; i < model.input_count(session.entry()); ++i) {
      const PortInfo port = model.input(i, session.entry());
      const auto [low, high] = made_up_range(graph, graph.inputs[i]);
      first.inputs.emplace_back(
          port.name, made.next(given_type(port), Dims(port.dims.begin(), port.dims.end()), low, high));
    }
    session.set_inputs(first.inputs);
    try {
      each_result(session,
                  [&](uint32_t, size_t, const TensorView& v) { first.suspicious |= count_found(v).nan > 0; });
    } catch (const DataError&) {
      if (integers == Integers::kZeros) throw;
      continue;
    }
    for (uint32_t i = 0; i < model.output_count(session.entry()); ++i)
      first.suspicious |= count_found(session.session().output(i)).any();
    return first;
  }
  return {};
}

double constant_bytes(const PlannedModel& plan) {
  double bytes = 0;
  for (const PlannedProgram& program : plan.programs)
    for (const Value& v : program.graph->values)
      if (v.constant) bytes += 8 * static_cast<double>(v.constant->size());
  return bytes;
}

double work_of(const PlannedModel& plan, size_t program, double reference_factor) {
  const PlannedProgram& p = plan.programs[program];
  double sum = 0;
  for (size_t n = 0; n < p.steps.size(); ++n) {
    const Node& node = p.graph->nodes[n];
    const PlannedStep& step = p.steps[n];
    if (step.elided) continue;
    const auto* loop = node.as<LoopAttrs>();
    const double times = loop != nullptr ? static_cast<double>(loop->max_trips) : 1;
    for (const uint32_t sub : step.subprograms) sum += times * work_of(plan, sub, reference_factor);
    const bool reference =
        step.candidates.empty() || plan.backends[step.candidates.front()] == std::string_view("reference");
    if (step.subprograms.empty())
      sum += estimated_work(CallShape(*p.graph, node)) * (reference ? reference_factor : 1);
  }
  return sum;
}

// Counts numbers that are finite in the reference alone, and finds the first step with one.
void compare_results(const Model& model, HostSession& session, const Arrays& inputs, OpenModel& reference,
                     TrialRun* trial) {
  ExactLayers layers(reference.model(), 0);
  reference.session().set_inputs(in_float64(inputs));
  layers.run(reference.session());
  const Arrays exact = reference.session().outputs();

  uint64_t inside = 0;  // NaN in values inside the network that the reference also has
  std::vector<double> numbers;
  const std::vector<std::vector<StepValue>> values = step_values(model, session.entry());
  session.set_inputs(inputs);
  each_result(session, [&](uint32_t step, size_t output, const TensorView& v) {
    const NotFinite found = count_found(v);
    if (!found.any() || !has_numbers(v.dtype)) return;
    const ConstantPtr same = layers.find_as_held(values[step][output]);
    const bool pairs = same && same->dims() == Dims(v.dims, v.dims + v.rank);
    uint64_t appeared = 0;
    if (pairs) {
      read_numbers(v, std::nullopt, &numbers);
      appeared = count_appeared(same->as_doubles(), numbers);
      if (found.nan > 0) inside += appeared;
    }
    if (trial->step.empty() && trial->op.empty() && (pairs ? appeared > 0 : found.nan > 0))
      trial->step = model.step_name(step, session.program()),
      trial->op = model.step_op(step, session.program());
  });
  for (const auto& [name, y] : session.outputs()) {
    const ConstantPtr x = find_array(exact, name);
    if (!x || !is_float(y->dtype()) || x->dims() != y->dims()) continue;
    const uint64_t appeared = count_appeared(x->as_doubles(), y->as_doubles());
    if (appeared > 0 && trial->output.empty()) trial->output = name;
    trial->not_finite += appeared;
  }
  if (trial->not_finite == 0) trial->not_finite = inside;
}

void warn_of(const TrialRun& trial, Diagnostics& diagnostics) {
  if (trial.not_finite > 0)
    diagnostics.warn(
        trial.step, trial.op,
        fmt::format("on synthetic inputs {} of {} are NaN or infinite, but finite if the model is computed "
                    "in float64; this step's result is the first with one",
                    trial.not_finite == 1 ? "1 element" : fmt::format("{} elements", trial.not_finite),
                    trial.output.empty() ? "the values inside the network"
                                         : fmt::format("output '{}'", trial.output)),
        "use sinter compare --per-layer with real inputs; --keep VALUE=float32 computes a value in a wider "
        "type");
  const TrialComparison& c = trial.comparison;
  if (!c.differs()) return;
  const auto amount = [&](double x) {
    return c.in_steps ? fmt::format("{:.3g} steps of its scale", x) : fmt::format("{:.3g} of its peak", x);
  };
  diagnostics.warn(
      c.step, c.op,
      fmt::format("on synthetic inputs this step's result '{}' differs by {} from the exact reading of the "
                  "model, where its roundings explain {}; it is the first step that does",
                  c.value, amount(c.difference), amount(c.explained)),
      "do not use the file before sinter compare --per-layer with real inputs has shown what is wrong, and "
      "report the model: the conversion is at fault");
}

}  // namespace

nlohmann::json TrialRun::to_json() const {
  nlohmann::json json{{"done", done}};
  if (done) json["not_finite"] = not_finite;
  if (!note.empty()) json["note"] = note;
  if (not_finite > 0) json["step"] = step, json["op"] = op;
  if (!output.empty()) json["output"] = output;
  if (done) json["compared"] = comparison.to_json();
  return json;
}

double trial_work(const PlannedModel& plan, uint32_t entry) {
  return work_of(plan, plan.entries[entry], kReferenceFactor);
}

TrialRun try_once(const std::filesystem::path& onnx, const LoweringOptions& lowering,
                  const PlannedModel& plan, const Model& model, HostSession& session,
                  const std::string& not_compared, Diagnostics& diagnostics) {
  TrialRun trial;
  FirstRun first;
  const size_t entry = plan.entries[session.entry()];
  try {
    first = run_on_made_up_inputs(*plan.programs[entry].graph, model, session);
  } catch (const DataError& e) {
    trial.note = fmt::format("the synthetic inputs do not suit the model: {}", e.what());
    return trial;
  }
  trial.done = true;
  const double work = work_of(plan, entry, 1), bytes = constant_bytes(plan);
  std::string& note = trial.comparison.note = not_compared;
  if (const double all = work + kStepWork * static_cast<double>(plan.programs[entry].steps.size());
      note.empty() && all > kMostTrialWork)
    note = fmt::format("the exact reading takes the time of {:.2g} multiply-adds, more than {:.2g}", all,
                       kMostTrialWork);
  else if (note.empty() && bytes > kMostComparedConstants)
    note = fmt::format("the exact reading has {:.0f} MB of constants, more than {:.0f}", bytes / 1e6,
                       kMostComparedConstants / 1e6);
  if (!first.suspicious && !note.empty()) return trial;
  const auto leave_open = [&](const std::string& why) {
    if (note.empty()) note = why;
    if (!first.suspicious) return trial;
    trial.note = fmt::format(
        "synthetic inputs give NaN or infinity; whether the model gives them too was not computed: {}", why);
    diagnostics.note("", "", trial.note);
    return trial;
  };
  if (work > kMostReferenceWork || bytes > kMostReferenceBytes)
    return leave_open(
        fmt::format("that takes {:.2g} multiply-adds and {:.0f} MB in float64", work, bytes / 1e6));
  try {
    const OpenReading open = [&](bool wide) {
      Diagnostics ignored;
      const auto imported = import_model(onnx, ignored, 2 * lowering.most_operations);
      return imported ? open_reference(*imported, lowering, ignored, wide) : nullptr;
    };
    const std::unique_ptr<OpenModel> reference = open(true);
    if (reference == nullptr) return leave_open("the model is refused in float64");
    if (note.empty())
      trial.comparison =
          compare_steps(model, session, first.inputs, *reference, open, lowering.bytes.has_value());
    if (first.suspicious) {
      reference->session().session().reset();
      compare_results(model, session, first.inputs, *reference, &trial);
    }
  } catch (const std::exception& e) {  // the file itself is sound
    return leave_open(e.what());
  }
  warn_of(trial, diagnostics);
  return trial;
}

}  // namespace sinter::convert

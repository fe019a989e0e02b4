// sinter compare: do two models (an ONNX file computed in float64, or .sinter files) give the same outputs?
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "converter/cli/commands.h"
#include "converter/cli/compared_ports.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/data_flags.h"
#include "converter/cli/difference.h"
#include "converter/cli/file_view.h"
#include "converter/cli/input_data.h"
#include "converter/cli/model_source.h"
#include "converter/cli/reference_model.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/read/arrays.h"
#include "converter/import/read/reader.h"

namespace sinter::convert {
namespace {

struct CompareArguments {
  CommonOptions common;
  TrustOption trust;
  ConvertArguments conversion;  // how B is converted
  DataFlags data;
  EntryFlag entry;
  std::string a, b, inputs;
  std::vector<std::string> input_types;
  std::optional<uint64_t> random;
  int64_t samples = 0;  // 0: all
  bool per_layer = false, all = false, each = false, stateful = false;
  Tolerance tolerance;

  bool onnx() const { return std::filesystem::path(a).extension() != ".sinter"; }  // A is an ONNX model
};

struct OutputRow {
  std::string name;
  PortInfo a, b;
  std::string problem = {};
  Difference difference = {};

  bool within() const { return problem.empty() && difference.within; }
  void add(const ConstantPtr& x, const ConstantPtr& y, const Tolerance& tolerance) {
    if (!y)
      problem = "missing in the second model";
    else if (y->dims() != x->dims())
      problem = fmt::format("{} against {}", to_string(x->dims()), to_string(y->dims()));
    if (!y || y->dims() != x->dims()) return;
    // Integers are compared as such where both have the same scale, else by their numbers.
    const auto numbers = [&](const ConstantPtr& array, const PortInfo& port) {
      return port.scale > 0 && !same_numbers(a, b) ? as_numbers(array, integer_scale(port)) : array;
    };
    const ConstantPtr p = numbers(x, a), q = numbers(y, b);
    difference.add(p->as_doubles(), q->as_doubles(), q->dtype(), tolerance);
  }
};

// Whether the arrays are one sample of the model's inputs, and not a stack of samples.
bool one_sample(const Model& model, uint32_t entry, const Arrays& inputs) {
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    const PortInfo port = model.input(i, entry);
    ConstantPtr array = find_array(inputs, port.name);
    if (!array && inputs.size() == 1) array = inputs.front().second;
    if (array && !model.takes({port.name, array->dims()}, entry) &&
        stacked_shape(model, i, entry, array->dims()))
      return false;
  }
  return true;
}

void check_flags(const CompareArguments& a) {
  for (const auto& [flag, given] :
       {std::pair("--rtol", a.tolerance.rtol), std::pair("--atol", a.tolerance.atol)})
    if (given && !(*given >= 0))
      throw UsageError(fmt::format("{} {:g}: a difference cannot be below 0; give 0 or more", flag, *given));
  for (const PortType& t : port_types("--input-type", a.input_types))
    if (t.type == DType::kInt8)
      throw UsageError(
          "--input-type int8: the file holds the scale of its int8 inputs, which compare reads there; leave "
          "it out");
}

// Gives the ONNX model the shapes, ranges and states with which the .sinter file was converted.
void take_conversion(const Model& model, uint32_t entry, LoweringOptions* lowering) {
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    const PortInfo port = model.input(i, entry);
    if (lowering->bytes && port.dtype == DType::kUint8) continue;  // its layout may be another
    lowering->shapes[port.name] = Dims(port.dims.begin(), port.dims.end());
  }
  const fb::Program& program = FileView(model, model.default_profile(), entry).entry_program();
  for (uint32_t i = 0; i < detail::length(program.lengths()); ++i) {
    const fb::Length& length = *program.lengths()->Get(i);
    lowering->ranges[length.name()->str()] = {length.minimum(), length.maximum()};
  }
  take_states(model, lowering);
}

// Returns A as an ONNX model in float64, which B was converted from; null if it is refused.
std::unique_ptr<OpenModel> open_original(const CompareArguments& a, const Model& b, uint32_t entry,
                                         LoweringOptions lowering, Diagnostics& diagnostics) {
  take_conversion(b, entry, &lowering);
  const auto imported = import_model(a.a, diagnostics, 2 * lowering.most_operations);
  if (!imported) return nullptr;
  if (!lowering.bytes && takes_bytes(b, entry)) check_declared(imported->graph, b, entry);
  return open_reference(*imported, lowering, diagnostics);
}

// Runs both models on the same data, and compares their outputs and layers.
class Comparison {
 public:
  Comparison(const CompareArguments& a, OpenModel& first, OpenModel& second, InputData& inputs)
      : a_(a),
        first_(first),
        second_(second),
        inputs_(inputs),
        layers_(first.model(), first.session().entry()),
        noise_(second.model(), second.session().entry()) {
    const uint32_t entry = second.session().entry(), first_entry = first.session().entry();
    check_inputs(first.model(), first_entry, second.model(), entry, a.onnx());
    constexpr double kQuantized = 20;
    const bool quantized = has_quantized_values(second.model(), entry) &&
                           (a.onnx() || !has_quantized_values(first.model(), first_entry));
    tolerance_ = a.tolerance;
    if (quantized && !tolerance_.min_sqnr && !tolerance_.rtol && !tolerance_.atol)
      tolerance_.min_sqnr = kQuantized;
    if (a.stateful && !has_state(second.model()))
      throw UsageError(
          fmt::format("--stateful: {} keeps no state between runs; convert the model with --state", a.b));
  }

  void run() {
    const uint32_t entry = second_.session().entry();
    const Arrays* arrays = inputs_.arrays();
    const bool stacks = a_.each || (arrays != nullptr && !one_sample(second_.model(), entry, *arrays));
    inputs_.begin(second_.model(), stacks ? &second_.session() : nullptr, entry);
    samples_ = a_.samples > 0 ? std::min(inputs_.count(), a_.samples) : inputs_.count();
    const Arrays all_for_first = arrays != nullptr ? to_first(*arrays) : Arrays();
    for (int64_t i = 0; i < samples_; ++i) {
      if (!a_.stateful) first_.session().session().reset(), second_.session().session().reset();
      // The file's own inputs are set first, because messages about data that does not fit name its types.
      const InputData::Step step = *inputs_.next();
      second_.session().set_inputs(step.arrays, step.each);
      first_.session().set_inputs(arrays != nullptr ? all_for_first : to_first(step.arrays), step.each);
      add_outputs(run_sample());
    }
    for (OutputRow& row : rows_) row.difference.judge(tolerance_);
    for (Difference& d : judged_) d.judge(tolerance_);
  }

  bool within() const {
    return std::all_of(rows_.begin(), rows_.end(), [](const OutputRow& row) { return row.within(); });
  }

  nlohmann::json to_json() const {
    nlohmann::json outputs = nlohmann::json::array();
    for (const OutputRow& row : rows_)
      outputs.push_back(
          row.problem.empty()
              ? row.difference.to_json(row.name)
              : nlohmann::json{{"name", row.name}, {"within", false}, {"problem", row.problem}});
    nlohmann::json json{{"within", within()}, {"samples", samples_}, {"outputs", outputs}};
    if (!inputs_.skipped().empty()) json["skipped"] = inputs_.skipped();
    if (tolerance_.min_sqnr) json["min_sqnr_db"] = *tolerance_.min_sqnr;
    if (a_.per_layer) json["layers"] = layers_json(noise_, judged_);
    return json;
  }

  void print() const {
    if (a_.per_layer) print_layers(noise_, a_.all);
    for (const OutputRow& row : rows_) {
      if (!row.problem.empty())
        print_text(fmt::format("{:<32} {}\n", printable(row.name), printable(row.problem)));
      else
        print_text(fmt::format(
            "{:<32} {:<5} {}{}\n", printable(row.name), row.difference.within ? "same" : "DIFF",
            row.difference.to_text(),
            tolerance_.min_sqnr ? fmt::format(" (at least {:g} required)", *tolerance_.min_sqnr) : ""));
    }
  }

 private:
  Arrays to_first(const Arrays& given) const {
    const Arrays numbers = for_first(given, first_.model(), first_.session().entry(), second_.model(),
                                     second_.session().entry());
    return a_.onnx() ? in_float64(numbers) : numbers;
  }

  // Runs both models, and returns the second one's outputs.
  Arrays run_sample() {
    if (!a_.per_layer) {
      first_.session().run();
      second_.session().run();
      return second_.session().outputs();
    }
    layers_.run(first_.session());
    return noise_.run(second_.session(), layers_, [&](const LayerNoise::Row& row, const LayerPair& pair) {
      if (judged_.size() <= row.judged) judged_.resize(row.judged + 1);
      judged_[row.judged].add(pair.exact, pair.rounded, pair.dtype, tolerance_);
    });
  }

  void add_outputs(const Arrays& ys) {
    const Arrays xs = first_.session().outputs();
    const bool fresh = rows_.empty();
    for (size_t k = 0; k < xs.size(); ++k) {
      const auto& [name, x] = xs[k];
      if (fresh)
        rows_.push_back({name, port_of(first_.model(), first_.session().entry(), false, name),
                         port_of(second_.model(), second_.session().entry(), false, name)});
      rows_[k].add(x, find_array(ys, name), tolerance_);
    }
  }

  const CompareArguments& a_;
  OpenModel &first_, &second_;
  InputData& inputs_;
  Tolerance tolerance_;
  ExactLayers layers_;
  LayerNoise noise_;
  int64_t samples_ = 0;
  std::vector<OutputRow> rows_;
  std::vector<Difference> judged_;
};

void run_compare(CompareArguments a, Outcome& outcome) {
  check_flags(a);
  Preprocessing how = a.data.preprocessing();
  if (!a.input_types.empty()) a.conversion.input_types = a.input_types, a.conversion.data = a.data;
  ConvertArguments of_b = a.conversion;
  if (a.onnx() && !ModelSource::is_onnx(a.b)) of_b.constants.clear();  // the file has them already
  ModelSource source;
  const bool has_key = a.onnx() || !ModelSource::is_onnx(a.b);  // the key is that of the .sinter files
  if (!source.open(a.b, of_b, a.common, has_key ? a.trust : TrustOption(), outcome)) return;
  const LoweringOptions lowering = conversion_options(a.conversion).lowering;
  if (!a.input_types.empty()) how.built_in = true;
  InputData inputs = open_inputs(a.inputs, a.random, how);
  const auto entry_of = [&](const Model& model) { return a.entry.for_arrays(model, inputs.arrays(), true); };
  OpenModel second(source.load(), entry_of);
  Diagnostics diagnostics;
  const std::unique_ptr<OpenModel> first =
      a.onnx() ? open_original(a, second.model(), second.session().entry(), lowering, diagnostics)
               : std::make_unique<OpenModel>(
                     LoadedModel(a.a, a.trust.key(), LoadedModel::Reading::kMapped, lowering.custom_ops),
                     entry_of);
  if (!first) {
    outcome.refuse(a.common, diagnostics);
    return;
  }
  Comparison comparison(a, *first, second, inputs);
  comparison.run();
  outcome.exit_code = comparison.within() ? 0 : 1;
  if (outcome.takes_json(a.common))
    outcome.give(comparison.to_json());
  else if (!a.common.quiet)
    comparison.print();
}

}  // namespace

void add_compare(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<CompareArguments>();
  CLI::App* c =
      app.add_subcommand("compare", "Compare two models' outputs; an ONNX model is computed in float64");
  c->add_option("A", a->a, "The reference: an .onnx or .sinter file")->required();
  c->add_option("B", a->b,
                "The .sinter file to compare with it, or an .onnx file, which is converted for this alone")
      ->required();
  begin_group(*c, flag_group::kInput);
  add_value(*c, "--inputs", a->inputs, "DATA", "Samples as for run");
  add_value(*c, "--random", a->random, "SEED", "Compare on random numbers instead, as run --random does");
  a->entry.add_to(*c);
  add_value(*c, "--input-type", a->input_types, "[INPUT=]uint8",
            "As B was converted: the ONNX model begins with the same preprocessing");
  c->add_flag("--each", a->each,
              "The arrays are stacks of samples (inferred from their shapes where these differ)");
  c->add_flag(
      "--stateful", a->stateful,
      "Keep both models' state from sample to sample; without it every sample begins with the initial state");
  add_value(*c, "--samples", a->samples, "N", "Compare only the first N samples of a stack")
      ->check(CLI::Range(1, 1 << 30));
  begin_group(*c, flag_group::kReports);
  c->add_flag("--per-layer", a->per_layer,
              "Rank the layers by the noise that they add to exact operands, with causes");
  c->add_flag("--all", a->all, "With --per-layer: every layer")->needs("--per-layer");
  begin_group(*c, flag_group::kAccuracy);
  add_value(*c, "--rtol", a->tolerance.rtol, "R",
            "Allowed difference relative to each element (default 1e-3; integers: exact)");
  add_value(*c, "--atol", a->tolerance.atol, "A",
            "Allowed absolute difference (default 1e-5 of the largest element)");
  add_value(*c, "--min-sqnr", a->tolerance.min_sqnr, "DB",
            "The required SQNR (signal-to-quantization-noise ratio) in dB, instead of tolerances");
  a->data.add_to(*c);
  add_source_flags(*c, a->conversion);
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->footer(
      "Exit code 0: equal within the tolerance; 1: different.\n\n"
      "Examples:\n"
      "  sinter compare net.onnx net.sinter --random 1\n"
      "  sinter compare net.onnx net.onnx --random 1 --target native\n"
      "  sinter compare net.onnx net.int8.sinter --inputs samples.npz --min-sqnr 25 --per-layer");
  c->callback([a, &outcome] { run_compare(*a, outcome); });
}

}  // namespace sinter::convert

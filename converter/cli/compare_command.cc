// sinter compare: do two models (an ONNX file computed in float64, or .sinter files) give the same outputs?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "converter/cli/commands.h"
#include "converter/cli/compared_ports.h"
#include "converter/cli/convert_options.h"
#include "converter/cli/data_flags.h"
#include "converter/cli/file_view.h"
#include "converter/cli/input_data.h"
#include "converter/cli/layer_noise.h"
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
  std::optional<double> rtol, atol, min_sqnr;
};

// The differences between two arrays, over all samples.
struct Difference {
  double largest = 0;  // the largest absolute difference
  double peak = 0;     // the largest magnitude of the first
  double signal = 0, noise = 0;
  uint64_t finite = 0;              // pairs of finite numbers; signal and noise are sums over these
  uint64_t not_finite = 0;          // NaN or infinite in one of the two, but not the same in the other
  uint64_t not_finite_in_both = 0;  // the same infinity, or NaN twice
  uint64_t nan_in_both = 0;
  bool within = true;
  double relative() const { return peak > 0 ? largest / peak : largest; }
  // Returns nothing where no elements can be compared.
  std::optional<double> sqnr_db() const {
    if (not_finite > 0) return -999;
    if (finite == 0 && not_finite_in_both > 0) return std::nullopt;
    return decibels(signal, noise);
  }
  // Whether all values are NaN, which equals nothing, so that agreement cannot be decided.
  bool only_nan() const { return nan_in_both > 0 && finite == 0 && nan_in_both == not_finite_in_both; }

  void add(const std::vector<double>& x, const std::vector<double>& y, DType dtype,
           const CompareArguments& args) {
    double now = 0;
    for (const double v : x)
      if (std::isfinite(v)) now = std::max(now, std::fabs(v));
    peak = std::max(peak, now);
    const bool exact = !is_float(dtype) && !args.rtol && !args.atol;
    const double rtol = args.rtol.value_or(1e-3), atol = args.atol.value_or(1e-5 * now);
    for (size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
        const bool both_nan = std::isnan(x[i]) && std::isnan(y[i]);
        if (both_nan || x[i] == y[i]) {
          ++not_finite_in_both, nan_in_both += both_nan;
          continue;
        }
        ++not_finite;
        within = false;
        largest = std::numeric_limits<double>::infinity();
        continue;
      }
      ++finite;
      const double e = std::fabs(x[i] - y[i]);
      largest = std::max(largest, e);
      signal += x[i] * x[i], noise += e * e;
      within &= args.min_sqnr || e == 0 || (!exact && e <= atol + rtol * std::fabs(x[i]));
    }
  }
  void judge(const CompareArguments& args) {
    if (args.min_sqnr) within = not_finite == 0 && sqnr_db().value_or(999) >= *args.min_sqnr;
    within &= !only_nan();
  }
  // Returns the difference with null in place of infinite numbers, which JSON does not have.
  nlohmann::json to_json(const std::string& name) const {
    const auto number = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); };
    const std::optional<double> db = sqnr_db();
    return {{"name", name},
            {"max_abs", number(largest)},
            {"max_rel", number(relative())},
            {"sqnr_db", db ? nlohmann::json(*db) : nlohmann::json()},
            {"not_finite", not_finite},
            {"not_finite_in_both", not_finite_in_both},
            {"within", within}};
  }
  std::string to_text() const {
    const std::optional<double> db = sqnr_db();
    std::string text = finite == 0 && not_finite_in_both + not_finite > 0
                           ? std::string("no two finite numbers to compare")
                           : fmt::format("largest difference {:.3g} ({:.3g} of the peak), {:.1f} dB", largest,
                                         relative(), db.value_or(-999));
    if (not_finite > 0)
      text += fmt::format(", {} element{} NaN or infinite in one of the two", not_finite,
                          not_finite == 1 ? "" : "s");
    if (not_finite_in_both > 0)
      text += fmt::format(", {} element{} NaN or infinite in both", not_finite_in_both,
                          not_finite_in_both == 1 ? "" : "s");
    return text;
  }
};

struct OutputRow {
  std::string name;
  PortInfo a, b;
  std::string problem = {};
  Difference difference = {};

  // Integers are compared as such where both have the same scale, else by their numbers.
  void add(const ConstantPtr& x, const ConstantPtr& y, const CompareArguments& args) {
    const auto numbers = [&](const ConstantPtr& array, const PortInfo& port) {
      return port.scale > 0 && !same_numbers(a, b) ? as_numbers(array, integer_scale(port)) : array;
    };
    const ConstantPtr p = numbers(x, a), q = numbers(y, b);
    difference.add(p->as_doubles(), q->as_doubles(), q->dtype(), args);
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

nlohmann::json layer_json(const LayerNoise::Row& row, const Difference& difference) {
  nlohmann::json json = difference.to_json(row.name);
  const ValueNoise n = row.accumulated.result();
  json["node"] = row.node, json["op"] = row.op, json["type"] = dtype_name(row.dtype), json["step"] = row.step;
  json["own_sqnr_db"] = row.own && !n.scaled() ? nlohmann::json(row.own->result().db()) : nlohmann::json();
  if (n.rescaled) json["rescaled"] = true, json["sqnr_db"] = n.db();
  if (n.all.appeared > 0) json["appeared"] = n.all.appeared;
  json["low"] = n.all.low, json["high"] = n.all.high;
  if (n.params) {
    json["scale"] = n.params->scale, json["zero_point"] = n.params->zero_point;
    json["levels"] = n.levels(), json["levels_used"] = n.levels_used();
    json["clipped"] = n.clipped_share();
  }
  if (const int64_t worst = n.channels.size() > 1 ? n.worst_channel() : -1; worst >= 0) {
    json["worst_channel"] = worst;
    json["worst_channel_sqnr_db"] = n.channels[static_cast<size_t>(worst)].db();
  }
  json["cause"] = cause_of(n);
  return json;
}

// Returns the layers ordered by the noise that they add, the worst first; behind these, layers that only move
// elements, then layers with factors that the reference does not have, so that numbers are not comparable.
std::vector<const LayerNoise::Row*> ranked(const LayerNoise& noise) {
  struct Key {
    int group;
    double db;
    const LayerNoise::Row* row;
  };
  std::vector<Key> keys;
  for (const LayerNoise::Row* row : noise.rows()) {
    const ValueNoise n = row->accumulated.result();
    keys.push_back({n.scaled() ? 2 : row->own ? 0 : 1, row->own ? row->own->result().db() : n.db(), row});
  }
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.group != b.group ? a.group < b.group : a.db < b.db;
  });
  std::vector<const LayerNoise::Row*> rows;
  for (const Key& key : keys) rows.push_back(key.row);
  return rows;
}

// Returns the end of a long name, which is more specific than its start.
std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t from = text.size() - (most - 2);
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return ".." + text.substr(from);
}

std::string db_text(double db) {
  return db >= 999 ? "exact" : db <= -999 ? "lost" : fmt::format("{:.1f}", db);
}

void print_layers(const LayerNoise& noise, bool all) {
  constexpr size_t kMostRows = 15;
  const auto rows = ranked(noise);
  print_text(fmt::format("{:>6} {:>6}  {:<16} {:<8} {:<30} {:>12}  {:<14} {}\n", "own", "all", "op", "type",
                         "layer", "levels", "worst channel", "why"));
  for (size_t i = 0; i < rows.size() && (all || i < kMostRows); ++i) {
    const LayerNoise::Row& r = *rows[i];
    const ValueNoise n = r.accumulated.result();
    const int64_t worst = n.channels.size() > 1 && n.all.noise > 0 ? n.worst_channel() : -1;
    print_text(fmt::format(
        "{:>6} {:>6}  {:<16} {:<8} {:<30} {:>12}  {:<14} {}\n",
        r.own && !n.scaled() ? db_text(r.own->result().db()) : "-", db_text(n.db()), r.op,
        dtype_name(r.dtype), shortened(printable(r.name), 30),
        n.params ? fmt::format("{:.0f} of {}", n.levels_used(), n.levels()) : "",
        worst < 0 ? "" : fmt::format("{}: {}", worst, db_text(n.channels[static_cast<size_t>(worst)].db())),
        cause_of(n)));
  }
  if (!all && rows.size() > kMostRows)
    print_text(fmt::format("               and {} more (--all)\n", rows.size() - kMostRows));
  print_text(fmt::format("SQNR in dB; own: with exact operands, all: with the model's own operands\n"));
}

void run_compare(CompareArguments a, Outcome& outcome) {
  for (const auto& [flag, given] : {std::pair("--rtol", a.rtol), std::pair("--atol", a.atol)})
    if (given && !(*given >= 0))
      throw UsageError(fmt::format("{} {:g}: a difference cannot be below 0; give 0 or more", flag, *given));
  Preprocessing how = a.data.preprocessing();
  for (const PortType& t : port_types("--input-type", a.input_types))
    if (t.type == DType::kInt8)
      throw UsageError(
          "--input-type int8: the file holds the scale of its int8 inputs, which compare reads there; leave "
          "it out");
  if (!a.input_types.empty()) a.conversion.input_types = a.input_types, a.conversion.data = a.data;
  const bool onnx = std::filesystem::path(a.a).extension() != ".sinter";
  // The key is that of the .sinter files.
  ModelSource source;
  ConvertArguments of_b = a.conversion;
  if (onnx && !ModelSource::is_onnx(a.b)) of_b.constants.clear();  // the file has them already
  if (!source.open(a.b, of_b, a.common, onnx || !ModelSource::is_onnx(a.b) ? a.trust : TrustOption(),
                   outcome))
    return;
  // The ONNX model gets the shapes that the .sinter file was converted for, and the same preprocessing.
  LoweringOptions lowering = conversion_options(a.conversion).lowering;
  if (!a.input_types.empty()) how.built_in = true;
  InputData inputs = open_inputs(a.inputs, a.random, how);
  // Of the shape set that the data is of.
  const auto open = [&](LoadedModel&& loaded) {
    return std::make_unique<OpenModel>(std::move(loaded), [&](const Model& model) {
      return a.entry.for_arrays(model, inputs.arrays(), true);
    });
  };
  const std::unique_ptr<OpenModel> opened = open(source.load());
  OpenModel& second = *opened;
  const uint32_t entry = second.session().entry();
  for (uint32_t i = 0; i < second.model().input_count(entry); ++i) {
    const PortInfo port = second.model().input(i, entry);
    if (lowering.bytes && port.dtype == DType::kUint8) continue;  // its layout may be another
    lowering.shapes[port.name] = Dims(port.dims.begin(), port.dims.end());
  }
  const fb::Program& program =
      FileView(second.model(), second.model().default_profile(), entry).entry_program();
  for (uint32_t i = 0; i < detail::length(program.lengths()); ++i) {
    const fb::Length& length = *program.lengths()->Get(i);
    lowering.ranges[length.name()->str()] = {length.minimum(), length.maximum()};
  }
  // And the states that it keeps.
  take_states(second.model(), &lowering);
  if (onnx && !lowering.bytes && takes_bytes(second.model(), entry)) {
    Diagnostics ignored;  // what is wrong with the model is found again below
    if (const auto declared = import_model(a.a, ignored))
      check_declared(declared->graph, second.model(), entry);
  }
  Diagnostics diagnostics;
  const std::unique_ptr<OpenModel> first =
      onnx ? open_reference(a.a, lowering, diagnostics)
           : open(LoadedModel(a.a, a.trust.key(), LoadedModel::Reading::kMapped, lowering.custom_ops));
  if (!first) {
    outcome.refuse(a.common, diagnostics);
    return;
  }
  const uint32_t first_entry = first->session().entry();
  check_inputs(first->model(), first_entry, second.model(), entry, onnx);
  constexpr double kQuantized = 20;
  const bool quantized = has_quantized_values(second.model(), entry) &&
                         (onnx || !has_quantized_values(first->model(), first->session().entry()));
  if (quantized && !a.min_sqnr && !a.rtol && !a.atol) a.min_sqnr = kQuantized;
  const Arrays* arrays = inputs.arrays();
  const bool stacks = a.each || (arrays != nullptr && !one_sample(second.model(), entry, *arrays));
  inputs.begin(second.model(), stacks ? &second.session() : nullptr, entry);
  const int64_t samples = a.samples > 0 ? std::min(inputs.count(), a.samples) : inputs.count();
  const auto to_first = [&](const Arrays& given) {
    const Arrays numbers = for_first(given, first->model(), first_entry, second.model(), entry);
    return onnx ? in_float64(numbers) : numbers;
  };
  const Arrays all_for_first = arrays != nullptr ? to_first(*arrays) : Arrays();
  if (a.stateful && !has_state(second.model()))
    throw UsageError(
        fmt::format("--stateful: {} keeps no state between runs; convert the model with --state", a.b));
  std::vector<OutputRow> rows;
  ExactLayers layers(first->model(), first->session().entry());
  LayerNoise noise(second.model(), entry);
  std::vector<Difference> judged;
  const LayerNoise::Judge judge = [&](const LayerNoise::Row& row, const LayerPair& pair) {
    if (judged.size() <= row.judged) judged.resize(row.judged + 1);
    judged[row.judged].add(pair.exact, pair.rounded, pair.dtype, a);
  };
  for (int64_t i = 0; i < samples; ++i) {
    if (!a.stateful) first->session().session().reset(), second.session().session().reset();
    // First those of the file's own types, which a message about data that does not fit has to name.
    const InputData::Step step = *inputs.next();
    second.session().set_inputs(step.arrays, step.each);
    first->session().set_inputs(arrays != nullptr ? all_for_first : to_first(step.arrays), step.each);
    Arrays ys;
    if (a.per_layer) {
      layers.run(first->session());
      ys = noise.run(second.session(), layers, judge);
    } else {
      first->session().run();
      second.session().run();
      ys = second.session().outputs();
    }
    const Arrays xs = first->session().outputs();
    if (i == 0)
      for (const auto& [name, x] : xs)
        rows.push_back({name, port_of(first->model(), first_entry, false, name),
                        port_of(second.model(), entry, false, name)});
    for (size_t k = 0; k < xs.size(); ++k) {
      const ConstantPtr x = xs[k].second, y = find_array(ys, xs[k].first);
      if (!y)
        rows[k].problem = "missing in the second model";
      else if (y->dims() != x->dims())
        rows[k].problem = fmt::format("{} against {}", to_string(x->dims()), to_string(y->dims()));
      else
        rows[k].add(x, y, a);
    }
  }
  bool all = true;
  for (OutputRow& row : rows) {
    row.difference.judge(a);
    all &= row.problem.empty() && row.difference.within;
  }
  for (Difference& d : judged) d.judge(a);
  outcome.exit_code = all ? 0 : 1;
  if (outcome.takes_json(a.common)) {
    nlohmann::json outputs = nlohmann::json::array();
    for (const OutputRow& row : rows)
      outputs.push_back(
          row.problem.empty()
              ? row.difference.to_json(row.name)
              : nlohmann::json{{"name", row.name}, {"within", false}, {"problem", row.problem}});
    nlohmann::json json{{"within", all}, {"samples", samples}, {"outputs", outputs}};
    if (!inputs.skipped().empty()) json["skipped"] = inputs.skipped();
    if (a.min_sqnr) json["min_sqnr_db"] = *a.min_sqnr;
    if (a.per_layer) {
      json["layers"] = nlohmann::json::array();
      for (const LayerNoise::Row* row : ranked(noise))
        json["layers"].push_back(layer_json(*row, judged[row->judged]));
    }
    outcome.give(json);
    return;
  }
  if (a.common.quiet) return;
  if (a.per_layer) print_layers(noise, a.all);
  for (const OutputRow& row : rows) {
    if (!row.problem.empty())
      print_text(fmt::format("{:<32} {}\n", printable(row.name), printable(row.problem)));
    else
      print_text(fmt::format("{:<32} {:<5} {}{}\n", printable(row.name),
                             row.difference.within ? "same" : "DIFF", row.difference.to_text(),
                             a.min_sqnr ? fmt::format(" (at least {:g} required)", *a.min_sqnr) : ""));
  }
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
  add_value(*c, "--inputs", a->inputs, "DATA", "Samples as for run")->group(flag_group::kInput);
  add_value(*c, "--random", a->random, "SEED", "Compare on random numbers instead, as run --random does")
      ->group(flag_group::kInput);
  a->data.add_to(*c);
  a->entry.add_to(*c);
  add_value(*c, "--input-type", a->input_types, "[INPUT=]uint8",
            "As B was converted: the ONNX model begins with the same preprocessing")
      ->group(flag_group::kInput);
  c->add_flag("--per-layer", a->per_layer,
              "Rank the layers by the noise that they add to exact operands, with causes")
      ->group(flag_group::kReports);
  c->add_flag("--all", a->all, "With --per-layer: every layer")
      ->needs("--per-layer")
      ->group(flag_group::kReports);
  c->add_flag("--each", a->each,
              "The arrays are stacks of samples (inferred from their shapes where these differ)")
      ->group(flag_group::kInput);
  c->add_flag(
       "--stateful", a->stateful,
       "Keep both models' state from sample to sample; without it every sample begins with the initial state")
      ->group(flag_group::kInput);
  add_value(*c, "--samples", a->samples, "N", "Compare only the first N samples of a stack")
      ->check(CLI::Range(1, 1 << 30))
      ->group(flag_group::kInput);
  add_value(*c, "--rtol", a->rtol, "R",
            "Allowed difference relative to each element (default 1e-3; integers: exact)")
      ->group(flag_group::kAccuracy);
  add_value(*c, "--atol", a->atol, "A", "Allowed absolute difference (default 1e-5 of the largest element)")
      ->group(flag_group::kAccuracy);
  add_value(*c, "--min-sqnr", a->min_sqnr, "DB",
            "The required SQNR (signal-to-quantization-noise ratio) in dB, instead of tolerances")
      ->group(flag_group::kAccuracy);
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

// sinter run
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "converter/cli/commands.h"
#include "converter/cli/data_flags.h"
#include "converter/cli/fallbacks.h"
#include "converter/cli/host_session.h"
#include "converter/cli/input_data.h"
#include "converter/cli/model_facts.h"
#include "converter/cli/model_source.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/session_flags.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/step_profile.h"
#include "converter/cli/terminal.h"
#include "converter/cli/text_facts.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/read/arrays.h"

namespace sinter::convert {
namespace {

struct RunArguments {
  CommonOptions common;
  TrustOption trust;
  ConvertArguments conversion;
  DataFlags data;
  EntryFlag entry;
  SessionFlags session;
  std::string model, inputs, outputs;
  std::optional<uint64_t> random;
  bool each = false, profile = false, copied = false, stateful = false;
};

// Returns the type, the shape and the range of the numbers.
nlohmann::json summary(const std::string& name, const Constant& array) {
  nlohmann::json json{{"name", name}, {"type", dtype_name(array.dtype())}, {"shape", array.dims()}};
  const std::vector<double> items = array.as_doubles();
  const auto bad = std::count_if(items.begin(), items.end(), [](double x) { return !std::isfinite(x); });
  if (bad > 0) json["not_finite"] = bad;
  std::vector<double> finite;
  std::copy_if(items.begin(), items.end(), std::back_inserter(finite),
               [](double x) { return std::isfinite(x); });
  if (finite.empty()) return json;
  json["min"] = *std::min_element(finite.begin(), finite.end());
  json["max"] = *std::max_element(finite.begin(), finite.end());
  json["mean"] = std::accumulate(finite.begin(), finite.end(), 0.0) / static_cast<double>(finite.size());
  json["first"] = std::vector<double>(
      items.begin(), items.begin() + static_cast<ptrdiff_t>(std::min<size_t>(items.size(), 8)));
  return json;
}

std::string line(const nlohmann::json& s) {
  std::string text =
      fmt::format("{}  {}{}", s["name"].get<std::string>(), s["type"].get<std::string>(), s["shape"].dump());
  if (s.contains("min")) {
    constexpr size_t kMostShown = 3;
    auto first = s["first"].get<std::vector<double>>();
    first.resize(std::min(first.size(), kMostShown));
    text += fmt::format("  min {:g}  max {:g}  mean {:g}  first [{:.4g}]", s["min"].get<double>(),
                        s["max"].get<double>(), s["mean"].get<double>(), fmt::join(first, ", "));
  }
  if (s.contains("not_finite")) text += fmt::format("  ({} elements not finite)", s["not_finite"].dump());
  return text;
}

constexpr int kWarmUpRuns = 2, kFewestWarmRuns = 3, kMostWarmRuns = 20;
constexpr double kMostWarmSeconds = 2;

// Runs the sample again, and profiles the steps once they are warm. Returns the number of profiled runs.
int profile_warm(HostSession& session, const Arrays& arrays, int64_t each, StepProfile* profile) {
  const auto run = [&] {
    session.session().reset();
    session.set_inputs(arrays, each);
    session.run();
  };
  for (int i = 0; i < kWarmUpRuns; ++i) run();
  profile->attach(session.session());
  const auto begin = ProfileClock::now();
  int runs = 0;
  while (runs < kFewestWarmRuns || (runs < kMostWarmRuns && ms_since(begin) < 1000 * kMostWarmSeconds))
    run(), ++runs;
  session.session().set_observer(nullptr);
  return runs;
}

void print_profile(const StepProfile& profile, const HostSession& host, const Model& model, double first_ms,
                   int warm_runs, bool json) {
  const HostSession::Sharing sharing = host.sharing();
  const Requirements& need = host.requirements();
  if (json) {
    print_json({{"profile", profile.json(host, model)},
                {"first_ms", first_ms},
                {"warm_runs", warm_runs},
                {"fallbacks", fallbacks_json(host)},
                {"session_bytes", need.bytes},
                {"packed_bytes", need.packed},
                {"packed_weights_bytes", sharing.packed_weights},
                {"sharing_session_bytes", sharing.session}});
    return;
  }
  print_text(fmt::format("first run {:.4f} ms; then, of {} runs of the first sample after {} to warm up:\n{}",
                         first_ms, warm_runs, kWarmUpRuns, profile.text(host, model)));
  print_text(
      fmt::format("session   {} bytes, {} of them packed weights\n"
                  "sharing   {} bytes of packed weights for all sessions, and {} bytes for each\n",
                  need.bytes, need.packed, sharing.packed_weights, sharing.session));
}

// Returns the outputs of several samples along a first axis, as --each writes them.
Arrays stacked(const std::vector<Arrays>& samples) {
  Arrays result;
  for (size_t i = 0; i < samples.front().size(); ++i) {
    const auto& [name, first] = samples.front()[i];
    Dims dims = first->dims();
    Bytes bytes;
    for (const Arrays& sample : samples) {
      if (sample[i].second->dims() != first->dims())
        throw DataError(
            fmt::format("output '{}' has a different length in each sample; these cannot be stacked", name));
      const LoadedBytes loaded = sample[i].second->load();
      bytes.insert(bytes.end(), loaded.bytes.begin(), loaded.bytes.end());
    }
    if (!dims.empty() && dims[0] == 1)
      dims[0] = static_cast<int64_t>(samples.size());
    else
      dims.insert(dims.begin(), static_cast<int64_t>(samples.size()));
    result.emplace_back(name, Constant::owned(first->dtype(), dims, std::move(bytes)));
  }
  return result;
}

void run_run(const RunArguments& a, Outcome& outcome) {
  check_outputs({{"--outputs", a.outputs}}, {{"the model", a.model}, {"--inputs", a.inputs}});
  InputData inputs = open_inputs(a.inputs, a.random, a.data.preprocessing());
  ModelSource source;
  if (!source.open(a.model, a.conversion, a.common, a.trust, outcome)) return;
  using Reading = LoadedModel::Reading;
  const LoadedModel loaded = source.load(a.copied ? Reading::kCopied : Reading::kMapped);
  if (!a.outputs.empty()) check_arrays_path("--outputs", a.outputs, loaded.model().output_count());
  if (a.stateful && !has_state(loaded.model()))
    throw UsageError(
        fmt::format("--stateful: {} keeps no state between runs; convert the model with --state", a.model));
  const uint32_t entry = a.entry.for_arrays(loaded.model(), inputs.arrays(), a.each);
  HostSession session(loaded, a.session.options(entry));
  StepProfile profile;
  if (!a.common.quiet) warn_of_fallbacks(session);
  Arrays outputs;
  inputs.begin(loaded.model(), a.each ? &session : nullptr, entry);
  std::vector<Arrays> samples;
  double first_ms = 0;
  Arrays first_arrays;
  int64_t first_each = -1;
  while (const auto step = inputs.next()) {
    if (!a.stateful) session.session().reset();
    session.set_inputs(step->arrays, step->each);
    const auto begin = ProfileClock::now();
    session.run();
    if (samples.empty()) first_ms = ms_since(begin), first_arrays = step->arrays, first_each = step->each;
    samples.push_back(session.outputs());
  }
  const int warm_runs = a.profile ? profile_warm(session, first_arrays, first_each, &profile) : 0;
  outputs = inputs.several() ? stacked(samples) : samples.front();
  if (!a.outputs.empty()) write_arrays(a.outputs, outputs);
  if (a.profile) print_profile(profile, session, loaded.model(), first_ms, warm_runs, a.common.json);
  if (!a.outputs.empty() && !a.common.json) return;
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [name, array] : outputs) {
    all.push_back(summary(name, *array));
    const Model& model = loaded.model();
    const PortInfo port = model.output(static_cast<uint32_t>(model.find_output(name.c_str(), entry)), entry);
    if (nlohmann::json best = best_classes(model, port, array); !best.empty())
      all.back()["best"] = std::move(best);
  }
  if (a.common.json && !a.profile) {
    nlohmann::json json{{"outputs", all}, {"fallbacks", fallbacks_json(session)}};
    if (!inputs.skipped().empty()) json["skipped"] = inputs.skipped();
    print_json(json);
  } else if (!a.common.quiet && !a.common.json) {
    for (const nlohmann::json& s : all)
      print_text(line(printable_json(s)) + "\n" + (s.contains("best") ? best_text(s["best"]) : ""));
  }
}

}  // namespace

void add_run(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<RunArguments>();
  CLI::App* c = app.add_subcommand("run", "Run a .sinter file on given inputs");
  c->add_option("model", a->model, "The .sinter file, or an .onnx file, which is converted for this alone")
      ->required();
  begin_group(*c, flag_group::kInput);
  add_value(*c, "--inputs", a->inputs, "DATA",
            fmt::format("Samples: {}. Arrays of a .npz are named as the model's inputs", kDataFormats));
  add_value(*c, "--random", a->random, "SEED",
            "Run on random numbers instead: floats from -1 to 1, bytes from 0 to 255, other integers 0 or 1");
  c->add_flag("--each", a->each, "The arrays are stacks of samples: run them one by one, stack the outputs");
  c->add_flag(
      "--stateful", a->stateful,
      "Keep the model's state from sample to sample; without it every sample begins with the initial state");
  a->entry.add_to(*c);
  begin_group(*c, flag_group::kOutput);
  add_value(*c, "--outputs", a->outputs, "FILE",
            "Where to write the outputs (.npz, or .npy for a single one); without it a summary is printed");
  a->session.add_to(*c);
  begin_group(*c, flag_group::kMeasurement);
  c->add_flag("--profile", a->profile, "Run the first sample again, warm, and print the times of each step");
  begin_group(*c, flag_group::kMemory);
  c->add_flag("--copy", a->copied,
              "Read the model into memory instead of mapping it; the file may then change or be removed");
  a->data.add_to(*c);
  add_source_flags(*c, a->conversion);
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->footer(
      "Examples:\n"
      "  sinter run net.sinter --inputs in.npz --outputs out.npz\n"
      "  sinter run net.sinter --random 1 --profile");
  c->callback([a, &outcome] { run_run(*a, outcome); });
}

}  // namespace sinter::convert

// sinter bench
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/data_flags.h"
#include "converter/cli/fallbacks.h"
#include "converter/cli/file_view.h"
#include "converter/cli/host_session.h"
#include "converter/cli/input_data.h"
#include "converter/cli/made_up_inputs.h"
#include "converter/cli/model_facts.h"
#include "converter/cli/model_source.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/process_facts.h"
#include "converter/cli/session_flags.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/step_profile.h"
#include "converter/cli/step_trace.h"
#include "converter/cli/terminal.h"
#include "converter/import/read/arrays.h"
#include "converter/target/native_target.h"
#include "converter/target/target_names.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {
namespace {

struct BenchArguments {
  CommonOptions common;
  TrustOption trust;
  DataFlags data;
  EntryFlag entry;
  SessionFlags session;
  ConvertArguments conversion;
  std::string model, inputs, trace;
  double seconds = 1.0;
  bool profile = false;
};

// Warns if the file is planned for another processor, because its times have chosen the kernels.
void warn_of_other_processor(const Model& model) {
  std::string fault;
  const FileView view(model);
  const auto* text = view.profile().target();
  const std::optional<Target> planned = text == nullptr ? std::nullopt : parse_target(text->str(), &fault);
  if (!planned || planned->architecture != kHostArchitecture) return;
  const Cpu here = cpu_of(native_target());
  if (cpu_of(*planned) != here)
    print_messages(
        fmt::format("sinter: the kernels are chosen by times of {}, but this machine is {}; convert with "
                    "--target native, or run sinter tune\n",
                    cpu_name(cpu_of(*planned)), cpu_name(here)));
}

// Returns the milliseconds of each of at least five runs. A session whose state is full begins again. A
// trace, if any, ends the runs when it is full.
std::vector<double> times_of_runs(HostSession& host, const Arrays& inputs, double seconds,
                                  StepTrace* trace = nullptr) {
  std::vector<double> times;
  size_t at_reset = 0;  // the number of runs before the last reset
  const auto begin = ProfileClock::now();
  const auto is_full = [&] { return trace != nullptr && trace->full(); };
  while (!is_full() && (times.size() < 5 || (ms_since(begin) < 1000 * seconds && times.size() < 100000))) {
    host.set_inputs(inputs);  // a run may overwrite its inputs' memory; setting them is not timed
    if (trace != nullptr) trace->begin_run();
    const auto t = ProfileClock::now();
    const bool ran = host.session().run().ok();
    if (trace != nullptr) trace->end_run();
    if (ran) {
      times.push_back(ms_since(t));
      continue;
    }
    if (!has_state(host.session().model()) || at_reset == times.size()) host.run();  // throws the message
    host.session().reset();
    at_reset = times.size();
  }
  return times;
}

void run_bench(const BenchArguments& a, Outcome& outcome) {
  check_outputs({{"--trace", a.trace}}, {{"the model", a.model}, {"--inputs", a.inputs}});
  ModelSource source;
  if (!source.open(a.model, a.conversion, a.common, a.trust, outcome)) return;
  Arrays inputs;
  uint32_t entry = 0;
  {
    const LoadedModel before = source.load();  // not timed
    if (a.inputs.empty()) {
      entry = a.entry.of(before.model());
      inputs = made_up_inputs(before.model(), entry);
    } else {
      InputData data(a.inputs, a.data.preprocessing());
      entry = a.entry.for_arrays(before.model(), data.arrays(), false);
      inputs =
          data.arrays() != nullptr ? *data.arrays() : first_inputs(std::move(data), before.model(), entry);
    }
  }
  const auto start = ProfileClock::now();
  const LoadedModel loaded = source.load();
  HostSession host(loaded, a.session.options(entry));
  const double load_ms = ms_since(start);
  if (!a.common.quiet) warn_of_fallbacks(host), warn_of_other_processor(loaded.model());
  host.set_inputs(inputs);
  host.run();
  const double first_ms = ms_since(start);

  std::vector<double> times = times_of_runs(host, inputs, a.seconds);
  std::sort(times.begin(), times.end());
  StepProfile profile;
  if (a.profile) {
    profile.attach(host.session());
    times_of_runs(host, inputs, a.seconds);
    host.session().set_observer(nullptr);
  }
  StepTrace trace;
  if (!a.trace.empty()) {
    trace.attach(host.session());
    times_of_runs(host, inputs, a.seconds, &trace);
    host.session().set_observer(nullptr);
    trace.write(a.trace, host, loaded, a.session.threads);
  }
  nlohmann::json json{{"model", a.model},
                      {"backend", a.session.backend.empty() ? "planned" : a.session.backend},
                      {"threads", a.session.threads},
                      {"instruction_set", instruction_set()},
                      {"fallbacks", fallbacks_json(host)},
                      {"entry", entry},
                      {"runs", times.size()},
                      {"median_ms", percentile(times, 0.5)},
                      {"p90_ms", percentile(times, 0.9)},
                      {"p99_ms", percentile(times, 0.99)},
                      {"min_ms", times.front()},
                      {"load_ms", load_ms},
                      {"first_ms", first_ms},
                      {"arena_bytes", host.requirements().arena},
                      {"state_bytes", host.requirements().state},
                      {"session_bytes", host.requirements().bytes},
                      {"file_bytes", loaded.file().size()},
                      {"peak_rss_bytes", peak_rss_bytes()}};
  if (a.profile) json["profile"] = profile.json(host, loaded.model());
  if (!a.trace.empty()) json["trace"] = trace.json();
  if (a.common.json) {
    print_json(json);
    return;
  }
  print_text(fmt::format(
      "median    {:.4f} ms ({} runs, {} thread{})\np90       {:.4f} ms\np99       {:.4f} ms\nfastest   "
      "{:.4f} ms\nload      {:.3f} ms (file to "
      "ready)\nfirst     {:.3f} ms (file to first result)\narena     {} bytes\nmemory    {} at most, "
      "including the program\n",
      percentile(times, 0.5), times.size(), a.session.threads, a.session.threads == 1 ? "" : "s",
      percentile(times, 0.9), percentile(times, 0.99), times.front(), load_ms, first_ms,
      host.requirements().arena, readable_bytes(peak_rss_bytes())));
  if (a.profile) print_text(profile.text(host, loaded.model()));
  if (!a.trace.empty()) print_text(trace.text());
}

}  // namespace

void add_bench(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<BenchArguments>();
  CLI::App* c = app.add_subcommand("bench", "Measure a .sinter file: time per run, time to load, memory");
  c->add_option("model", a->model, "The .sinter file, or an .onnx file, which is converted for this alone")
      ->required();
  begin_group(*c, flag_group::kInput);
  add_value(*c, "--inputs", a->inputs, "DATA",
            "Samples as for run, the first of which is used; without them small numbers are generated");
  a->entry.add_to(*c);
  a->session.add_to(*c);
  begin_group(*c, flag_group::kMeasurement);
  add_value(*c, "--seconds", a->seconds, "S", "The duration of the measurement")
      ->check(CLI::Range(0.0, 3600.0));
  c->add_flag("--profile", a->profile,
              "Measure the steps in further runs, and print the percentiles and the minimum of each");
  add_value(*c, "--trace", a->trace, "FILE.json",
            "Write the times of the steps in further runs for chrome://tracing and Perfetto");
  a->data.add_to(*c);
  add_source_flags(*c, a->conversion);
  c->footer(
      "Examples:\n  sinter bench net.sinter --threads 4\n  sinter bench net.sinter --profile --seconds 5");
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a, &outcome] { run_bench(*a, outcome); });
}

}  // namespace sinter::convert

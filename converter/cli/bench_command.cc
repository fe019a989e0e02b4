// sinter bench
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
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
#include "converter/cli/process_facts.h"
#include "converter/cli/processors.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/step_profile.h"
#include "converter/import/arrays.h"
#include "converter/target/native_target.h"
#include "converter/target/target_names.h"
#include "platforms/simd/simd_kernels.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct BenchArguments {
  CommonOptions common;
  TrustOption trust;
  CustomOpsOption custom_ops;
  DataFlags data;
  EntryFlag entry;
  std::string model, inputs, backend;
  int threads = 1;
  std::string processors;
  double seconds = 1.0;
  bool profile = false;
};

// Kernels are chosen by the times of the processor that the file is planned for.
void warn_of_other_processor(const Model& model) {
  std::string fault;
  const FileView view(model);
  const auto* text = view.profile().target();
  const std::optional<Target> planned = text == nullptr ? std::nullopt : parse_target(text->str(), &fault);
  if (!planned || planned->architecture != kHostArchitecture) return;
  const Cpu here = cpu_of(native_target());
  if (cpu_of(*planned) != here)
    fmt::print(stderr,
               "sinter: the kernels are chosen by times of {}, but this machine is {}; convert with "
               "--target native, or run sinter tune\n",
               cpu_name(cpu_of(*planned)), cpu_name(here));
}

// Milliseconds of each of at least five runs.
std::vector<double> times_of_runs(HostSession& host, const Arrays& inputs, double seconds) {
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 || (ms_since(begin) < 1000 * seconds && times.size() < 100000)) {
    host.set_inputs(inputs);  // a run may use its inputs' memory; not part of the time
    const auto t = Clock::now();
    host.run();
    times.push_back(ms_since(t));
  }
  return times;
}

void run_bench(const BenchArguments& a) {
  const std::optional<PublicKey> key = a.trust.key();
  const auto custom_ops = a.custom_ops.load();
  Arrays inputs;
  uint32_t entry = 0;
  {
    const LoadedModel before(a.model, key, LoadedModel::Reading::kMapped, custom_ops);  // not a part of the times
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
  const auto start = Clock::now();
  const LoadedModel loaded(a.model, key, LoadedModel::Reading::kMapped, custom_ops);
  HostSession host(loaded, {.threads = a.threads,
                            .backend = a.backend,
                            .processors = parse_processors(a.processors),
                            .entry = entry});
  const double load_ms = ms_since(start);
  if (!a.common.quiet) warn_of_fallbacks(host), warn_of_other_processor(loaded.model());
  host.set_inputs(inputs);
  host.run();
  const double first_ms = ms_since(start);

  std::vector<double> times = times_of_runs(host, inputs, a.seconds);
  std::sort(times.begin(), times.end());
  StepProfile profile(StepProfile::Of::kLowest);
  if (a.profile) {
    profile.attach(host.session());
    times_of_runs(host, inputs, a.seconds);
    host.session().set_observer(nullptr);
  }
  nlohmann::json json{{"model", a.model},
                      {"backend", a.backend.empty() ? "planned" : a.backend},
                      {"threads", a.threads},
                      {"instruction_set", simd_target()},
                      {"fallbacks", fallbacks_json(host)},
                      {"entry", entry},
                      {"runs", times.size()},
                      {"median_ms", times[times.size() / 2]},
                      {"min_ms", times.front()},
                      {"load_ms", load_ms},
                      {"first_ms", first_ms},
                      {"arena_bytes", host.requirements().arena},
                      {"state_bytes", host.requirements().state},
                      {"session_bytes", host.requirements().bytes},
                      {"file_bytes", loaded.file().size()},
                      {"peak_rss_bytes", peak_rss_bytes()}};
  if (a.profile) json["profile"] = profile.json(host, loaded.model());
  if (a.common.json) {
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print(
      "median    {:.4f} ms ({} runs, {} thread{})\nfastest   {:.4f} ms\nload      {:.3f} ms (file to "
      "ready)\nfirst     {:.3f} ms (file to first result)\narena     {} bytes\nmemory    {} at most, "
      "including the program\n",
      times[times.size() / 2], times.size(), a.threads, a.threads == 1 ? "" : "s", times.front(), load_ms,
      first_ms, host.requirements().arena, readable_bytes(peak_rss_bytes()));
  if (a.profile) fmt::print("{}", profile.text(host, loaded.model()));
}

}  // namespace

void add_bench(CLI::App& app, Outcome&) {
  auto a = std::make_shared<BenchArguments>();
  CLI::App* c = app.add_subcommand("bench", "Measure a .sinter file: time per run, time to load, memory");
  c->add_option("model", a->model, "The .sinter file")->required();
  c->add_option("--inputs", a->inputs,
                "Samples as for run, the first of which is used; without them small numbers are generated");
  a->data.add_to(*c);
  a->entry.add_to(*c);
  c->add_option("--threads", a->threads, "The number of threads")->check(CLI::Range(1, 1024));
  c->add_option("--processors", a->processors, kProcessorsHelp)->type_name("LIST");
  c->add_option("--backend", a->backend, "Use this backend wherever it can");
  c->add_option("--seconds", a->seconds, "The duration of the measurement")->check(CLI::Range(0.0, 3600.0));
  c->add_flag("--profile", a->profile,
              "Measure the steps in further runs, and print the lowest time of each");
  a->custom_ops.add_to(*c);
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a] { run_bench(*a); });
}

}  // namespace sinter::convert

// sinter tune
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/data_flags.h"
#include "converter/cli/host_session.h"
#include "converter/cli/input_data.h"
#include "converter/cli/kernel_choice.h"
#include "converter/cli/made_up_inputs.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/pending_file.h"
#include "converter/sign/rewrite_model.h"
#include "runtime/model/format.h"

namespace sinter::convert {
namespace {

using Clock = std::chrono::steady_clock;

struct TuneArguments {
  CommonOptions common;
  TrustOption trust;
  CustomOpsOption custom_ops;
  DataFlags data;
  EntryFlag entry;
  std::string model, out, inputs, times, key;
  int threads = 1;
  double seconds = 2.0;
};

// Thrown to end the writing of a file that would be slower.
struct Slower {};

// A shape set, and the inputs on which it is measured.
struct TunedSet {
  uint32_t entry = 0;
  Arrays inputs;
};

// Returns the shape set of --entry or of the data, else all.
std::vector<TunedSet> sets_to_tune(const TuneArguments& a, const Model& model) {
  if (a.inputs.empty()) {
    std::vector<TunedSet> sets;
    const uint32_t first = a.entry.of(model), end = a.entry.number ? first + 1 : model.entry_count();
    for (uint32_t entry = first; entry < end; ++entry) sets.push_back({entry, made_up_inputs(model, entry)});
    return sets;
  }
  InputData data(a.inputs, a.data.preprocessing());
  const uint32_t entry = a.entry.for_arrays(model, data.arrays(), true);
  return {{entry, first_inputs(std::move(data), model, entry)}};
}

// The lowest times in milliseconds of a run with the old file and with the new one, measured in turns.
struct BothTimes {
  double before = 0, after = 0;
};
BothTimes compare_files(const LoadedModel& before, const LoadedModel& after, const TunedSet& set, int threads,
                        double seconds) {
  const Arrays& inputs = set.inputs;
  const HostSession::Options options{.threads = threads, .entry = set.entry};
  HostSession sessions[2] = {{before, options}, {after, options}};
  double lowest[2] = {};
  const auto begin = Clock::now();
  for (int round = 0; round < 5 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds;
       ++round)
    for (int i = 0; i < 2; ++i) {
      sessions[i].set_inputs(inputs);
      const auto start = Clock::now();
      sessions[i].run();
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      lowest[i] = round == 0 ? ms : std::min(lowest[i], ms);
    }
  return {lowest[0], lowest[1]};
}

nlohmann::json choices_json(const Model& model, const std::vector<KernelChoice>& choices) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [planned, chosen] : choices) {
    list.push_back({{"program", planned.program},
                    {"step", planned.step},
                    {"op", model.step_op(planned.step, planned.program)},
                    {"name", model.step_name(planned.step, planned.program)},
                    {"planned", planned.backend},
                    {"planned_us", planned.nanoseconds / 1e3},
                    {"chosen", chosen.backend},
                    {"chosen_us", chosen.nanoseconds / 1e3}});
    if (!planned.kernel.empty()) list.back()["planned_kernel"] = planned.kernel;
    if (!chosen.kernel.empty()) list.back()["chosen_kernel"] = chosen.kernel;
  }
  return list;
}

// "simd (qs8_gemm_8x32_vnni) 12.3 us"
std::string timed_kernel(const StepTime& t) {
  return fmt::format("{}{} {:.1f} us", t.backend, t.kernel.empty() ? "" : fmt::format(" ({})", t.kernel),
                     t.nanoseconds / 1e3);
}

void run_tune(const TuneArguments& a, Outcome& outcome) {
  const std::filesystem::path out = a.out.empty() ? a.model : a.out;
  check_output(out);
  check_outputs({{"-o", a.out}}, {{"--key", a.key}, {"--inputs", a.inputs}, {"--times", a.times}});
  const std::unique_ptr<SecretKey> key(a.key.empty() ? nullptr : new SecretKey(SecretKey::read(a.key)));
  const std::shared_ptr<const CustomOperators> custom_ops = a.custom_ops.load();
  const LoadedModel loaded(a.model, a.trust.key(), LoadedModel::Reading::kMapped, custom_ops);
  require_constants(loaded, "tune");
  const Model& model = loaded.model();
  const auto signature = format::read_signature(loaded.file());
  if (signature.ok() && !key)
    throw UsageError(
        fmt::format("{}: is signed, which the tuned file would not be; give --key to sign it", a.model));

  uint32_t profile = model.default_profile();
  std::vector<StepTime> times;
  std::vector<TunedSet> sets;
  if (a.times.empty()) {
    sets = sets_to_tune(a, model);
    for (const TunedSet& set : sets) {
      const std::vector<StepTime> own = measure_steps(loaded, set.entry, set.inputs, a.threads, a.seconds);
      times.insert(times.end(), own.begin(), own.end());
    }
  } else {
    std::string name;
    times = read_step_times(a.times, &name);
    for (profile = 0; profile < model.profile_count() && name != model.profile_name(profile);) ++profile;
    if (profile == model.profile_count())
      throw DataError(fmt::format("{}: measures profile '{}', which {} does not have; measure this file",
                                  a.times, name, a.model));
  }
  const FileView view(model, profile);
  const std::vector<KernelChoice> choices = choose_kernels(view, times);
  const std::vector<std::byte> structure = with_choices(loaded, profile, choices);

  BothTimes both;
  bool slower = false;
  const auto check = [&](const std::filesystem::path& file) {
    const LoadedModel tuned(file, key ? std::optional(key->public_key()) : std::nullopt,
                            LoadedModel::Reading::kMapped, custom_ops);
    if (choices.empty()) return;
    for (const TunedSet& set : sets) {
      const BothTimes own = compare_files(loaded, tuned, set, a.threads, a.seconds);
      both.before += own.before, both.after += own.after;
    }
    slower = both.after > both.before;
    if (slower) throw Slower();
  };
  const bool writes = !choices.empty() || !a.out.empty();
  try {
    if (writes) rewrite_model(loaded.file(), {structure, key.get()}, out, check);
  } catch (const Slower&) {
    outcome.exit_code = 1;
  }

  if (a.common.json) {
    nlohmann::json entries = nlohmann::json::array();
    for (const TunedSet& set : sets) entries.push_back(set.entry);
    nlohmann::json json{{"model", a.model},
                        {"profile", model.profile_name(profile)},
                        {"threads", a.threads},
                        {"entries", entries},
                        {"timed_steps", times.size()},
                        {"changed", choices_json(model, choices)}};
    if (both.before > 0) json["before_ms"] = both.before, json["after_ms"] = both.after;
    if (writes && !slower) json["out"] = out.string();
    outcome.give(json);
    return;
  }
  if (slower)
    print_messages(fmt::format(
        "sinter: the tuned file takes {:.4f} ms, the given one {:.4f} ms; nothing is written, run it "
        "again on a quiet machine\n",
        both.after, both.before));
  if (a.common.quiet) return;
  if (sets.size() > 1)
    print_text(fmt::format("shapes     all {} sets; run times are their sum\n", sets.size()));
  for (const auto& [planned, chosen] : choices) {
    const uint32_t program = planned.program, step = planned.step;
    print_text(fmt::format("step {:>4}  {:<16} {} instead of {}  {}\n",
                           sets.size() > 1 ? fmt::format("{}.{}", program, step) : fmt::format("{}", step),
                           model.step_op(step, program), timed_kernel(chosen), timed_kernel(planned),
                           printable(model.step_name(step, program))));
  }
  print_text(fmt::format("changed    {} steps of profile {}\n", choices.size(), model.profile_name(profile)));
  if (both.before > 0 && !slower)
    print_text(fmt::format("run        {:.4f} ms, before {:.4f} ms\n", both.after, both.before));
  if (writes && !slower) print_text(fmt::format("wrote      {}\n", out.string()));
}

}  // namespace

void add_tune(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<TuneArguments>();
  CLI::App* c = app.add_subcommand(
      "tune", "Measure the kernels of each step on this machine, and store the fastest in the .sinter file");
  c->add_option("model", a->model, "The .sinter file")->required();
  begin_group(*c, flag_group::kOutput);
  add_value(*c, "-o,--output", a->out, "FILE", "The file to write; by default the model is replaced");
  add_value(*c, "--key", a->key, "NAME.key", "Sign the file with this secret key (sinter keygen)");
  begin_group(*c, flag_group::kInput);
  add_value(*c, "--inputs", a->inputs, "DATA",
            "Samples as for run, the first of which is used; without them small numbers are generated");
  a->entry.add_to(*c, "Tune only this shape set, by number from 0; without it that of the data, or all");
  begin_group(*c, flag_group::kTarget);
  add_threads(*c, a->threads);
  begin_group(*c, flag_group::kMeasurement);
  add_value(*c, "--seconds", a->seconds, "S", "The duration of each of the two measurements of a shape set")
      ->check(CLI::Range(0.0, 3600.0));
  add_value(*c, "--times", a->times, "TIMES",
            "Times from a board instead of this machine: the output of sinter_time_steps");
  a->data.add_to(*c);
  a->custom_ops.add_to(*c);
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->footer(
      "Examples:\n"
      "  sinter tune net.sinter -o net.tuned.sinter\n"
      "  sinter_time_steps net.sinter > times.txt       # on a board\n"
      "  sinter tune net.sinter --times times.txt       # on the workstation");
  c->callback([a, &outcome] { run_tune(*a, outcome); });
}

}  // namespace sinter::convert

// sinter inspect: the contents of a file, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/device_places.h"
#include "converter/cli/embedded_files.h"
#include "converter/cli/fallbacks.h"
#include "converter/cli/file_view.h"
#include "converter/cli/file_work.h"
#include "converter/cli/host_session.h"
#include "converter/cli/inspect_memory.h"
#include "converter/cli/inspect_together.h"
#include "converter/cli/ledger_view.h"
#include "converter/cli/model_facts.h"
#include "converter/cli/model_source.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/step_facts.h"
#include "converter/cli/target_memory.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/pending_file.h"
#include "converter/report/conversion_report.h"
#include "converter/report/summary.h"
#include "converter/target/target_names.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

struct InspectArguments {
  CommonOptions common;
  TrustOption trust;
  EntryFlag entry;
  ConvertArguments conversion;
  std::vector<std::string> models;
  std::string model, html, backend, target;
  int threads = 1;
  bool steps = false, memory = false, types = false;
};

// Returns the key that the file names as its signer's.
std::optional<PublicKey> signer_of(const LoadedModel& loaded) {
  const auto signature = format::read_signature(loaded.file());
  if (!signature.ok()) return std::nullopt;
  PublicKey key;
  std::copy_n(signature.value().public_key, key.bytes.size(), key.bytes.begin());
  return key;
}

std::string signer_text(const std::optional<PublicKey>& signer, bool trusted) {
  if (!signer) return "no";
  return fmt::format("with key {} ({})", signer->id(),
                     trusted ? "the given one" : "not checked against an owner's key; give --public-key");
}

// Returns the profile for the requested target; without one, the profile that runs here.
uint32_t profile_of(const Model& model, const InspectArguments& a) {
  if (a.target.empty()) return model.default_profile();
  std::vector<std::string> names;
  for (uint32_t i = 0; i < model.profile_count(); ++i) {
    if (a.target == model.profile_name(i)) return i;
    names.emplace_back(model.profile_name(i));
  }
  throw DataError(fmt::format("{}: the file has no profile for target '{}'; {}", a.model, a.target,
                              advise_target(names, a.target)));
}

// Returns for each profile its target, its kernels, and the host memory of its default entry.
nlohmann::json profiles_json(const Model& model) {
  nlohmann::json list = nlohmann::json::array();
  for (uint32_t i = 0; i < model.profile_count(); ++i) {
    const FileView view(model, i);
    uint64_t arena = 0;
    for (uint32_t r = 0; r < detail::length(view.entry_plan().regions()); ++r)
      if (const fb::Region& region = *view.entry_plan().regions()->Get(r); region.memory_kind() == 0)
        arena += region.bytes();
    nlohmann::json backends = nlohmann::json::array();
    for (uint32_t b = 0; b < detail::length(view.profile().backends()); ++b)
      backends.push_back(view.profile().backends()->Get(b)->str());
    list.push_back({{"name", model.profile_name(i)},
                    {"target", model.profile_target(i)},
                    {"entries", model.entry_count()},
                    {"programs", view.programs()},
                    {"step_count", model.step_count(view.entry())},
                    {"arena_bytes", arena},
                    {"backends", backends},
                    {"default", i == model.default_profile()}});
  }
  return list;
}
std::string profiles_text(const Model& model) {
  std::string text;
  if (model.profile_count() > 1)
    for (const auto& p : printable_json(profiles_json(model)))
      text += fmt::format("profile   {}: {} steps, arena {} bytes{}\n", p["name"].get<std::string>(),
                          p["step_count"].dump(), p["arena_bytes"].dump(),
                          p["default"].get<bool>() ? ", run here" : "");
  return text;
}

nlohmann::json target_memory_json(const TargetMemory& m) {
  return {{"open_bytes", m.open},
          {"retained_bytes", m.retained},
          {"stable_open_bytes", m.stable_open},
          {"stable_retained_bytes", m.stable_retained},
          {"sealed_open_bytes", m.sealed_open},
          {"session_bytes", m.session},
          {"session_exact", m.session_is.empty()},
          {"stack_bytes", kCortexStackBytes}};
}
std::string target_memory_text(const TargetMemory& m) {
  return fmt::format(
      "{} bytes to open, {} of them kept ({} and {} where the file is in flash); {} bytes for a session{}{}",
      m.open, m.retained, m.stable_open, m.stable_retained, m.session, m.session_is.empty() ? "" : " ",
      m.session_is);
}

// Returns "xnnpack (9), reference (2)".
std::string backends_text(const HostSession& host) {
  std::string text;
  for (const auto& [backend, count] : host.backend_counts())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", backend, count);
  return text.empty() ? "none, because there are no steps" : text;
}

// An open model of the command line, and the profile that is shown.
struct Inspected {
  ModelSource source;
  std::optional<LoadedModel> loaded;
  uint32_t profile = 0;

  // Returns false if the model is refused, which is then in the outcome.
  bool open(const InspectArguments& a, Outcome& outcome) {
    ConvertArguments conversion = a.conversion;
    if (ModelSource::is_onnx(a.model) && !a.target.empty()) conversion.targets = {a.target};
    if (!source.open(a.model, conversion, a.common, a.trust, outcome)) return false;
    loaded.emplace(source.load());
    profile = source.is_converted() ? model().default_profile() : profile_of(model(), a);
    return true;
  }
  const Model& model() const { return loaded->model(); }
};

void run_together(const InspectArguments& a, Outcome& outcome) {
  if (!a.memory || a.steps || a.types || !a.html.empty())
    throw UsageError(
        "inspect: several models can be compared for their memory alone; give --memory, without --steps, "
        "--types and --html, or one model");
  TogetherMemory all;
  for (const std::string& file : a.models) {
    InspectArguments one = a;
    one.model = file;
    Inspected opened;
    if (!opened.open(one, outcome)) return;
    all.models.push_back({file, target_memory(*opened.loaded, opened.profile, a.entry.of(opened.model()))});
  }
  if (outcome.takes_json(a.common))
    outcome.give(to_json(all));
  else
    print_text(to_text(all));
}

void run_inspect(const InspectArguments& a, Outcome& outcome) {
  check_outputs({{"--html", a.html}}, {{"the model", a.model}, {"--public-key", a.trust.file}});
  Inspected opened;
  if (!opened.open(a, outcome)) return;
  const LoadedModel& loaded = *opened.loaded;
  const uint32_t profile = opened.profile;
  const uint32_t entry = a.entry.of(loaded.model());
  const FileView view(loaded.model(), profile, entry);
  const HostSession::Options options = session_here(
      loaded.model(), profile, {a.threads, a.backend, loaded.model().profile_name(profile), {}, entry});
  HostSession host(loaded, options);
  const Requirements& need = host.requirements();
  const HostSession::Sharing sharing = host.sharing();
  const WeightBytes weights(view.root());
  const TypedProducts work = multiply_adds(view, view.entry());
  const TargetMemory there = target_memory(loaded, profile, entry);
  const bool several = loaded.model().entry_count() > 1;
  const nlohmann::json entries = several ? entries_json(loaded, profile, options) : nlohmann::json::array();
  const CommonMemory common(entries);
  const uint64_t shared_weights = several ? SharedConstants(loaded.model(), profile).shared : 0;
  if (!a.html.empty()) write_whole(a.html, memory_page(view, a.model, need));
  const std::optional<PublicKey> signer = signer_of(loaded);
  const bool trusted = !a.trust.file.empty();
  if (outcome.takes_json(a.common)) {
    nlohmann::json json = ports_json(loaded.model(), entry);
    json["producer"] = loaded.model().producer();
    json["target"] = loaded.model().profile_target(profile);
    json["profiles"] = profiles_json(loaded.model());
    if (several) {
      json["entries"] = entries;
      json["entry"] = entry;
      json["shared_weight_bytes"] = shared_weights;
      json["common_arena_bytes"] = common.arena;
      json["common_state_bytes"] = common.state;
    }
    json["file_bytes"] = loaded.file().size();
    json["signed"] = signer.has_value();
    if (signer) json["key_id"] = signer->id(), json["public_key"] = signer->hex(), json["trusted"] = trusted;
    json["arena_bytes"] = need.arena;
    json["state_bytes"] = need.state;
    json["prepared_bytes"] = need.prepared;
    json["packed_bytes"] = need.packed;
    json["session_bytes"] = need.bytes;
    json["target_memory"] = target_memory_json(there);
    json["packed_weights_bytes"] = sharing.packed_weights;
    json["sharing_session_bytes"] = sharing.session;
    json["packings"] = sharing.packings;
    json["packings_in_file"] = sharing.in_file;
    json["step_count"] = loaded.model().step_count(view.entry());
    json["multiply_adds"] = total(work);
    json["backends"] = host.backend_counts();
    json["fallbacks"] = fallbacks_json(host);
    json["devices"] = nlohmann::json::array();
    for (const DeviceRequirements& d : need.on_devices())
      json["devices"].push_back({{"backend", d.backend},
                                 {"bytes", d.bytes},
                                 {"arena_bytes", d.arena},
                                 {"state_bytes", d.state},
                                 {"staging_bytes", d.staging}});
    for (const MissingDevice& d : missing_devices(view))
      json["devices"].push_back({{"backend", d.backend}, {"missing", d.reason}});
    json["weight_bytes"] = weights.all;
    json["widened_weight_bytes"] = weights.widened;
    json["constants_left_out"] = weights.left_out, json["left_out_bytes"] = weights.left_out_bytes;
    if (a.steps) json["steps"] = steps_json(view, host), json["prepare"] = prepare_json(view);
    if (a.memory) json["memory"] = memory_json(view, need);
    if (a.types) json["types"] = types_json(view), json["decisions"] = ledger_of(loaded.model());
    outcome.give(json);
    return;
  }
  if (!a.steps && !a.memory && !a.types) {
    print_text(fmt::format("{}{}", ports_text(loaded.model(), entry), profiles_text(loaded.model())));
    print_text(fmt::format(
        "target    {}\nsigned    {}\nsteps     {}, computed by {}\nwork      {}\nfallbacks {}\nfile      {} "
        "bytes\nweights "
        "  {} bytes, {} of them widened when a session is created\narena     {} bytes, {} of them for "
        "state\nprepared  {} bytes on "
        "this machine, {} of them packed weights\nsession   {} bytes in total\nsharing   {} bytes of packed "
        "weights for all sessions, and {} bytes for each\n",
        loaded.model().profile_target(profile), signer_text(signer, trusted),
        loaded.model().step_count(view.entry()), backends_text(host), products_text(work),
        host.fallbacks().empty() ? "none" : fallbacks_text(host), loaded.file().size(), weights.all,
        weights.widened, need.arena, need.state, need.prepared, need.packed, need.bytes,
        sharing.packed_weights, sharing.session));
    if (PackedWeights::in_file(loaded.model()))
      print_text(fmt::format("packed    {} of {} packed weights of this machine are in the file\n",
                             sharing.in_file, sharing.packings));
    if (weights.left_out > 0)
      print_text(fmt::format(
          "left out  {} constants of {} bytes, which the file has in packed form alone, for one machine\n",
          weights.left_out, weights.left_out_bytes));
    print_text(fmt::format("on target {}\n", target_memory_text(there)));
    if (several)
      print_text(
          fmt::format("{}shared    {} of {} bytes of weights by several shape sets; in one program also an "
                      "arena of {} bytes "
                      "and {} bytes of state\n",
                      entries_text(entries), shared_weights, weights.all, common.arena, common.state));
    for (const DeviceRequirements& d : need.on_devices())
      print_text(fmt::format(
          "device    {}: a block of {} bytes, {} of them planned; {} bytes of staging memory on the host\n",
          d.backend, d.bytes, d.arena, d.staging));
    for (const MissingDevice& d : missing_devices(view))
      print_text(fmt::format("missing   {}: {}; the numbers above are those of the reference kernels\n",
                             d.backend, printable(d.reason)));
  }
  if (a.steps)
    for (const auto& s : printable_json(prepare_json(view))) {
      std::string in;
      for (const auto& x : s["inputs"]) in += (in.empty() ? "" : ", ") + x.get<std::string>();
      print_text(fmt::format("{}.{:<4} {:<16} {:<10} {} = ({})  # once, from {}\n", s["program"].dump(),
                             fmt::format("p{}", s["step"].get<int>()), s["op"].get<std::string>(), "prepare",
                             s["outputs"][0].get<std::string>(), in, s.value("input_type", "")));
    }
  if (a.steps)
    for (const auto& s : printable_json(steps_json(view, host))) {
      std::string in, out;
      for (const auto& x : s["inputs"]) in += (in.empty() ? "" : ", ") + x.get<std::string>();
      for (const auto& x : s["outputs"]) out += (out.empty() ? "" : ", ") + x.get<std::string>();
      const std::string where = s["elided"].get<bool>() ? "elided"
                                : s.contains("transfer")
                                    ? fmt::format("{}->{}", s["transfer"]["from"].get<std::string>(),
                                                  s["transfer"]["to"].get<std::string>())
                                : s.value("memory", "host") != "host" ? s["memory"].get<std::string>()
                                                                      : s["backend"].get<std::string>();
      const int64_t tile = s.value("winograd", int64_t{0});
      const FallbackStep* fallback = host.fallback(s["program"].get<uint32_t>(), s["step"].get<uint32_t>());
      print_text(
          fmt::format("{}.{:<4} {:<16} {:<10} {} = ({})  # {}{}{}{}{}\n", s["program"].dump(),
                      s["step"].get<int>(), s["op"].get<std::string>(), where, out, in,
                      s["name"].get<std::string>(), work_note(s).empty() ? "" : "  " + work_note(s),
                      tile == 0 ? "" : fmt::format("  winograd={}", tile),
                      fallback == nullptr ? "" : "  " + fallback_note(*fallback),
                      s.contains("on_host") ? "  on the host: " + s["on_host"].get<std::string>() : ""));
    }
  if (a.memory) print_text(memory_text(view, need));
  if (a.types) {
    for (const auto& t : printable_json(types_json(view)))
      print_text(fmt::format("{:<10} {:<10} {:<24} {}\n", t["kind"].get<std::string>(), type_text(t),
                             t["shape"].dump(), t["value"].get<std::string>()));
    for (const auto& e : printable_json(ledger_of(loaded.model())))
      print_text(fmt::format("decided    {}\n", ledger_line(e)));
  }
}

}  // namespace

void add_inspect(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<InspectArguments>();
  CLI::App* c = app.add_subcommand("inspect", "Show the contents of a .sinter file");
  c->add_option(
       "model", a->models,
       "The .sinter file, or an .onnx file, which is converted for this alone; several with --memory: "
       "what they take where their sessions share an arena")
      ->required();
  c->add_flag("--steps", a->steps, "Every step: operation, operands, kernel")->group(flag_group::kReports);
  c->add_flag("--memory", a->memory, "Every region, and every value's offset and live range")
      ->group(flag_group::kReports);
  add_value(*c, "--html", a->html, "PAGE", "Write --memory as a page with a drawing: time by address")
      ->needs("--memory")
      ->group(flag_group::kReports);
  c->add_flag("--types", a->types, "Every value's type and shape")->group(flag_group::kReports);
  add_value(*c, "--threads", a->threads, "N", "For a session on N threads")
      ->check(thread_counts())
      ->group(flag_group::kTarget);
  add_value(*c, "--backend", a->backend, "NAME", "For a session that uses this backend wherever it can")
      ->group(flag_group::kTarget);
  add_value(*c, "--target", a->target, "NAME",
            "For the profile planned for this target, instead of the one that runs on this machine; an ONNX "
            "model is converted for it")
      ->group(flag_group::kTarget);
  a->entry.add_to(*c);
  add_source_flags(*c, a->conversion, false);
  c->footer(
      "Examples:\n  sinter inspect net.sinter --steps\n  sinter inspect net.sinter --memory --html "
      "memory.html\n  sinter inspect detect.sinter classify.sinter --memory");
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a, &outcome] {
    if (a->models.size() > 1) return run_together(*a, outcome);
    a->model = a->models.front();
    run_inspect(*a, outcome);
  });
}

}  // namespace sinter::convert

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
#include "converter/cli/text_facts.h"
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

// A file of the command line with a session on this machine.
class Inspection {
 public:
  Inspection(const InspectArguments& a, const Inspected& opened)
      : loaded_(*opened.loaded),
        model_(loaded_.model()),
        profile_(opened.profile),
        entry_(a.entry.of(model_)),
        trusted_(!a.trust.file.empty()),
        options_(session_here(model_, profile_,
                              {a.threads, a.backend, model_.profile_name(profile_), {}, entry_})),
        view_(model_, profile_, entry_),
        host_(loaded_, options_),
        weights_(view_.root()),
        work_(multiply_adds(view_, view_.entry())),
        signer_(signer_of(loaded_)),
        sharing_(host_.sharing()),
        target_(target_memory(loaded_, profile_, entry_)),
        entries_(model_.entry_count() > 1 ? entries_json(loaded_, profile_, options_)
                                          : nlohmann::json::array()) {}

  const FileView& view() const { return view_; }
  const HostSession& host() const { return host_; }
  nlohmann::json to_json() const;
  std::string to_text() const;

 private:
  uint64_t shared_weights() const { return SharedConstants(model_, profile_).shared; }

  const LoadedModel& loaded_;
  const Model& model_;
  uint32_t profile_, entry_;
  bool trusted_;
  HostSession::Options options_;
  FileView view_;
  HostSession host_;
  WeightBytes weights_;
  TypedProducts work_;
  std::optional<PublicKey> signer_;
  HostSession::Sharing sharing_;
  TargetMemory target_;
  nlohmann::json entries_;  // of several shape sets
};

nlohmann::json Inspection::to_json() const {
  const Requirements& need = host_.requirements();
  nlohmann::json json = ports_json(model_, entry_);
  json["producer"] = model_.producer();
  json.update(texts_json(model_));
  json["target"] = model_.profile_target(profile_);
  json["profiles"] = profiles_json(model_);
  if (!entries_.empty()) {
    const CommonMemory common(entries_);
    json["entries"] = entries_;
    json["entry"] = entry_;
    json["shared_weight_bytes"] = shared_weights();
    json["common_arena_bytes"] = common.arena;
    json["common_state_bytes"] = common.state;
  }
  json["file_bytes"] = loaded_.file().size();
  json["signed"] = signer_.has_value();
  if (signer_)
    json["key_id"] = signer_->id(), json["public_key"] = signer_->hex(), json["trusted"] = trusted_;
  json["arena_bytes"] = need.arena;
  json["state_bytes"] = need.state;
  json["prepared_bytes"] = need.prepared;
  json["packed_bytes"] = need.packed;
  json["session_bytes"] = need.bytes;
  json["target_memory"] = convert::to_json(target_);
  json["packed_weights_bytes"] = sharing_.packed_weights;
  json["sharing_session_bytes"] = sharing_.session;
  json["packings"] = sharing_.packings;
  json["packings_in_file"] = sharing_.in_file;
  json["step_count"] = model_.step_count(view_.entry());
  json["multiply_adds"] = total(work_);
  json["backends"] = host_.backend_counts();
  json["fallbacks"] = fallbacks_json(host_);
  json["devices"] = nlohmann::json::array();
  for (const DeviceRequirements& d : need.on_devices())
    json["devices"].push_back({{"backend", d.backend},
                               {"bytes", d.bytes},
                               {"arena_bytes", d.arena},
                               {"state_bytes", d.state},
                               {"staging_bytes", d.staging}});
  for (const MissingDevice& d : missing_devices(view_))
    json["devices"].push_back({{"backend", d.backend}, {"missing", d.reason}});
  json["weight_bytes"] = weights_.all;
  json["widened_weight_bytes"] = weights_.widened;
  json["constants_left_out"] = weights_.left_out, json["left_out_bytes"] = weights_.left_out_bytes;
  return json;
}

std::string Inspection::to_text() const {
  const Requirements& need = host_.requirements();
  std::string text = ports_text(model_, entry_) + texts_text(model_) + profiles_text(model_);
  text += fmt::format(
      "target    {}\nsigned    {}\nsteps     {}, computed by {}\nwork      {}\nfallbacks {}\nfile      {} "
      "bytes\nweights   {} bytes, {} of them widened when a session is created\narena     {} bytes, {} of "
      "them for state\nprepared  {} bytes on this machine, {} of them packed weights\nsession   {} bytes in "
      "total\nsharing   {} bytes of packed weights for all sessions, and {} bytes for each\n",
      model_.profile_target(profile_), signer_text(signer_, trusted_), model_.step_count(view_.entry()),
      backends_text(host_), products_text(work_), host_.fallbacks().empty() ? "none" : fallbacks_text(host_),
      loaded_.file().size(), weights_.all, weights_.widened, need.arena, need.state, need.prepared,
      need.packed, need.bytes, sharing_.packed_weights, sharing_.session);
  if (PackedWeights::in_file(model_))
    text += fmt::format("packed    {} of {} packed weights of this machine are in the file\n",
                        sharing_.in_file, sharing_.packings);
  if (weights_.left_out > 0)
    text += fmt::format(
        "left out  {} constants of {} bytes, which the file has in packed form alone, for one machine\n",
        weights_.left_out, weights_.left_out_bytes);
  text += fmt::format("on target {}\n", convert::to_text(target_));
  if (!entries_.empty()) {
    const CommonMemory common(entries_);
    text += fmt::format(
        "{}shared    {} of {} bytes of weights by several shape sets; in one program also an arena of {} "
        "bytes and {} bytes of state\n",
        entries_text(entries_), shared_weights(), weights_.all, common.arena, common.state);
  }
  for (const DeviceRequirements& d : need.on_devices())
    text += fmt::format(
        "device    {}: a block of {} bytes, {} of them planned; {} bytes of staging memory on the host\n",
        d.backend, d.bytes, d.arena, d.staging);
  for (const MissingDevice& d : missing_devices(view_))
    text += fmt::format("missing   {}: {}; the numbers above are those of the reference kernels\n", d.backend,
                        printable(d.reason));
  return text;
}

void run_inspect(const InspectArguments& a, Outcome& outcome) {
  check_outputs({{"--html", a.html}}, {{"the model", a.model}, {"--public-key", a.trust.file}});
  Inspected opened;
  if (!opened.open(a, outcome)) return;
  const Inspection file(a, opened);
  const Requirements& need = file.host().requirements();
  if (!a.html.empty()) write_whole(a.html, memory_page(file.view(), a.model, need));
  if (outcome.takes_json(a.common)) {
    nlohmann::json json = file.to_json();
    if (a.steps)
      json["steps"] = steps_json(file.view(), file.host()), json["prepare"] = prepare_json(file.view());
    if (a.memory) json["memory"] = memory_json(file.view(), need);
    if (a.types) json["types"] = types_json(file.view()), json["decisions"] = ledger_of(opened.model());
    outcome.give(json);
    return;
  }
  if (!a.steps && !a.memory && !a.types) print_text(file.to_text());
  if (a.steps) print_text(prepare_text(file.view()) + steps_text(file.view(), file.host()));
  if (a.memory) print_text(memory_text(file.view(), need));
  if (!a.types) return;
  for (const auto& t : printable_json(types_json(file.view())))
    print_text(fmt::format("{:<10} {:<10} {:<24} {}\n", t["kind"].get<std::string>(), type_text(t),
                           t["shape"].dump(), t["value"].get<std::string>()));
  for (const auto& e : printable_json(ledger_of(opened.model())))
    print_text(fmt::format("decided    {}\n", ledger_line(e)));
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
  begin_group(*c, flag_group::kReports);
  c->add_flag("--steps", a->steps, "Every step: operation, operands, kernel");
  c->add_flag("--memory", a->memory, "Every region, and every value's offset and live range");
  add_value(*c, "--html", a->html, "PAGE", "Write --memory as a page with a drawing: time by address")
      ->needs("--memory");
  c->add_flag("--types", a->types, "Every value's type and shape");
  begin_group(*c, flag_group::kTarget);
  add_threads(*c, a->threads, "For a session on N threads");
  add_value(*c, "--backend", a->backend, "NAME", "For a session that uses this backend wherever it can");
  add_value(*c, "--target", a->target, "NAME",
            "For the profile planned for this target, instead of the one that runs on this machine; an ONNX "
            "model is converted for it");
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

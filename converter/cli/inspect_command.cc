// sinter inspect and sinter explain: the contents of a file, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "converter/cli/commands.h"
#include "converter/cli/device_places.h"
#include "converter/cli/fallbacks.h"
#include "converter/cli/file_view.h"
#include "converter/cli/host_session.h"
#include "converter/cli/inspect_memory.h"
#include "converter/cli/ledger_view.h"
#include "converter/cli/model_facts.h"
#include "converter/cli/output_paths.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/node_fates.h"
#include "converter/ir/graph.h"
#include "converter/quantize/search/noise.h"
#include "converter/report/conversion_report.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

struct InspectArguments {
  CommonOptions common;
  TrustOption trust;
  std::string model, name, html, backend, target;
  int threads = 1;
  bool steps = false, memory = false, types = false;
};

const char* kind_name(fb::ValueKind kind) {
  switch (kind) {
    case fb::ValueKind::Constant:
      return "constant";
    case fb::ValueKind::Input:
      return "input";
    case fb::ValueKind::State:
      return "state";
    case fb::ValueKind::Prepared:
      return "prepared";
    default:
      return "temporary";
  }
}

// The stored form of a prepared value: the type of the first operands of its steps, with its scaling.
nlohmann::json stored_form(const fb::Program& program, int32_t id) {
  nlohmann::json form;
  const int32_t first = program.prepare()->Get(0)->outputs()->Get(0);
  while (program.values()->Get(static_cast<uint32_t>(id))->kind() == fb::ValueKind::Prepared) {
    const fb::Step& step = *program.prepare()->Get(static_cast<uint32_t>(id - first));
    const auto ins = detail::items(step.inputs());
    if (static_cast<Op>(step.op()) == Op::kDequantize) {
      form["scale"] =
          dtype_name(static_cast<DType>(program.values()->Get(static_cast<uint32_t>(ins[1]))->dtype()));
      if (const int64_t block = detail::items(step.ints())[1]; block > 0) form["block_size"] = block;
    }
    id = ins[0];
  }
  form["type"] = dtype_name(static_cast<DType>(program.values()->Get(static_cast<uint32_t>(id))->dtype()));
  return form;
}
std::string to_text(const nlohmann::json& form) {
  std::string text = form["type"].get<std::string>();
  if (form.contains("scale")) text += fmt::format(" with {} scales", form["scale"].get<std::string>());
  if (form.contains("block_size")) text += fmt::format(" for blocks of {}", form["block_size"].dump());
  return text;
}

// Operands of a step by name; outputs with their types.
void add_operands(const FileView& view, const fb::Program& program, const fb::Step& step,
                  nlohmann::json* out) {
  nlohmann::json inputs = nlohmann::json::array(), outputs = nlohmann::json::array();
  for (const int32_t id : detail::items(step.inputs())) inputs.push_back(view.value(program, id));
  for (const int32_t id : detail::items(step.outputs())) {
    outputs.push_back(view.value(program, id));
    if (id >= 0)
      outputs.back() = outputs.back().get<std::string>() + " " +
                       FileView::type(*program.values()->Get(static_cast<uint32_t>(id)));
  }
  (*out)["op"] = op_name(static_cast<Op>(step.op()));
  (*out)["name"] = view.name(step.name());
  (*out)["inputs"] = inputs, (*out)["outputs"] = outputs;
}

// The memory that the step works in, and where from and to if it moves a value between two.
void add_memories(const FileView& view, uint32_t program, const fb::Step& step, const fb::StepPlan& plan,
                  nlohmann::json* out) {
  std::string in, result;
  if (detail::is_control(step)) {
    (*out)["memory"] = "host";
    return;
  }
  for (const int32_t id : detail::items(step.inputs()))
    if (id >= 0 && in.empty()) in = view.value_memory(program, id);
  for (const int32_t id : detail::items(step.outputs()))
    if (id >= 0 && result.empty()) result = view.value_memory(program, id);
  (*out)["memory"] = result.empty() ? in.empty() ? "host" : in : result;
  if (static_cast<Op>(step.op()) == Op::kCopy && !plan.elided() && !in.empty() && in != result)
    (*out)["transfer"] = {{"from", in}, {"to", result}};
}

nlohmann::json prepare_json(const FileView& view) {
  nlohmann::json list = nlohmann::json::array();
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    for (uint32_t s = 0; s < detail::length(program.prepare()); ++s) {
      const fb::Step& step = *program.prepare()->Get(s);
      nlohmann::json entry{{"program", p}, {"step", s}};
      add_operands(view, program, step, &entry);
      const int32_t in = detail::items(step.inputs())[0];
      if (in >= 0) entry["input_type"] = FileView::type(*program.values()->Get(static_cast<uint32_t>(in)));
      list.push_back(entry);
    }
  }
  return list;
}

// Outputs of a tile of Winograd's algorithm along an axis; 0: the step is computed directly.
int64_t winograd_tile(const fb::Step& step) {
  ConvAttrs attrs;
  const bool decoded = detail::step_op(step) == Op::kConv && detail::decode_attrs(step, &attrs).ok();
  return decoded ? attrs.winograd : 0;
}

nlohmann::json steps_json(const FileView& view, const HostSession& host) {
  nlohmann::json list = nlohmann::json::array();
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    const fb::ProgramPlan& plan = view.plan(p);
    for (uint32_t s = 0; s < detail::length(program.steps()); ++s) {
      const fb::Step& step = *program.steps()->Get(s);
      const fb::StepPlan& chosen = *plan.steps()->Get(s);
      nlohmann::json entry{{"program", p},
                           {"step", s},
                           {"origin", view.origin(step.name())},
                           {"candidates", view.candidates(chosen)},
                           {"elided", chosen.elided()},
                           {"workspace_bytes", chosen.workspace_bytes()},
                           {"max_threads", chosen.max_threads()}};
      add_operands(view, program, step, &entry);
      if (const int64_t tile = winograd_tile(step); tile != 0) entry["winograd"] = tile;
      add_memories(view, p, step, chosen, &entry);
      entry["backend"] = host.step_backend(p, s);
      if (const std::string why = why_on_host(view, p, s); !why.empty()) entry["on_host"] = why;
      if (const FallbackStep* f = host.fallback(p, s)) entry["fallback"] = fallback_json(*f);
      list.push_back(entry);
    }
  }
  return list;
}

nlohmann::json types_json(const FileView& view) {
  nlohmann::json list = nlohmann::json::array();
  for (const uint32_t p : view.programs()) {
    const fb::Program& program = view.program(p);
    for (uint32_t i = 0; i < detail::length(program.values()); ++i) {
      const fb::Value& v = *program.values()->Get(i);
      const auto dims = detail::items(v.dims());
      list.push_back({{"program", p},
                      {"value", view.value(program, static_cast<int32_t>(i))},
                      {"kind", kind_name(v.kind())},
                      {"type", dtype_name(static_cast<DType>(v.dtype()))},
                      {"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
      if (v.scale() > 0) list.back()["scale"] = v.scale(), list.back()["zero_point"] = v.zero_point();
      if (v.kind() == fb::ValueKind::Prepared)
        list.back()["stored"] = stored_form(program, static_cast<int32_t>(i));
    }
  }
  return list;
}

// "float32, stored bfloat16"
std::string type_text(const nlohmann::json& entry) {
  std::string text = entry["type"].get<std::string>();
  if (entry.contains("scale"))
    text += fmt::format(" of {:.6g}, zero at {}", entry["scale"].get<double>(), entry["zero_point"].dump());
  if (entry.contains("stored")) text += ", stored " + to_text(entry["stored"]);
  return text;
}

// The key that the file names as its signer's.
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

// As asked; on the reference kernels where a device of the plan is missing.
HostSession::Options session_here(const Model& model, uint32_t profile, HostSession::Options options) {
  if (options.backend.empty()) options.backend = backend_here(model, profile);
  return options;
}

// The profile that is planned for the requested target; without one, the one that runs here.
uint32_t profile_of(const Model& model, const InspectArguments& a) {
  if (a.target.empty()) return model.default_profile();
  std::string names;
  for (uint32_t i = 0; i < model.profile_count(); ++i) {
    if (a.target == model.profile_name(i)) return i;
    names += fmt::format("{}{}", i == 0 ? "" : ", ", model.profile_name(i));
  }
  throw DataError(
      fmt::format("{}: the file has no profile for target '{}'; it has {}", a.model, a.target, names));
}

// Of each profile: what it is planned for, and what its default entry takes in host memory.
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
    for (const auto& p : profiles_json(model))
      text += fmt::format("profile   {}: {} steps, arena {} bytes{}\n", p["name"].get<std::string>(),
                          p["step_count"].dump(), p["arena_bytes"].dump(),
                          p["default"].get<bool>() ? ", run here" : "");
  return text;
}

// "xnnpack (9), reference (2)"
std::string backends_text(const HostSession& host) {
  std::string text;
  for (const auto& [backend, count] : host.backend_counts())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", backend, count);
  return text.empty() ? "none, because there are no steps" : text;
}

void run_inspect(const InspectArguments& a) {
  check_outputs({{"--html", a.html}}, {{"the model", a.model}, {"--public-key", a.trust.file}});
  const LoadedModel loaded(a.model, a.trust.key());
  const uint32_t profile = profile_of(loaded.model(), a);
  const FileView view(loaded.model(), profile);
  HostSession host(loaded, session_here(loaded.model(), profile,
                                        {a.threads, a.backend, loaded.model().profile_name(profile)}));
  const Requirements& need = host.requirements();
  const HostSession::Sharing sharing = host.sharing();
  const WeightBytes weights(view.root());
  if (!a.html.empty()) write_text(a.html, memory_page(view, a.model, need));
  const std::optional<PublicKey> signer = signer_of(loaded);
  const bool trusted = !a.trust.file.empty();
  if (a.common.json) {
    nlohmann::json json = ports_json(loaded.model());
    json["producer"] = loaded.model().producer();
    json["target"] = loaded.model().profile_target(profile);
    json["profiles"] = profiles_json(loaded.model());
    json["file_bytes"] = loaded.file().size();
    json["signed"] = signer.has_value();
    if (signer) json["key_id"] = signer->id(), json["public_key"] = signer->hex(), json["trusted"] = trusted;
    json["arena_bytes"] = need.arena;
    json["prepared_bytes"] = need.prepared;
    json["packed_bytes"] = need.packed;
    json["session_bytes"] = need.bytes;
    json["packed_weights_bytes"] = sharing.packed_weights;
    json["sharing_session_bytes"] = sharing.session;
    json["step_count"] = loaded.model().step_count(view.entry());
    json["backends"] = host.backend_counts();
    json["fallbacks"] = fallbacks_json(host);
    json["devices"] = nlohmann::json::array();
    for (const DeviceRequirements& d : need.on_devices())
      json["devices"].push_back({{"backend", d.backend},
                                 {"bytes", d.bytes},
                                 {"arena_bytes", d.arena},
                                 {"staging_bytes", d.staging}});
    for (const MissingDevice& d : missing_devices(view))
      json["devices"].push_back({{"backend", d.backend}, {"missing", d.reason}});
    json["weight_bytes"] = weights.all;
    json["widened_weight_bytes"] = weights.widened;
    if (a.steps) json["steps"] = steps_json(view, host), json["prepare"] = prepare_json(view);
    if (a.memory) json["memory"] = memory_json(view, need);
    if (a.types) json["types"] = types_json(view), json["decisions"] = ledger_of(loaded.model());
    fmt::print("{}\n", json.dump(2));
    return;
  }
  if (!a.steps && !a.memory && !a.types) {
    fmt::print("{}{}", ports_text(loaded.model()), profiles_text(loaded.model()));
    fmt::print(
        "target    {}\nsigned    {}\nsteps     {}, computed by {}\nfallbacks {}\nfile      {} bytes\nweights "
        "  {} bytes, {} of them widened when a session is created\narena     {} bytes\nprepared  {} bytes on "
        "this machine, {} of them packed weights\nsession   {} bytes in total\nsharing   {} bytes of packed "
        "weights for all sessions, and {} bytes for each\n",
        loaded.model().profile_target(profile), signer_text(signer, trusted),
        loaded.model().step_count(view.entry()), backends_text(host),
        host.fallbacks().empty() ? "none" : fallbacks_text(host), loaded.file().size(), weights.all,
        weights.widened, need.arena, need.prepared, need.packed, need.bytes, sharing.packed_weights,
        sharing.session);
    for (const DeviceRequirements& d : need.on_devices())
      fmt::print(
          "device    {}: a block of {} bytes, {} of them planned; {} bytes of staging memory on the host\n",
          d.backend, d.bytes, d.arena, d.staging);
    for (const MissingDevice& d : missing_devices(view))
      fmt::print("missing   {}: {}; the numbers above are those of the reference kernels\n", d.backend,
                 d.reason);
  }
  if (a.steps)
    for (const auto& s : prepare_json(view)) {
      std::string in;
      for (const auto& x : s["inputs"]) in += (in.empty() ? "" : ", ") + x.get<std::string>();
      fmt::print("{}.{:<4} {:<16} {:<10} {} = ({})  # once, from {}\n", s["program"].dump(),
                 fmt::format("p{}", s["step"].get<int>()), s["op"].get<std::string>(), "prepare",
                 s["outputs"][0].get<std::string>(), in, s.value("input_type", ""));
    }
  if (a.steps)
    for (const auto& s : steps_json(view, host)) {
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
      fmt::print("{}.{:<4} {:<16} {:<10} {} = ({})  # {}{}{}{}\n", s["program"].dump(), s["step"].get<int>(),
                 s["op"].get<std::string>(), where, out, in, s["name"].get<std::string>(),
                 tile == 0 ? "" : fmt::format("  winograd={}", tile),
                 fallback == nullptr ? "" : "  " + fallback_note(*fallback),
                 s.contains("on_host") ? "  on the host: " + s["on_host"].get<std::string>() : "");
    }
  if (a.memory) fmt::print("{}", memory_text(view, need));
  if (a.types) {
    for (const auto& t : types_json(view))
      fmt::print("{:<10} {:<10} {:<24} {}\n", t["kind"].get<std::string>(), type_text(t), t["shape"].dump(),
                 t["value"].get<std::string>());
    for (const auto& e : ledger_of(loaded.model())) fmt::print("decided    {}\n", ledger_line(e));
  }
}

void run_explain(const InspectArguments& a) {
  if (a.name.empty())
    throw UsageError("explain: the name is empty; give that of a node or value of the ONNX model");
  const LoadedModel loaded(a.model, a.trust.key());
  const FileView view(loaded.model());
  nlohmann::json found = nlohmann::json::array();
  HostSession host(loaded, session_here(loaded.model(), loaded.model().default_profile(), {}));
  const nlohmann::json constant = constant_of(loaded.model(), a.name);
  nlohmann::json fates = fates_of(loaded.model(), a.name);
  // The nodes whose steps do the work of the requested one, and the values read instead of a removed one.
  // Of a constant that left no value: the same of its readers.
  std::set<std::string> nodes{a.name}, names{a.name};
  if (constant.is_object())
    for (const auto& reader : constant["readers"]) {
      nodes.insert(reader.get<std::string>());
      for (auto& f : fates_of(loaded.model(), reader.get<std::string>())) fates.push_back(std::move(f));
    }
  for (const auto& f : fates) {
    if (f.contains("call")) continue;
    if (f.value("became", "") == "step") nodes.insert(f.value("onnx_node", a.name));
    if (f.value("became", "") == "fused") nodes.insert(f.value("into", a.name));
    if (f.value("became", "") == "value") names.insert(f.value("into", a.name));
  }
  // Also under the name of the ONNX value that it represents.
  const auto named = [&](const std::string& name) {
    return names.count(name) != 0 || names.count(exact_name(name)) != 0;
  };
  for (const auto& s : steps_json(view, host)) {
    const std::string step = s["name"].get<std::string>();
    bool hit = nodes.count(step) != 0 || step.starts_with(a.name + "/");
    for (const auto& x : s["inputs"]) hit |= named(x.get<std::string>());
    for (const auto& x : s["outputs"]) {  // "NAME TYPE"
      const std::string text = x.get<std::string>();
      hit |= named(text.substr(0, text.rfind(' ')));
    }
    if (hit) found.push_back(s);
  }
  nlohmann::json values = nlohmann::json::array();
  for (const auto& t : types_json(view))
    if (named(t["value"].get<std::string>())) values.push_back(t);
  nlohmann::json types = nlohmann::json::array();
  const std::string base = exact_name(a.name);
  for (const auto& e : ledger_of(loaded.model())) {
    const std::string value = e.value("value", std::string());
    if (value == a.name || value == base || e.value("node", std::string()) == a.name) types.push_back(e);
  }
  if (found.empty() && values.empty() && types.empty() && fates.empty() && constant.is_null())
    throw DataError(
        fmt::format("{}: neither a node of the ONNX model nor a value has the name '{}' (sinter inspect "
                    "--steps lists the steps; --strip omits names)",
                    a.model, a.name));
  if (a.common.json) {
    nlohmann::json json{
        {"name", a.name}, {"nodes", fates}, {"values", values}, {"steps", found}, {"types", types}};
    if (constant.is_object()) json["constant"] = constant;
    fmt::print("{}\n", json.dump(2));
    return;
  }
  if (constant.is_object() && values.empty()) fmt::print("constant {}\n", constant_words(constant));
  for (const auto& f : fates)
    fmt::print("node '{}' (ONNX {}) was {}\n", f.value("onnx_node", ""), f.value("op", ""), fate_words(f));
  for (const auto& t : values)
    fmt::print("{} is a {} {} {}\n", t["value"].get<std::string>(), t["kind"].get<std::string>(),
               type_text(t), t["shape"].dump());
  for (const auto& s : found)
    fmt::print("step {} {} '{}' (ONNX {}) on {}: {} -> {}\n", s["step"].dump(), s["op"].get<std::string>(),
               s["name"].get<std::string>(), s["origin"].get<std::string>(), s["backend"].get<std::string>(),
               s["inputs"].dump(), s["outputs"].dump());
  for (const auto& e : types) fmt::print("type {}\n", ledger_line(e));
}

}  // namespace

void add_inspect(CLI::App& app, Outcome&) {
  auto a = std::make_shared<InspectArguments>();
  CLI::App* c = app.add_subcommand("inspect", "Show the contents of a .sinter file");
  c->add_option("model", a->model, "The .sinter file")->required();
  c->add_flag("--steps", a->steps, "Every step: operation, operands, kernel");
  c->add_flag("--memory", a->memory, "Every region, and every value's offset and live range");
  c->add_option("--html", a->html, "Write --memory as a page with a drawing: time by address")
      ->needs("--memory");
  c->add_flag("--types", a->types, "Every value's type and shape");
  c->add_option("--threads", a->threads, "For a session on N threads")->check(CLI::Range(1, 1024));
  c->add_option("--backend", a->backend, "For a session that uses this backend wherever it can");
  c->add_option("--target", a->target,
                "For the profile planned for this target, instead of the one that runs on this machine");
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a] { run_inspect(*a); });
}

void add_explain(CLI::App& app, Outcome&) {
  auto a = std::make_shared<InspectArguments>();
  CLI::App* c = app.add_subcommand("explain", "Report the origin and the fate of a tensor or node");
  c->add_option("model", a->model, "The .sinter file")->required();
  c->add_option("name", a->name, "A tensor's or node's name in the ONNX model")->required();
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a] { run_explain(*a); });
}

}  // namespace sinter::convert

// sinter explain: the steps and values that a node or value of the ONNX model has become.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "converter/cli/commands.h"
#include "converter/cli/device_places.h"
#include "converter/cli/ledger_view.h"
#include "converter/cli/model_source.h"
#include "converter/cli/shape_entries.h"
#include "converter/cli/step_facts.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/node_fates.h"
#include "converter/diagnostics/printable.h"
#include "converter/quantize/search/noise.h"

namespace sinter::convert {
namespace {

struct ExplainArguments {
  CommonOptions common;
  TrustOption trust;
  EntryFlag entry;
  ConvertArguments conversion;
  std::string model, name;
};

// Returns the names of the steps and the values.
std::vector<std::string> names_in(const FileView& view, const nlohmann::json& steps) {
  std::set<std::string> names;
  for (const auto& s : steps) names.insert(s["name"].get<std::string>());
  for (const auto& t : types_json(view)) names.insert(t["value"].get<std::string>());
  names.erase("");
  return {names.begin(), names.end()};
}

std::string listed(const nlohmann::json& names) {
  return names.empty() ? "nothing"
                       : fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), ", "));
}

void run_explain(const ExplainArguments& a, Outcome& outcome) {
  if (a.name.empty())
    throw UsageError("explain: the name is empty; give that of a node or value of the ONNX model");
  ModelSource source;
  if (!source.open(a.model, a.conversion, a.common, a.trust, outcome)) return;
  const LoadedModel loaded = source.load();
  const uint32_t profile = loaded.model().default_profile(), entry = a.entry.of(loaded.model());
  const FileView view(loaded.model(), profile, entry);
  nlohmann::json found = nlohmann::json::array();
  HostSession::Options options;
  options.entry = entry;
  HostSession host(loaded, session_here(loaded.model(), profile, options));
  const nlohmann::json constant = constant_of(loaded.model(), a.name);
  nlohmann::json fates = fates_of(loaded.model(), a.name);
  // The nodes whose steps do the work of the requested one, and the values that are read in place of a
  // removed one. The readers stand for a constant that left no value.
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
  // A value is also found under the name of the ONNX value that it represents.
  const auto named = [&](const std::string& name) {
    return names.count(name) != 0 || names.count(exact_name(name)) != 0;
  };
  const nlohmann::json steps = steps_json(view, host);
  for (const auto& s : steps) {
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
        fmt::format("{}: neither a node of the ONNX model nor a value has the name '{}'; {} (sinter inspect "
                    "--steps lists the steps; --strip omits names)",
                    a.model, a.name, advise_name(names_in(view, steps), a.name)));
  if (a.common.json) {
    nlohmann::json json{
        {"name", a.name}, {"nodes", fates}, {"values", values}, {"steps", found}, {"types", types}};
    if (constant.is_object()) json["constant"] = constant;
    print_json(json);
    return;
  }
  if (constant.is_object() && values.empty())
    print_text(fmt::format("constant {}\n", constant_words(printable_json(constant))));
  for (const auto& f : printable_json(nlohmann::json(fates)))
    print_text(fmt::format("node '{}' (ONNX {}) was {}\n", f.value("onnx_node", ""), f.value("op", ""),
                           fate_words(f)));
  for (const auto& t : printable_json(values))
    print_text(fmt::format("{} is a {} {} {}\n", t["value"].get<std::string>(), t["kind"].get<std::string>(),
                           type_text(t), t["shape"].dump()));
  for (const auto& s : printable_json(nlohmann::json(found)))
    print_text(fmt::format(
        "step {} {} '{}' (ONNX {}) on {}: {} -> {}{}\n", s["step"].dump(), s["op"].get<std::string>(),
        s["name"].get<std::string>(), s["origin"].get<std::string>(), s["backend"].get<std::string>(),
        listed(s["inputs"]), listed(s["outputs"]), work_note(s).empty() ? "" : ", " + work_note(s)));
  for (const auto& e : printable_json(types)) print_text(fmt::format("type {}\n", ledger_line(e)));
}

}  // namespace

void add_explain(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<ExplainArguments>();
  CLI::App* c = app.add_subcommand("explain", "Report the origin and the fate of a tensor or node");
  c->add_option("model", a->model, "The .sinter file, or an .onnx file, which is converted for this alone")
      ->required();
  c->add_option("name", a->name, "A tensor's or node's name in the ONNX model")->required();
  a->entry.add_to(*c, "Whose steps and values are shown of a file with several shape sets, by number from 0");
  add_source_flags(*c, a->conversion);
  c->footer("Example:\n  sinter explain net.sinter conv_3");
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a, &outcome] { run_explain(*a, outcome); });
}

}  // namespace sinter::convert

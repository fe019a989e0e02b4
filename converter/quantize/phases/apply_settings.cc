// What --quantize-config gives, applied to a quantization, and what a quantization states of itself.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/passes/editor.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/quantize/quantization.h"
#include "converter/quantize/search/noise.h"

namespace sinter::convert {
namespace {

// Returns "conv1.Conv" of "/conv1/Conv", the name of a node that torch exports.
std::string module_path(const std::string& node) {
  std::string path = node.starts_with('/') ? node.substr(1) : node;
  std::ranges::replace(path, '/', '.');
  return path;
}

// Returns the name of a value; one without a name that is only moved from another has that one's.
std::string name_of(const Graph& graph, const Uses& uses, ValueId id, bool* rescaled) {
  while (graph.value(id).name.empty()) {
    const int n = uses.producer[static_cast<size_t>(id)];
    if (n < 0 || !keeps_scale(graph, graph.nodes[static_cast<size_t>(n)])) return {};
    id = graph.nodes[static_cast<size_t>(n)].inputs[0];
  }
  return exact_name(std::string(graph.value(id).name), rescaled);
}

// Returns the rounded values of a name: a value's own, or, of another tool, a node's or a module's, whose
// result is that of its last node. Empty: there is none.
std::vector<ValueId> values_named(const Graph& graph, const std::vector<ValueId>& rounded,
                                  const std::string& name, bool modules) {
  const Uses uses(graph);
  std::vector<ValueId> found;
  for (const ValueId id : rounded)
    if (bool rescaled = false; name_of(graph, uses, id, &rescaled) == name) found.push_back(id);
  if (!found.empty() || !modules) return found;
  for (const Node& node : graph.nodes)
    if (!node.outputs.empty() && (node.name == name || module_path(node.name).starts_with(name + ".")) &&
        std::ranges::find(rounded, node.outputs[0]) != rounded.end())
      found = {node.outputs[0]};
  return found;
}

// Returns the results of the operations that compute a value of this name, or else have the name themselves.
std::vector<ValueId> layers_named(const Graph& graph, const std::string& name) {
  std::vector<ValueId> computing, called;
  for (const Node& node : graph.nodes) {
    if (node.outputs.empty() || node.outputs[0] < 0) continue;
    if (exact_name(std::string(graph.value(node.outputs[0]).name)) == name)
      computing.push_back(node.outputs[0]);
    if (node.name == name) called.push_back(node.outputs[0]);
  }
  return computing.empty() ? called : computing;
}

std::string flag_of(const QuantizeSettings& settings) {
  return fmt::format("--quantize-config {}", printable(settings.file));
}

// A name of this converter's own must be a value's, if only of one that is not rounded.
void check_name(const Graph& graph, const QuantizeSettings& settings, const std::string& name) {
  std::vector<std::string> names;
  for (const ValueId id : observable_values(graph))
    names.push_back(exact_name(std::string(graph.value(id).name)));
  if (std::ranges::find(names, name) != names.end()) return;
  throw UsageError(fmt::format("{}: after rewriting, no value is called '{}'; {}", flag_of(settings),
                               printable(name), advise_name(names, name)));
}

int64_t integers(const IntegerGraph& built) {
  return std::ranges::count(built.layers, true, &LayerFate::integer);
}

// Every layer that was on integers still is, with these values in 16 bits.
void check_wide(const QuantizationPlan& narrow, const QuantizationPlan& wide,
                const QuantizeSettings& settings) {
  const IntegerGraph before = build(narrow), now = build(wide);
  if (integers(now) >= integers(before)) return;
  for (const LayerFate& layer : now.layers)
    if (!layer.integer && std::ranges::any_of(before.layers, [&](const LayerFate& l) {
          return l.output == layer.output && l.integer;
        }))
      throw UsageError(
          fmt::format("{}: {} '{}' has no integer kernel for 16 bits, which a value that it reads or "
                      "computes would have; give that value 8 bits",
                      flag_of(settings), layer.op, printable(layer.name)));
}

}  // namespace

void apply_layers(Quantization& q) {
  if (!q.options.settings) return;
  const QuantizeSettings& settings = *q.options.settings;
  q.summary.applied = AppliedSettings{.file = settings.file, .parameters = settings.parameters};
  for (const auto& [name, integer] : settings.layers) {
    const std::vector<ValueId> found = layers_named(q.plan.graph, name);
    if (found.empty()) {
      std::vector<std::string> names;
      for (const Node& node : q.plan.graph.nodes) names.push_back(node.name);
      throw UsageError(fmt::format("{}: after rewriting, no operation has or computes the name '{}'; {}",
                                   flag_of(settings), printable(name), advise_name(names, name)));
    }
    for (const ValueId id : found) {
      const auto at = q.plan.left.find(id);
      if (!integer)
        q.plan.left[id] = {Reason::kUser, "--quantize-config"};
      else if (at != q.plan.left.end() && at->second.reason == Reason::kSlower)
        q.plan.left.erase(at);
    }
    ++q.summary.applied->layers;
  }
}

void find_given_values(Quantization& q) {
  if (!q.options.settings) return;
  const QuantizeSettings& settings = *q.options.settings;
  AppliedSettings& applied = *q.summary.applied;
  const Graph& graph = q.plan.graph;
  const std::vector<ValueId> rounded = values_to_round(graph, assign_roles(graph, q.plan.left));
  const Uses uses(graph);
  for (const auto& [name, setting] : settings.values) {
    if (q.options.activations == DType::kInt16 && setting.bits == 8 && settings.own)
      throw UsageError(
          fmt::format("{}: value '{}' has 8 bits there, and --quantize int8x16 gives all values 16; use "
                      "--quantize int8, or leave out \"bits\" of 8",
                      flag_of(settings), printable(name)));
    const std::vector<ValueId> found = values_named(graph, rounded, name, !settings.own);
    if (found.empty() && settings.own) check_name(graph, settings, name);
    ++(found.empty() ? applied.not_found : applied.values);
    for (const ValueId id : found) {
      q.given[id] = setting;
      bool rescaled = false;
      name_of(graph, uses, id, &rescaled);
      if (rescaled && setting.range) q.given[id].range.reset(), ++applied.rescaled;
    }
  }
}

void give_wide_values(Quantization& q) {
  const auto is_wide = [](const auto& entry) { return entry.second.bits == 16; };
  if (q.options.activations == DType::kInt16 || std::ranges::none_of(q.given, is_wide)) return;
  const QuantizationPlan narrow = q.plan;
  const auto fine =
      q.fine.empty() ? ranges(q, wide_rule(q), *q.half_observations(), q.estimators.roles) : q.fine;
  for (const auto& [id, setting] : q.given)
    if (const auto at = fine.find(id); at != fine.end() && setting.bits == 16)
      q.plan.wide[id] = {at->second, "--quantize-config"};
  check_wide(narrow, q.plan, *q.options.settings);
}

QuantizeSettings stated_settings(const Quantization& q) {
  QuantizeSettings stated;
  const Graph& graph = q.plan.graph;
  const std::vector<Role> roles = assign_roles(graph, q.plan.left);
  const Uses uses(graph);
  for (const ValueId id : scaled_values(graph, roles)) {
    bool rescaled = false;
    const std::string name = name_of(graph, uses, id, &rescaled);
    const auto at = q.plan.params.find(id);
    if (name.empty() || at == q.plan.params.end()) continue;
    const auto wide = q.plan.wide.find(id);
    const QuantParams& p = wide == q.plan.wide.end() ? at->second : wide->second.params;
    ValueSetting& setting = stated.values[name];
    setting.bits = p.type == DType::kInt16 ? 16 : 8;
    const QuantRange levels = quant_range(p.type);
    const int64_t lowest = p.type == DType::kInt16 ? -levels.max : levels.min;
    if (!rescaled)
      setting.range = Range{static_cast<double>(lowest - p.zero_point) * p.scale,
                            static_cast<double>(levels.max - p.zero_point) * p.scale};
  }
  for (const LayerFate& layer : q.built.layers) {
    const Reason reason = layer.left.reason;
    const bool chosen = reason == Reason::kAccuracy || reason == Reason::kSlower || reason == Reason::kUser;
    if (!layer.integer && !chosen) continue;
    const std::string value = exact_name(std::string(graph.value(layer.output).name)),
                      &name = value.empty() ? layer.name : value;
    if (!name.empty()) stated.layers[name] = layer.integer;
  }
  stated.techniques.emplace();
  for (const Technique* technique : kTechniques) {
    // The choices of these two are stated above.
    if (technique == &technique::kWideActivations || technique == &technique::kLeaveFloat) continue;
    const auto named = [&](const TechniqueGain& g) {
      return g.name.find(technique->name) != std::string::npos;
    };
    const bool tried = std::ranges::any_of(q.summary.techniques, named),
               kept = std::ranges::any_of(q.summary.techniques,
                                          [&](const TechniqueGain&g) { return g.kept && named(g); });
    if (q.uses(*technique) && (kept || !tried)) stated.techniques->emplace_back(technique->name);
  }
  return stated;
}

}  // namespace sinter::convert

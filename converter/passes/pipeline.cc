// The list of passes and the loop that runs them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/passes/follow_nodes.h"
#include "converter/passes/pass.h"
#include "converter/passes/passes.h"

namespace sinter::convert {

std::span<const Pass> all_passes() {
  static constexpr Pass kPasses[] = {
#define SINTER_PASS(function, name, description) {name, description, function},
#include "converter/passes/passes.def"
  };
  return kPasses;
}

size_t count_nodes(const Graph& graph) {
  size_t n = graph.nodes.size();
  for (const Node& node : graph.nodes)
    for (const auto& body : node.bodies) n += count_nodes(*body);
  return n;
}

namespace {

int run_everywhere(const Pass& pass, Graph& graph) {
  int changes = pass.run(graph);
  for (Node& node : graph.nodes)
    for (const auto& body : node.bodies) changes += run_everywhere(pass, *body);
  return changes;
}

void require(const Graph& graph, const char* when) {
  if (std::string fault = check(graph); !fault.empty())
    throw std::logic_error(fmt::format("{}: {}", when, fault));
}

}  // namespace

int run_pass(Graph& graph, const char* name) {
  for (const Pass& pass : all_passes()) {
    if (std::string_view(pass.name) != name) continue;
    advance(graph, Stage::kRewritten);
    const int changes = run_everywhere(pass, graph);
    require(graph, pass.name);
    return changes;
  }
  throw std::logic_error(fmt::format("'{}' is not a pass", name));
}

namespace {

PassReport run_all(Graph& graph, const PassOptions& options, NodeFates* fates) {
  const auto known = [](const std::string& name) {
    return std::any_of(all_passes().begin(), all_passes().end(),
                       [&](const Pass& p) { return p.name == name; });
  };
  const auto refuse = [](const char* flag, const std::string& name) {
    throw UsageError(
        fmt::format("{} {}: this is not a pass; sinter convert --help lists the passes", flag, name));
  };
  for (const std::string& name : options.disabled)
    if (!known(name)) refuse("--disable-pass", name);
  if (!options.dump_after.empty() && !known(options.dump_after)) refuse("--dump-after", options.dump_after);
  PassReport report;
  require_stage(graph, Stage::kLowered, "the list of passes");
  require(graph, "before the passes");
  advance(graph, Stage::kRewritten);
  int number = 0;
  std::optional<NodeFates::Picture> before;  // the graph as the last pass that changed it left it
  for (const Pass& pass : all_passes()) {
    if (options.stop_after >= 0 && number++ >= options.stop_after) break;
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end())
      continue;
    if (fates != nullptr && !before) before.emplace(graph);
    const int changes = run_everywhere(pass, graph);
    require(graph, pass.name);
    if (before && changes > 0) {
      fates->follow(pass.name, *before, graph);
      before.reset();
    }
    report.entries.push_back({pass.name, pass.description, changes, count_nodes(graph)});
    if (options.dump_after == pass.name && options.dump) options.dump(dump(graph));
  }
  return report;
}

}  // namespace

PassReport run_passes(Graph& graph, const PassOptions& options) { return run_all(graph, options, nullptr); }

PassReport run_passes(Graph& graph, const PassOptions& options, NodeFates& fates) {
  return run_all(graph, options, &fates);
}

}  // namespace sinter::convert

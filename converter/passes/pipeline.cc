// The list of passes and the loop that runs them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/node_fates.h"
#include "converter/passes/editor.h"
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

int run_everywhere(const Pass& pass, Graph& graph, Rewrites* rewrites) {
  if (!may_rewrite()) return 0;
  const int made = rewrites->made;
  int changes = pass.run(graph);
  if (changes > 0 && rewrites->made == made) enter_rewrite({});  // it rebuilds the graph
  for (Node& node : graph.nodes)
    for (const auto& body : node.bodies) changes += run_everywhere(pass, *body, rewrites);
  return changes;
}

int run_counted(const Pass& pass, Graph& graph, Rewrites* rewrites) {
  const CountRewrites scope(rewrites);
  return run_everywhere(pass, graph, rewrites);
}

// The index of the pass of that name; nullopt: there is none.
std::optional<size_t> find_pass(std::string_view name) {
  const auto passes = all_passes();
  for (size_t i = 0; i < passes.size(); ++i)
    if (passes[i].name == name) return i;
  return std::nullopt;
}

void require(const Graph& graph, const char* when) {
  if (std::string fault = check(graph); !fault.empty())
    throw std::logic_error(fmt::format("{}: {}", when, fault));
}

}  // namespace

int run_pass(Graph& graph, const char* name) {
  const auto index = find_pass(name);
  if (!index) throw std::logic_error(fmt::format("'{}' is not a pass", name));
  advance(graph, Stage::kRewritten);
  Rewrites rewrites;
  const int changes = run_counted(all_passes()[*index], graph, &rewrites);
  require(graph, name);
  return changes;
}

PassStop parse_pass_stop(const std::string& text) {
  const size_t colon = text.find(':');
  const auto index = find_pass(text.substr(0, colon));
  const std::string_view digits =
      colon == std::string::npos ? text : std::string_view(text).substr(colon + 1);
  int count = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool counts = fault == std::errc() && end == digits.data() + digits.size() && count >= 0;
  if (index && colon == std::string::npos) return {*index + 1};
  if (index && counts) return {*index + 1, count};
  if (counts && colon == std::string::npos) return {static_cast<size_t>(count)};
  throw UsageError(
      fmt::format("--stop-after {}: give a number of passes from 0 to {}, or PASS:N for the first N "
                  "rewrites of a pass; sinter convert --help lists the passes",
                  text, all_passes().size()));
}

PassReport run_passes(Graph& graph, const PassOptions& options, NodeFates* fates) {
  const auto refuse = [](const char* flag, const std::string& name) {
    throw UsageError(
        fmt::format("{} {}: this is not a pass; sinter convert --help lists the passes", flag, name));
  };
  for (const std::string& name : options.disabled)
    if (!find_pass(name)) refuse("--disable-pass", name);
  if (!options.dump_after.empty() && !find_pass(options.dump_after))
    refuse("--dump-after", options.dump_after);
  PassReport report;
  require_stage(graph, Stage::kLowered, "the list of passes");
  require(graph, "before the passes");
  advance(graph, Stage::kRewritten);
  std::optional<NodeFates::Picture> before;  // the graph as the last pass that changed it left it
  const std::span<const Pass> passes = all_passes();
  for (size_t i = 0; i < std::min(passes.size(), options.stop.passes); ++i) {
    const Pass& pass = passes[i];
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end())
      continue;
    if (fates != nullptr && !before) before.emplace(graph);
    Rewrites rewrites;
    if (i + 1 == options.stop.passes) rewrites.most = options.stop.rewrites;
    const int changes = run_counted(pass, graph, &rewrites);
    require(graph, pass.name);
    if (before && changes > 0) {
      fates->follow(pass.name, *before, graph);
      before.reset();
    }
    report.entries.push_back({pass.name, pass.description, changes, count_nodes(graph), rewrites});
    if (options.dump_after == pass.name && options.dump) options.dump(dump(graph));
  }
  return report;
}

}  // namespace sinter::convert

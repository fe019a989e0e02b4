// The requirements on a graph before its nodes are lowered one by one: every name is defined exactly once,
// and no node depends on itself. Nodes are sorted so that every input exists; otherwise their order stays.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "converter/import/read/reader.h"

namespace sinter::convert {
namespace {

using Names = std::unordered_set<std::string>;

constexpr const char* kRename = "rename one of them and its readers in the model";

// Names that a graph reads and does not define.
void free_names(const ImportedGraph& g, Names* out) {
  Names own;
  for (const auto& v : g.inputs) own.insert(v.name);
  for (const auto& t : g.initializers) own.insert(t.name);
  for (const auto& n : g.nodes)
    for (const auto& o : n.outputs) own.insert(o);
  Names read;
  for (const auto& v : g.outputs) read.insert(v.name);
  for (const auto& n : g.nodes) {
    for (const auto& i : n.inputs) read.insert(i);
    for (const auto& a : n.attributes)
      for (const auto& sub : a.graphs) free_names(*sub, &read);
  }
  for (const auto& name : read)
    if (!name.empty() && own.count(name) == 0) out->insert(name);
}

// Names that the graphs around a subgraph define.
struct Scope {
  const Names* given;
  const std::unordered_map<std::string, size_t>* produced;
  const Scope* outer;

  bool has(const std::string& name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer)
      if (s->given->count(name) != 0 || s->produced->count(name) != 0) return true;
    return false;
  }
};

class Checker {
 public:
  explicit Checker(Diagnostics& diagnostics) : diagnostics_(&diagnostics) {}

  // `outer`: null for the model's own graph.
  void graph(ImportedGraph& g, const Scope* outer) {
    Names given;
    for (const auto& v : g.inputs) {
      if (!given.insert(v.name).second)
        diagnostics_->refuse({}, {}, fmt::format("input '{}' is declared twice", v.name), kRename);
    }
    for (const auto& t : g.initializers) {
      if (!given.insert(t.name).second)
        diagnostics_->refuse({}, {}, fmt::format("initializer '{}' is defined twice", t.name), kRename);
    }
    std::unordered_map<std::string, size_t> producer;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const ImportedNode& n = g.nodes[i];
      for (const auto& o : n.outputs) {
        if (o.empty()) continue;
        const auto [at, is_new] = producer.emplace(o, i);
        if (!is_new)
          refuse(n,
                 fmt::format("its output '{}' is also produced by node '{}' ({})", o,
                             g.nodes[at->second].name, qualified_op(g.nodes[at->second])),
                 kRename);
        else if (given.count(o) > 0)
          refuse(n, fmt::format("its output '{}' is also an input or initializer of the graph", o), kRename);
      }
    }

    // The nodes that wait for each node.
    std::vector<std::vector<size_t>> readers(g.nodes.size());
    std::vector<size_t> waiting(g.nodes.size());
    bool in_order = true;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const ImportedNode& n = g.nodes[i];
      Names reads(n.inputs.begin(), n.inputs.end());
      for (const auto& a : n.attributes)
        for (const auto& sub : a.graphs) free_names(*sub, &reads);
      for (const auto& name : ordered(n, reads)) {
        const auto found = producer.find(name);
        if (found != producer.end()) {
          readers[found->second].push_back(i);
          ++waiting[i];
          in_order = in_order && found->second < i;
        } else if (given.count(name) == 0 && (outer == nullptr || !outer->has(name))) {
          refuse(n,
                 fmt::format(
                     "its input '{}' is not produced by a node, and is not an input or an initializer", name),
                 "declare it as an input of the model, or restore the node that computes it");
        }
      }
    }
    if (!in_order) sort(g, readers, waiting);

    Names outputs;
    for (const auto& v : g.outputs) {
      if (!outputs.insert(v.name).second && outer == nullptr)
        diagnostics_->refuse({}, {}, fmt::format("graph output '{}' is declared twice", v.name),
                             "remove one declaration from the model");
      if (given.count(v.name) == 0 && producer.count(v.name) == 0 &&
          (outer == nullptr || !outer->has(v.name)))
        diagnostics_->refuse({}, {}, fmt::format("graph output '{}' is produced by no node", v.name),
                             "remove it from the model's outputs, or restore the node that computes it");
    }
    if (g.outputs.empty() && outer == nullptr)
      diagnostics_->refuse({}, {}, "the graph has no outputs", "declare its results as outputs of the model");

    const Scope scope{&given, &producer, outer};
    for (ImportedNode& n : g.nodes)
      for (ImportedAttribute& a : n.attributes)
        for (auto& sub : a.graphs) graph(*sub, &scope);
  }

 private:
  void refuse(const ImportedNode& n, std::string why, std::string advice) {
    diagnostics_->refuse(n.name, qualified_op(n), std::move(why), std::move(advice));
  }

  // The same set in an order that does not depend on hashing.
  static std::vector<std::string> ordered(const ImportedNode& n, Names reads) {
    std::vector<std::string> result;
    reads.erase(std::string());
    for (const auto& i : n.inputs)
      if (reads.erase(i) > 0) result.push_back(i);
    const size_t own = result.size();
    result.insert(result.end(), reads.begin(), reads.end());
    std::sort(result.begin() + static_cast<std::ptrdiff_t>(own), result.end());
    return result;
  }

  void sort(ImportedGraph& g, const std::vector<std::vector<size_t>>& readers, std::vector<size_t> waiting) {
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i] == 0) ready.push(i);
    std::vector<size_t> order;
    while (!ready.empty()) {
      const size_t i = ready.top();
      ready.pop();
      order.push_back(i);
      for (const size_t r : readers[i])
        if (--waiting[r] == 0) ready.push(r);
    }
    if (order.size() < g.nodes.size()) {
      report_cycle(g, readers, waiting);
      return;
    }
    std::vector<ImportedNode> nodes;
    nodes.reserve(order.size());
    for (const size_t i : order) nodes.push_back(std::move(g.nodes[i]));
    g.nodes = std::move(nodes);
    diagnostics_->note({}, {}, "the graph's nodes were not in order and have been sorted");
  }

  // Every unsorted node waits for another unsorted one: walking back from any of them must come round.
  void report_cycle(const ImportedGraph& g, const std::vector<std::vector<size_t>>& readers,
                    const std::vector<size_t>& waiting) {
    std::vector<size_t> before(g.nodes.size(), SIZE_MAX);
    for (size_t i = 0; i < g.nodes.size(); ++i)
      for (const size_t r : readers[i])
        if (waiting[i] > 0 && waiting[r] > 0) before[r] = i;
    size_t at = 0;
    while (waiting[at] == 0) ++at;
    for (size_t steps = 0; steps < g.nodes.size(); ++steps) at = before[at];
    std::vector<std::string> names;
    for (size_t i = at;;) {
      if (names.size() < 8) names.insert(names.begin(), "'" + g.nodes[i].name + "'");
      i = before[i];
      if (i == at) break;
    }
    refuse(g.nodes[at], fmt::format("the graph has a cycle through {}", fmt::join(names, ", ")),
           "unroll it in the model, or write it as a Loop");
  }

  Diagnostics* diagnostics_;
};

}  // namespace

void check_and_sort(ImportedModel& model, Diagnostics& diagnostics) {
  Checker(diagnostics).graph(model.graph, nullptr);
}

}  // namespace sinter::convert

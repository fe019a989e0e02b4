#include "converter/import/lower/if_readers.h"

#include <algorithm>
#include <map>
#include <vector>

#include "converter/import/dataflow.h"
#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

// Names that the node, or a node of its bodies, reads.
std::set<std::string> names_read_by(const ImportedNode& node) {
  std::set<std::string> names(node.inputs.begin(), node.inputs.end());
  for (const ImportedAttribute& a : node.attributes)
    for (const auto& body : a.graphs) names.merge(names_read(*body));
  names.erase("");
  return names;
}

// The nodes behind an If, and which of them depend on it.
class Behind {
 public:
  Behind(const ImportedGraph& graph, const ImportedNode& node) : graph_(graph) {
    const auto same = [&](const ImportedNode& other) { return other.outputs == node.outputs; };
    first_ = static_cast<size_t>(std::find_if(graph.nodes.begin(), graph.nodes.end(), same) -
                                 graph.nodes.begin()) +
             1;
    std::set<std::string> made(node.outputs.begin(), node.outputs.end());
    made.erase("");
    for (size_t i = first_; i < graph.nodes.size(); ++i) {
      read_.push_back(names_read_by(graph.nodes[i]));
      depends_.push_back(any(read_.back(), made));
      for (const std::string& name : graph.nodes[i].outputs) {
        if (name.empty()) continue;
        maker_[name] = i;
        if (depends_.back()) made.insert(name);
      }
    }
  }

  size_t first() const { return first_; }
  size_t end() const { return graph_.nodes.size(); }
  const ImportedNode& node(size_t i) const { return graph_.nodes[i]; }
  bool reads(size_t i, const std::set<std::string>& names) const { return any(read_[i - first_], names); }
  bool leaves(const std::string& name) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](const ImportedValueInfo& out) { return out.name == name; });
  }
  // Adds what node i reads, however far back: of what depends on the If to `inside`, else to `before`.
  void add_makers(size_t i, std::set<size_t>* inside, std::set<size_t>* before) const {
    std::vector<size_t> open{i};
    while (!open.empty()) {
      const size_t reader = open.back();
      open.pop_back();
      for (const std::string& name : read_[reader - first_]) {
        const auto maker = maker_.find(name);
        if (maker == maker_.end()) continue;
        std::set<size_t>* to = depends_[maker->second - first_] ? inside : before;
        if (to->insert(maker->second).second) open.push_back(maker->second);
      }
    }
  }

 private:
  static bool any(const std::set<std::string>& a, const std::set<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.count(name) != 0; });
  }

  const ImportedGraph& graph_;
  size_t first_ = 0;
  std::vector<std::set<std::string>> read_;
  std::vector<bool> depends_;
  std::map<std::string, size_t> maker_;
};

}  // namespace

std::optional<IfReaders> with_readers_of(NodeLowering& n, const IfReaders& readers,
                                         const std::set<std::string>& names) {
  const Behind behind(n.parent().source(), n.node());
  for (const std::string& name : names)
    if (behind.leaves(name)) return std::nullopt;
  std::set<size_t> inside, before;
  for (size_t i = behind.first(); i < behind.end(); ++i) {
    const bool is_one =
        std::find(readers.nodes.begin(), readers.nodes.end(), &behind.node(i)) != readers.nodes.end();
    if (!is_one && !behind.reads(i, names)) continue;
    inside.insert(i);
    behind.add_makers(i, &inside, &before);
  }
  IfReaders all;
  std::set<std::string> made(n.node().outputs.begin(), n.node().outputs.end());
  for (const size_t i : inside) {
    all.nodes.push_back(&behind.node(i));
    made.insert(behind.node(i).outputs.begin(), behind.node(i).outputs.end());
  }
  made.erase("");
  for (const size_t i : before) all.before.push_back(&behind.node(i));
  for (const std::string& name : made) {
    bool wanted = behind.leaves(name);
    for (size_t i = behind.first(); i < behind.end() && !wanted; ++i)
      wanted = inside.count(i) == 0 && behind.reads(i, {name});
    if (wanted) all.results.push_back(name);
  }
  return all;
}

}  // namespace sinter::convert

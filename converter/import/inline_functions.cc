// Model-local functions: every call is replaced by the function's nodes, attribute references filled in from
// the call or the function's defaults, inner names made unique with the call's name as prefix.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "converter/import/reader.h"

namespace sinter::convert {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;
constexpr int kMaxDepth = 64;
// Nodes and calls that all expansions may take together, a name counted by its length: calls in calls
// multiply.
constexpr size_t kMaxNodes = 500'000;
constexpr size_t kCharsOfANode = 256;

class Inliner {
 public:
  Inliner(ImportedModel& model, Diagnostics& diagnostics) : diagnostics_(&diagnostics) {
    for (const ImportedFunction& f : model.functions) {
      if (!functions_.emplace(Key{f.domain, f.name, f.overload}, &f).second)
        diagnostics.refuse({}, f.name, "the function is defined twice", "remove one from the model");
    }
    collect_names(model.graph);
  }

  void graph(ImportedGraph& g) {
    std::vector<ImportedNode> nodes;
    for (ImportedNode& n : g.nodes) node(std::move(n), &nodes);
    g.nodes = std::move(nodes);
  }

 private:
  void collect_names(const ImportedGraph& g) {
    for (const auto& v : g.inputs) used_.insert(v.name);
    for (const auto& t : g.initializers) used_.insert(t.name);
    for (const ImportedNode& n : g.nodes) {
      node_names_.insert(n.name);
      for (const auto& o : n.outputs) used_.insert(o);
      for (const auto& i : n.inputs) used_.insert(i);
      for (const auto& a : n.attributes)
        for (const auto& sub : a.graphs) collect_names(*sub);
    }
  }

  void node(ImportedNode n, std::vector<ImportedNode>* out) {
    const auto found = functions_.find(Key{n.domain, n.op_type, n.overload});
    if (found != functions_.end()) {
      expand(n, *found->second, out);
      return;
    }
    for (ImportedAttribute& a : n.attributes)
      for (auto& sub : a.graphs) graph(*sub);
    out->push_back(std::move(n));
  }

  // False from where it is too much, with one refusal.
  bool spend(size_t nodes) {
    if (spent_ > kMaxNodes) return false;
    spent_ += nodes;
    if (spent_ <= kMaxNodes) return true;
    diagnostics_->refuse({}, {}, "the model's functions expand to too many nodes",
                         "export the model without functions");
    return false;
  }

  static std::string fresh(const std::string& wanted, std::unordered_set<std::string>* used) {
    std::string name = wanted;
    for (int i = 2; !used->insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  // Everything that an expansion knows: names of the body to names of the caller.
  struct Scope {
    std::string prefix;
    const ImportedNode* call;
    const ImportedFunction* function;
    std::unordered_map<std::string, std::string> names;
  };

  std::string rename(const std::string& name, Scope* scope) {
    if (name.empty()) return {};
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return found->second;
    return scope->names[name] = fresh(scope->prefix + name, &used_);
  }

  ImportedNode instance(const ImportedNode& body, Scope* scope) {
    if (!spend(1 + (body.inputs.size() + body.outputs.size() + body.attributes.size()) *
                       (scope->prefix.size() + 64) / kCharsOfANode))
      return {};
    ImportedNode n = body;
    n.name = fresh(scope->prefix + body.name, &node_names_);
    for (std::string& i : n.inputs) i = rename(i, scope);
    for (std::string& o : n.outputs) o = rename(o, scope);
    std::vector<ImportedAttribute> attributes;
    for (ImportedAttribute& a : n.attributes) {
      if (!a.reference.empty()) {
        const ImportedAttribute* value = scope->call->find(a.reference);
        for (const ImportedAttribute& d : scope->function->attribute_defaults)
          if (value == nullptr && d.name == a.reference) value = &d;
        if (value == nullptr) continue;  // an optional attribute that the call leaves out
        ImportedAttribute filled = *value;
        filled.name = a.name;
        attributes.push_back(std::move(filled));
        continue;
      }
      for (auto& sub : a.graphs) sub = std::make_shared<ImportedGraph>(instance(*sub, scope));
      attributes.push_back(std::move(a));
    }
    n.attributes = std::move(attributes);
    return n;
  }

  ImportedGraph instance(const ImportedGraph& body, Scope* scope) {
    ImportedGraph g = body;
    for (auto* list : {&g.inputs, &g.outputs, &g.value_info})
      for (ImportedValueInfo& v : *list) v.name = rename(v.name, scope);
    for (ImportedTensor& t : g.initializers) t.name = rename(t.name, scope);
    for (ImportedNode& n : g.nodes) n = instance(n, scope);
    return g;
  }

  void expand(const ImportedNode& call, const ImportedFunction& f, std::vector<ImportedNode>* out) {
    const auto refuse = [&](std::string why) {
      diagnostics_->refuse(call.name, qualified_op(call), std::move(why),
                           "correct the function or its call in the model");
    };
    if (std::find(active_.begin(), active_.end(), &f) != active_.end())
      return refuse("the function calls itself");
    if (active_.size() >= kMaxDepth) return refuse("functions are nested too deeply");
    if (!spend(1)) return;
    if (call.inputs.size() > f.inputs.size() || call.outputs.size() > f.outputs.size())
      return refuse(fmt::format("the function has {} inputs and {} outputs, the call {} and {}",
                                f.inputs.size(), f.outputs.size(), call.inputs.size(), call.outputs.size()));
    for (const ImportedAttribute& a : call.attributes) {
      bool known = std::find(f.attributes.begin(), f.attributes.end(), a.name) != f.attributes.end();
      for (const ImportedAttribute& d : f.attribute_defaults) known |= d.name == a.name;
      if (!known) refuse(fmt::format("the function has no attribute '{}'", a.name));
    }
    active_.push_back(&f);
    Scope scope{call.name + "/", &call, &f, {}};
    for (size_t i = 0; i < f.inputs.size(); ++i)
      scope.names[f.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : std::string();
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      const std::string actual = i < call.outputs.size() ? call.outputs[i] : std::string();
      const auto bound = scope.names.find(f.outputs[i]);
      if (bound == scope.names.end()) {
        if (!actual.empty()) scope.names[f.outputs[i]] = actual;
      } else if (!actual.empty()) {
        // An input handed through, or one value that is two outputs.
        ImportedNode same;
        same.op_type = "Identity";
        same.name = fresh(scope.prefix + f.outputs[i], &node_names_);
        same.inputs = {bound->second};
        same.outputs = {actual};
        const auto version = f.opsets.find("");
        same.opset = version == f.opsets.end() ? 1 : static_cast<int>(version->second);
        out->push_back(std::move(same));
      }
    }
    for (const ImportedNode& body : f.nodes) {
      ImportedNode n = instance(body, &scope);
      if (spent_ > kMaxNodes) break;
      node(std::move(n), out);
    }
    active_.pop_back();
  }

  Diagnostics* diagnostics_;
  std::map<Key, const ImportedFunction*> functions_;
  std::vector<const ImportedFunction*> active_;
  std::unordered_set<std::string> used_, node_names_;
  size_t spent_ = 0;
};

}  // namespace

void inline_functions(ImportedModel& model, Diagnostics& diagnostics) {
  if (model.functions.empty()) return;
  Inliner(model, diagnostics).graph(model.graph);
  model.functions.clear();
}

}  // namespace sinter::convert

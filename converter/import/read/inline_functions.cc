// Model-local functions: every call is replaced by the function's nodes, attribute references filled in from
// the call or the function's defaults, inner names made unique with the call's name as prefix.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "converter/import/read/reader.h"

namespace sinter::convert {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;
constexpr int kMaxDepth = 64;
// Calls in calls multiply: all expansions together are bounded, calls and nodes counted once, and once more
// for every kBytesOfANode bytes that a copy takes.
constexpr size_t kBytesOfANode = 256;

// The size of a copy, without tensors' data (which is shared) and subgraphs' contents. Names grow by
// `prefix`.
size_t bytes_of(const std::string& s, size_t prefix = 0) { return sizeof(std::string) + prefix + s.size(); }

template <class Item>
size_t bytes_of(const std::vector<Item>& items, size_t prefix = 0);

size_t bytes_of(const ImportedDim& d, size_t = 0) { return sizeof d + d.symbol.size(); }

size_t bytes_of(const ImportedValueInfo& v, size_t prefix) {
  return sizeof v + bytes_of(v.name, prefix) + bytes_of(v.dims);
}

size_t bytes_of(const ImportedTensor& t, size_t prefix = 0) {
  return sizeof t + bytes_of(t.name, prefix) + t.dims.size() * sizeof(int64_t) + bytes_of(t.strings);
}

size_t bytes_of(const ImportedAttribute& a, size_t = 0) {
  return sizeof a + bytes_of(a.name) + bytes_of(a.s) + a.floats.size() * sizeof(float) +
         a.ints.size() * sizeof(int64_t) + bytes_of(a.strings) + bytes_of(a.tensors);
}

template <class Item>
size_t bytes_of(const std::vector<Item>& items, size_t prefix) {
  size_t sum = 0;
  for (const Item& item : items) sum += bytes_of(item, prefix);
  return sum;
}

class Inliner {
 public:
  Inliner(ImportedModel& model, Diagnostics& diagnostics, size_t most)
      : diagnostics_(&diagnostics), most_(most) {
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

  bool too_much() const { return spent_ > most_; }

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
  bool spend(size_t bytes) {
    if (too_much()) return false;
    spent_ += 1 + bytes / kBytesOfANode;
    if (!too_much()) return true;
    diagnostics_->refuse({}, {}, "the model's functions expand to too many nodes",
                         "export the model without functions");
    return false;
  }

  static std::string fresh(const std::string& wanted, std::unordered_set<std::string>* used) {
    std::string name = wanted;
    for (int i = 2; !used->insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  // The state of an expansion: names of the body to names of the caller.
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
    const size_t prefix = scope->prefix.size();
    if (!spend(bytes_of(body.name, prefix) + bytes_of(body.inputs, prefix) + bytes_of(body.outputs, prefix) +
               bytes_of(body.attributes)))
      return {};
    ImportedNode n = body;
    n.name = fresh(scope->prefix + body.name, &node_names_);
    n.place = scope->call->place + "/" + body.place;
    for (std::string& i : n.inputs) i = rename(i, scope);
    for (std::string& o : n.outputs) o = rename(o, scope);
    std::vector<ImportedAttribute> attributes;
    for (ImportedAttribute& a : n.attributes) {
      if (!a.reference.empty()) {
        const ImportedAttribute* value = scope->call->find(a.reference);
        for (const ImportedAttribute& d : scope->function->attribute_defaults)
          if (value == nullptr && d.name == a.reference) value = &d;
        if (value == nullptr) continue;  // an optional attribute that the call leaves out
        if (!spend(bytes_of(*value) + scope->call->attributes.size() +
                   scope->function->attribute_defaults.size()))
          return {};
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
    const size_t prefix = scope->prefix.size();
    ImportedGraph g;
    if (!spend(bytes_of(body.inputs, prefix) + bytes_of(body.outputs, prefix) +
               bytes_of(body.value_info, prefix) + bytes_of(body.initializers, prefix)))
      return g;
    g.name = body.name;
    g.inputs = body.inputs;
    g.outputs = body.outputs;
    g.value_info = body.value_info;
    g.initializers = body.initializers;
    for (auto* list : {&g.inputs, &g.outputs, &g.value_info})
      for (ImportedValueInfo& v : *list) v.name = rename(v.name, scope);
    for (ImportedTensor& t : g.initializers) t.name = rename(t.name, scope);
    for (const ImportedNode& n : body.nodes) {
      if (too_much()) break;
      g.nodes.push_back(instance(n, scope));
    }
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
    if (!spend(bytes_of(f.inputs) + bytes_of(f.outputs) +
               call.attributes.size() * (f.attributes.size() + f.attribute_defaults.size())))
      return;
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
      if (too_much()) break;
      node(std::move(n), out);
    }
    active_.pop_back();
  }

  Diagnostics* diagnostics_;
  std::map<Key, const ImportedFunction*> functions_;
  std::vector<const ImportedFunction*> active_;
  std::unordered_set<std::string> used_, node_names_;
  size_t most_, spent_ = 0;
};

}  // namespace

bool inline_functions(ImportedModel& model, Diagnostics& diagnostics, size_t most) {
  if (model.functions.empty()) return true;
  Inliner inliner(model, diagnostics, most);
  inliner.graph(model.graph);
  model.functions.clear();
  return !inliner.too_much();
}

}  // namespace sinter::convert

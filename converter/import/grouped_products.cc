#include "converter/import/grouped_products.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace sinter::convert {
namespace {

constexpr int64_t kMostExamined = 1 << 16;
constexpr int kAxesAreInputs = 13;  // opset

class GroupedProducts {
 public:
  explicit GroupedProducts(ImportedGraph& graph) : graph_(graph) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      for (const std::string& name : graph_.nodes[n].outputs)
        if (!name.empty()) makers_[name] = n;
    for (const ImportedTensor& t : graph_.initializers) constants_[t.name] = t.data;
    for (const ImportedNode& n : graph_.nodes)
      if (n.domain.empty() && n.op_type == "Constant" && n.outputs.size() == 1 && n.attributes.size() == 1 &&
          n.attributes[0].tensors.size() == 1)
        constants_[n.outputs[0]] = n.attributes[0].tensors[0].data;
  }

  void run() {
    std::vector<ImportedNode> all;
    bool any = false;
    for (const ImportedNode& node : graph_.nodes) {
      const auto group = node.domain.empty() && node.op_type == "Concat" ? match(node) : std::nullopt;
      any |= group.has_value();
      if (group)
        write(node, *group, all);
      else
        all.push_back(node);
    }
    if (!any) return;
    graph_.nodes = std::move(all);
    drop_unread();
  }

 private:
  struct Group {
    std::string x, weights, ends, counted;  // counted: the histogram's indices, one for each row
  };

  const ImportedNode* made_by(const std::string& name, const char* op) const {
    const auto at = makers_.find(name);
    if (at == makers_.end()) return nullptr;
    const ImportedNode& n = graph_.nodes[at->second];
    return n.domain.empty() && n.op_type == op ? &n : nullptr;
  }
  static std::string input(const ImportedNode& n, size_t i) {
    return i < n.inputs.size() ? n.inputs[i] : std::string{};
  }
  // The elements of a small constant of numbers.
  std::optional<std::vector<double>> numbers(const std::string& name) const {
    const auto at = constants_.find(name);
    if (at == constants_.end() || !at->second || at->second->size() > kMostExamined) return std::nullopt;
    return at->second->as_doubles();
  }
  bool is_number(const std::string& name, double number) const {
    const auto all = numbers(name);
    return all && all->size() == 1 && (*all)[0] == number;
  }
  static int64_t integer(const ImportedNode& n, const char* attribute, int64_t otherwise) {
    const ImportedAttribute* a = n.find(attribute);
    return a == nullptr ? otherwise : a->i;
  }

  // Squeeze(Split(whole)[i]) along axis 0, of `count` parts: `whole`. Axis 0 of a part has one element, then.
  std::string part(const std::string& name, size_t i, size_t count) const {
    const ImportedNode* squeeze = made_by(name, "Squeeze");
    if (squeeze == nullptr || squeeze->inputs.size() != 2 || !is_number(input(*squeeze, 1), 0)) return {};
    const ImportedNode* split = made_by(input(*squeeze, 0), "Split");
    const bool apart = split != nullptr && split->outputs.size() == count &&
                       split->outputs[i] == input(*squeeze, 0) && integer(*split, "axis", 0) == 0;
    return apart ? input(*split, 0) : std::string{};
  }
  // Before casts that change no count.
  std::string uncast(std::string name) const {
    while (const ImportedNode* cast = made_by(name, "Cast")) {
      const int64_t to = integer(*cast, "to", 0);
      constexpr int64_t kExact[] = {1, 6, 7, 11};  // float32, int32, int64, float64
      if (std::find(std::begin(kExact), std::end(kExact), to) == std::end(kExact)) break;
      name = input(*cast, 0);
    }
    return name;
  }
  // The running sums of how often each number is among `counted`, one after the other: the last one is the
  // number of these. Empty: something else.
  std::string counted(const std::string& ends) const {
    const ImportedNode* sums = made_by(uncast(ends), "CumSum");
    if (sums == nullptr || sums->inputs.size() != 2 || !is_number(input(*sums, 1), 0) ||
        integer(*sums, "exclusive", 0) != 0 || integer(*sums, "reverse", 0) != 0)
      return {};
    const ImportedNode* scatter = made_by(uncast(input(*sums, 0)), "ScatterElements");
    if (scatter == nullptr || scatter->inputs.size() != 3 || integer(*scatter, "axis", 0) != 0) return {};
    const ImportedAttribute* reduction = scatter->find("reduction");
    const auto zeros = numbers(input(*scatter, 0));
    const ImportedNode* ones = made_by(input(*scatter, 2), "Expand");
    if (reduction == nullptr || reduction->s != "add" || !zeros || ones == nullptr ||
        !is_number(input(*ones, 0), 1) ||
        std::any_of(zeros->begin(), zeros->end(), [](double z) { return z != 0; }))
      return {};
    const ImportedNode* shape = made_by(input(*ones, 1), "Shape");
    const bool whole = shape != nullptr && input(*shape, 0) == input(*scatter, 1) &&
                       shape->find("end") == nullptr && integer(*shape, "start", 0) == 0;
    return whole ? input(*scatter, 1) : std::string{};
  }

  std::optional<Group> match(const ImportedNode& join) const {
    const size_t count = join.inputs.size();
    if (count < 2 || join.opset < kAxesAreInputs || integer(join, "axis", -1) != 0) return std::nullopt;
    Group g;
    std::string begin;
    for (size_t i = 0; i < count; ++i) {
      const ImportedNode* product = made_by(join.inputs[i], "MatMul");
      const ImportedNode* rows = product == nullptr ? nullptr : made_by(input(*product, 0), "Gather");
      const ImportedNode* range =
          rows == nullptr || integer(*rows, "axis", 0) != 0 ? nullptr : made_by(input(*rows, 1), "Range");
      if (range == nullptr || !is_number(input(*range, 2), 1)) return std::nullopt;
      if (i == 0 ? !is_number(input(*range, 0), 0) : input(*range, 0) != begin) return std::nullopt;
      begin = input(*range, 1);
      const std::string weights = part(input(*product, 1), i, count), ends = part(begin, i, count);
      if (weights.empty() || ends.empty()) return std::nullopt;
      if (i == 0) g.x = input(*rows, 0), g.weights = weights, g.ends = ends;
      if (input(*rows, 0) != g.x || weights != g.weights || ends != g.ends) return std::nullopt;
    }
    g.counted = counted(g.ends);
    return g.counted.empty() ? std::nullopt : std::optional(g);
  }

  std::string unused(const std::string& stem) {
    std::string name = stem;
    while (makers_.count(name) != 0 || constants_.count(name) != 0 || !taken_.insert(name).second)
      name += "_";
    return name;
  }
  std::string integers(const std::string& stem, const std::vector<int64_t>& all) {
    ImportedTensor t;
    t.name = unused(stem);
    t.onnx_type = 7;
    t.dtype = DType::kInt64;
    t.dims = {static_cast<int64_t>(all.size())};
    t.data = Constant::int64s(all);
    constants_[t.name] = t.data;
    graph_.initializers.push_back(t);
    return t.name;
  }

  void write(const ImportedNode& join, const Group& g, std::vector<ImportedNode>& to) {
    const auto add = [&](const char* op, std::vector<std::string> inputs,
                         const std::vector<std::pair<const char*, int64_t>>& attributes = {}) {
      ImportedNode n;
      n.op_type = op, n.opset = join.opset, n.name = unused(join.name + "/" + op),
      n.inputs = std::move(inputs);
      n.outputs = {n.name};
      for (const auto& [name, number] : attributes) {
        ImportedAttribute a;
        a.name = name, a.kind = ImportedAttribute::Kind::kInt, a.i = number;
        n.attributes.push_back(std::move(a));
      }
      to.push_back(std::move(n));
      return to.back().outputs[0];
    };
    const std::string zero = integers(join.name + "/0", {0}), one = integers(join.name + "/1", {1}),
                      two = integers(join.name + "/2", {2}), last = integers(join.name + "/last", {-1});
    // Rows are as many as the histogram has counted.
    const std::string places = add("Reshape", {g.counted, last});
    const std::string count = add("Shape", {places});
    const std::string row = add("CumSum", {add("Expand", {one, count}), zero}, {{"exclusive", 1}});
    const std::string behind =
        add("Greater", {add("Unsqueeze", {g.ends, zero}), add("Unsqueeze", {row, one})});
    const std::string group =
        add("ArgMax", {add("Cast", {behind}, {{"to", 6}})}, {{"axis", 1}, {"keepdims", 0}});
    const std::string depth = add("Slice", {add("Shape", {g.weights}), one, two});
    const std::string rows = add("Reshape", {g.x, add("Concat", {count, one, depth}, {{"axis", 0}})});
    const std::string product = add("MatMul", {rows, add("Gather", {g.weights, group}, {{"axis", 0}})});
    ImportedNode result = join;
    result.op_type = "Squeeze", result.attributes.clear(), result.inputs = {product, one};
    to.push_back(std::move(result));
  }

  static void read_by(const ImportedGraph& g, std::unordered_set<std::string>& names) {
    for (const ImportedValueInfo& v : g.outputs) names.insert(v.name);
    for (const ImportedNode& n : g.nodes) {
      names.insert(n.inputs.begin(), n.inputs.end());
      for (const ImportedAttribute& a : n.attributes)
        for (const auto& body : a.graphs) read_by(*body, names);
    }
  }
  // The operations that only the joined products needed.
  void drop_unread() {
    for (size_t before = graph_.nodes.size() + 1; graph_.nodes.size() < before;) {
      before = graph_.nodes.size();
      std::unordered_set<std::string> read;
      read_by(graph_, read);
      static const std::unordered_set<std::string> kKinds{"MatMul", "Gather", "Range", "Squeeze", "Split"};
      std::erase_if(graph_.nodes, [&](const ImportedNode& n) {
        return n.domain.empty() && kKinds.count(n.op_type) != 0 &&
               std::none_of(n.outputs.begin(), n.outputs.end(),
                            [&](const std::string& name) { return read.count(name) != 0; });
      });
    }
  }

  ImportedGraph& graph_;
  std::unordered_map<std::string, size_t> makers_;
  std::unordered_map<std::string, ConstantPtr> constants_;
  std::unordered_set<std::string> taken_;
};

}  // namespace

void join_grouped_products(ImportedModel& model) { GroupedProducts(model.graph).run(); }

}  // namespace sinter::convert

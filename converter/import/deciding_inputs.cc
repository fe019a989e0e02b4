// The model inputs that determine a value, which a refusal advises to make constant.
#include <algorithm>
#include <set>

#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

// An input that a constant can replace, such as a size or a switch; a picture or a sequence of tokens cannot
// be.
bool can_be_fixed(const Value& input) {
  constexpr int64_t kMostSettings = 64;
  return element_count(input.dims) <= (is_float(input.dtype) ? 1 : kMostSettings);
}

}  // namespace

std::set<ValueId> ancestors(const Graph& graph, ValueId value) {
  std::set<ValueId> found{value};
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId id) { return found.count(id) != 0; }))
      found.insert(node.inputs.begin(), node.inputs.end());
    found.erase(kAbsent);
  }
  return found;
}

void GraphLowering::find_deciders(ValueId value, std::vector<const Value*>* inputs, bool* carried) const {
  if (value < 0) return;
  const std::set<ValueId> wanted = ancestors(graph_, value);
  const size_t own = graph_.inputs.size() - captures_.size();
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    if (wanted.count(graph_.inputs[i]) == 0) continue;
    const Value& input = graph_.value(graph_.inputs[i]);
    if (i >= own)
      outer_->find_deciders(captures_[i - own], inputs, carried);
    else if (outer_ != nullptr)
      *carried = true;
    else if (std::find(inputs->begin(), inputs->end(), &input) == inputs->end())
      inputs->push_back(&input);
  }
}

std::string GraphLowering::fixing_advice(ValueId value) const {
  std::vector<const Value*> inputs;
  bool carried = false;
  find_deciders(value, &inputs, &carried);
  std::vector<std::string> flags, data;
  for (const Value* input : inputs) {
    const GraphLength* length = nullptr;
    for (const GraphLowering* at = this; at != nullptr; at = at->outer_)
      for (const GraphLength& one : at->graph_.lengths)
        if (&at->graph_.value(at->graph_.inputs[one.input]) == input) length = &one;
    if (length != nullptr)
      flags.push_back(fmt::format("--dim {}=N", length->name));
    else if (can_be_fixed(*input))
      flags.push_back(fmt::format("--const {}=FILE.npy", input->name));
    else
      data.push_back("'" + input->name + "'");
  }
  if (!data.empty())
    return fmt::format("export the model so that this does not depend on the data of {}",
                       fmt::join(data, ", "));
  if (carried) return "export the model so that this is the same in every trip of the loop";
  if (flags.empty()) return "export the model with a constant here";
  return fmt::format("give {}", fmt::join(flags, " "));
}

}  // namespace sinter::convert

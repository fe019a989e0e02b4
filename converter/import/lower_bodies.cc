// Lowers branches and loop bodies: what they capture of the graphs around them, and graphs of their own for
// them.
#include <algorithm>

#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

// The limit of the loader (schemas/FORMAT.md).
constexpr int kMostNesting = 8;

}  // namespace

ValueId GraphLowering::capture(ValueId outside, const std::string& name) {
  for (size_t i = 0; i < captures_.size(); ++i)
    if (captures_[i] == outside) return graph_.inputs[graph_.inputs.size() - captures_.size() + i];
  const Value value = outer_->graph().value(outside);
  if (value.constant) return graph_.add_constant(value.constant, name);
  const ValueId inside = graph_.add_value(name, value.dtype, value.dims);
  graph_.inputs.push_back(inside);
  captures_.push_back(outside);
  Lengths& outer = outer_->lengths();
  for (const auto& [axis, count] : std::vector(value.bounded_dims)) {
    const ValueId own = capture(count, {});
    const LengthId length = outer.of_axis(outside, axis), symbol = lengths_.symbol(own, outer.range(length));
    if (const auto size = outer.expected(length)) lengths_.expect_size(symbol, *size);
    lengths_.inherit_names(symbol, outer.given_names(length));
    graph_.value(inside).bounded_dims.push_back({axis, own});
  }
  return inside;
}

bool GraphLowering::captures_computed(ValueId inside) {
  const size_t first = graph_.inputs.size() - captures_.size();
  for (size_t i = 0; i < captures_.size(); ++i)
    if (graph_.inputs[first + i] == inside) return outer_->lengths().computed(captures_[i]);
  return false;
}

std::optional<std::vector<LengthId>> GraphLowering::captured_items(ValueId inside) {
  const size_t first = graph_.inputs.size() - captures_.size();
  for (size_t i = 0; i < captures_.size(); ++i) {
    if (graph_.inputs[first + i] != inside) continue;
    Lengths& outer = outer_->lengths();
    const auto items = outer.items(captures_[i]);
    if (!items) return std::nullopt;
    std::vector<LengthId> own;
    for (const LengthId id : *items) {
      const auto number = outer.known(id);
      own.push_back(number ? lengths_.constant(*number)
                           : lengths_.symbol(capture(outer.value(id), {}), outer.range(id)));
      if (const auto size = outer.expected(id); size && !number) lengths_.expect_size(own.back(), *size);
      if (!number) lengths_.inherit_names(own.back(), outer.given_names(id));
    }
    return own;
  }
  return std::nullopt;
}

std::optional<LoweredBody> GraphLowering::lower_body(const ImportedGraph& source,
                                                     const std::vector<Parameter>& parameters,
                                                     Diagnostics& diagnostics, const Prologue& prologue,
                                                     const Epilogue& epilogue) {
  int nesting = 0;
  for (const GraphLowering* g = this; g != nullptr; g = g->outer_) ++nesting;
  if (nesting > kMostNesting) {
    diagnostics.refuse("", "",
                       fmt::format("branches and loop bodies are nested more than {} deep", kMostNesting),
                       "give conditions and trip counts with --const, so that they are unrolled");
    return std::nullopt;
  }
  LoweredBody body;
  body.graph = std::make_shared<Graph>();
  body.graph->name = source.name;
  body.graph->ledger = graph_.ledger;
  GraphLowering inner(*body.graph, model_, options_, diagnostics, this);
  const size_t refusals = diagnostics.count(Severity::kRefusal);
  for (const Parameter& p : parameters) {
    const ValueId id = body.graph->add_value(p.name, p.fact.dtype, p.fact.dims);
    body.graph->inputs.push_back(id);
    inner.define(p.name, id);
  }
  if (prologue) prologue(inner);
  inner.lower_nodes(source);
  std::vector<ValueId>& results = body.graph->outputs;
  for (const ImportedValueInfo& out : source.outputs) results.push_back(inner.lookup(out.name));
  if (epilogue) epilogue(inner);
  bool known = true;
  for (size_t i = 0; i < results.size(); ++i) {
    // The epilogue may have replaced them by others.
    inner.refuse_sequence(i < source.outputs.size() ? source.outputs[i].name : source.name, results[i]);
    known &= results[i] >= 0;
  }
  if (!known || diagnostics.count(Severity::kRefusal) != refusals) return std::nullopt;
  body.captures = inner.captures_;
  return body;
}

std::vector<ValueId> GraphLowering::inline_body(const ImportedGraph& source,
                                                const std::vector<ValueId>& parameters) {
  scopes_.emplace_back();
  for (size_t i = 0; i < source.inputs.size() && i < parameters.size(); ++i)
    scopes_.back()[source.inputs[i].name] = parameters[i];
  lower_nodes(source);
  std::vector<ValueId> results;
  for (const ImportedValueInfo& out : source.outputs) results.push_back(lookup(out.name));
  scopes_.pop_back();
  return results;
}

std::vector<ValueId> GraphLowering::lower_behind(const std::map<std::string, ValueId>& given,
                                                 const std::vector<const ImportedNode*>& nodes,
                                                 const std::vector<std::string>& wanted) {
  // The body's own names mean nothing to them.
  std::vector<std::unordered_map<std::string, ValueId>> own(1);
  own[0].insert(given.begin(), given.end());
  std::swap(scopes_, own);
  sources_.push_back(&outer_->source());
  behind_ = true;
  for (const ImportedNode* node : nodes) lower_node(*node);
  std::vector<ValueId> results;
  for (const std::string& name : wanted) results.push_back(lookup(name));
  behind_ = false;
  sources_.pop_back();
  std::swap(scopes_, own);
  return results;
}

}  // namespace sinter::convert

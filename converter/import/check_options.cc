#include "converter/import/check_options.h"

#include <algorithm>
#include <set>

#include "converter/diagnostics/nearest_name.h"
#include "converter/import/input_shapes.h"
#include "converter/import/read/given_constant.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

using NameList = std::vector<std::string>;

// "the model has no input 'k'", with the name that was probably meant or all that there are.
void refuse_name(const char* flag, const std::string& name, const char* kind, const NameList& names,
                 Diagnostics& diagnostics) {
  diagnostics.refuse("", "", fmt::format("{} {}: the model has no {} of this name", flag, name, kind),
                     names.empty() ? "remove the option" : advise_name(names, name));
}

bool has(const NameList& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names that --keep accepts: results of nodes, inputs and constants.
NameList value_names(const ImportedModel& model) {
  NameList names;
  for (const ImportedValueInfo& input : model.graph.inputs) names.push_back(input.name);
  each_graph(model.graph, [&](const ImportedGraph& graph) {
    for (const ImportedTensor& t : graph.initializers) names.push_back(t.name);
    for (const ImportedNode& node : graph.nodes)
      for (const std::string& output : node.outputs)
        if (!output.empty()) names.push_back(output);
  });
  return names;
}

// Returns the names of all nodes, or of those of one ONNX operator.
NameList node_names(const ImportedModel& model, std::string_view op_type = {}) {
  NameList names;
  each_graph(model.graph, [&](const ImportedGraph& graph) {
    for (const ImportedNode& node : graph.nodes)
      if (op_type.empty() || (node.domain.empty() && node.op_type == op_type)) names.push_back(node.name);
  });
  return names;
}

// A dimension's name has one size: from --dim, and from every --shape of an input that uses it.
void check_symbols(const ImportedModel& model, const LoweringOptions& options, Diagnostics& diagnostics) {
  struct Given {
    int64_t size;
    std::string by;
  };
  std::map<std::string, Given> given;
  for (const auto& [name, n] : options.dims) given[name] = {n, fmt::format("--dim {}={}", name, n)};
  for (const ImportedValueInfo& input : model.graph.inputs) {
    const auto shape = options.shapes.find(input.name);
    if (shape == options.shapes.end() || shape->second.size() != input.dims.size()) continue;
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const std::string& symbol = input.dims[axis].symbol;
      if (symbol.empty() || input.dims[axis].value >= 0) continue;
      const int64_t n = shape->second[axis];
      if (const auto range = options.ranges.find(symbol);
          range != options.ranges.end() && n != range->second.maximum)
        diagnostics.refuse(
            "", "",
            fmt::format("--dim {}={}..{} gives dimension '{}' of input '{}' a range, and --shape "
                        "gives it the size {}",
                        symbol, range->second.minimum, range->second.maximum, symbol, input.name, n),
            "remove one of the two, or give the maximum as size");
      const std::string by = fmt::format("--shape {}={}", input.name, shape_text(shape->second));
      const auto [at, fresh] = given.emplace(symbol, Given{n, by});
      if (fresh || at->second.size == n) continue;
      diagnostics.refuse("", "",
                         fmt::format("{} makes dimension '{}' {}, and {} makes it {}", at->second.by, symbol,
                                     at->second.size, by, n),
                         "give one size");
    }
  }
}

// --dim NAME=MIN..MAX.
void check_range(const std::string& name, const DimRange& range, const LoweringOptions& options,
                 const NameList& symbols, Diagnostics& diagnostics) {
  const std::string given = fmt::format("--dim {}={}..{}", name, range.minimum, range.maximum);
  if (!has(symbols, name)) return refuse_name("--dim", name, "input dimension", symbols, diagnostics);
  if (range.minimum > range.maximum)
    diagnostics.refuse("", "", fmt::format("{}: the minimum is above the maximum", given),
                       "give MIN..MAX, such as 1..128");
  else if (range.maximum == 0)
    diagnostics.refuse("", "", fmt::format("{}: every input with this dimension would be empty", given),
                       "give a maximum of 1 or more");
  if (options.dims.count(name) != 0)
    diagnostics.refuse("", "",
                       fmt::format("{}: --dim {}={} gives one size", given, name, options.dims.at(name)),
                       "remove one of the two");
}

}  // namespace

void check_options(const ImportedModel& model, const LoweringOptions& options, Diagnostics& diagnostics) {
  NameList inputs, constants, symbols;
  for (const ImportedValueInfo& input : model.graph.inputs) {
    inputs.push_back(input.name);
    for (const ImportedDim& dim : input.dims)
      if (!dim.symbol.empty() && !has(symbols, dim.symbol)) symbols.push_back(dim.symbol);
  }
  for (const ImportedTensor& t : model.graph.initializers) constants.push_back(t.name);
  for (const auto& [name, shape] : options.shapes) {
    if (has(constants, name) && !has(inputs, name))
      diagnostics.refuse("", "", fmt::format("--shape {}: the model holds this input's value", name),
                         "remove the option, or replace the value with --const NAME=NUMBER or NAME=FILE.npy");
    else if (!has(inputs, name))
      refuse_name("--shape", name, "input", inputs, diagnostics);
    else if (const auto value = options.constants.find(name);
             value != options.constants.end() && !is_number(*value->second) && value->second->dims() != shape)
      diagnostics.refuse("", "",
                         fmt::format("--shape {}={}: --const gives this input a value of shape {}", name,
                                     shape_text(shape), to_string(value->second->dims())),
                         "remove one of the two");
    else if (std::find(shape.begin(), shape.end(), 0) != shape.end())
      diagnostics.warn(
          "", "",
          fmt::format("--shape {}={}: a size of 0 makes the input and everything computed from it empty",
                      name, fmt::join(shape, ",")),
          "give the size that the input has when the model runs");
  }
  for (const auto& [name, constant] : options.constants)
    if (!has(inputs, name) && !has(constants, name))
      refuse_name("--const", name, "input", inputs, diagnostics);
  for (const auto& [name, n] : options.dims) {
    if (!has(symbols, name)) {
      refuse_name("--dim", name, "input dimension", symbols, diagnostics);
    } else if (n == 0) {
      diagnostics.warn(
          "", "", fmt::format("--dim {}=0: a size of 0 makes every input with this dimension empty", name),
          "give the size that the inputs have when the model runs");
    }
  }
  for (const auto& [name, range] : options.ranges) check_range(name, range, options, symbols, diagnostics);
  if (options.ranges.size() > detail::kMaxLengths)
    diagnostics.refuse("", "", fmt::format("--dim: {} dimensions have ranges", options.ranges.size()),
                       fmt::format("give ranges to at most {}", detail::kMaxLengths));
  NameList outputs, ports = inputs;
  for (const ImportedValueInfo& output : model.graph.outputs) outputs.push_back(output.name);
  ports.insert(ports.end(), outputs.begin(), outputs.end());
  for (const auto& [output, input] : options.states) {
    if (!has(outputs, output)) refuse_name("--state", output, "output", outputs, diagnostics);
    if (!has(inputs, input)) refuse_name("--state", input, "input", inputs, diagnostics);
  }
  for (const auto& [name, array] : options.initial_states)
    if (!has(inputs, name)) refuse_name("--state-init", name, "input", inputs, diagnostics);
  for (const std::string& name : options.bindable)
    if (!has(ports, name)) refuse_name("--bindable", name, "input or output", ports, diagnostics);
  check_symbols(model, options, diagnostics);
  if (!options.keep.empty()) {
    const NameList values = value_names(model);
    for (const auto& [name, type] : options.keep)
      if (!has(values, name)) refuse_name("--keep", name, "value", values, diagnostics);
  }
  if (!options.max_trips.empty()) {
    const NameList loops = node_names(model, "Loop");
    for (const auto& [name, n] : options.max_trips)
      if (!has(loops, name)) refuse_name("--max-trips", name, "Loop node", loops, diagnostics);
  }
  if (!options.bounds.empty()) {
    const NameList nodes = node_names(model);
    for (const auto& [name, n] : options.bounds)
      if (name.empty() || !has(nodes, name)) refuse_name("--bound", name, "node", nodes, diagnostics);
  }
}

}  // namespace sinter::convert

// The ONNX model becomes a graph for each shape set.
#include <fmt/format.h>

#include <algorithm>

#include "converter/import/caches/states.h"
#include "converter/stages/conversion.h"

namespace sinter::convert {

void add_of_set(const Diagnostics& own, size_t set, Conversion& c) {
  const std::vector<Diagnostic> before = c.diagnostics.all();
  for (Diagnostic d : own.all()) {
    if (set > 0 && std::find(before.begin(), before.end(), d) == before.end())
      d.message += fmt::format(" (with --shapes \"{}\")", c.options.shape_sets[set].text);
    c.diagnostics.add(std::move(d));
  }
}

void describe_ports(Conversion& c) {
  const Graph& graph = c.graph();
  const auto port = [&](ValueId id, const std::vector<ImportedValueInfo>& declarations) {
    const Value& v = graph.value(id);
    PortReport p{v.name, v.dtype, v.dims, DType::kNone};
    for (const ImportedValueInfo& declared : declarations)
      if (declared.name == v.name) p.declared = declared.dtype;
    if (is_float(p.declared) && is_integer(v.dtype)) p.integers = {v.scale, v.zero_point};
    return p;
  };
  c.report.inputs.clear(), c.report.outputs.clear();
  for (const ValueId id : graph.inputs)
    if (graph.state_read(id) == nullptr && graph.given_length(id) == nullptr)
      c.report.inputs.push_back(port(id, c.imported->graph.inputs));
  for (const ValueId id : graph.outputs)
    if (graph.state_written(id) == nullptr) c.report.outputs.push_back(port(id, c.imported->graph.outputs));
}

bool read_model(Conversion& c) {
  c.imported = import_model(c.onnx, c.diagnostics, 2 * c.options.lowering.most_operations);
  if (!c.imported) return false;
  if (c.options.external_files) c.options.external_files(c.imported->external_files);
  c.report.onnx_nodes = c.imported->graph.nodes.size();
  std::error_code ignored;
  c.report.onnx_bytes = std::filesystem::file_size(c.onnx, ignored);
  return true;
}

// A refusal of a further set that does not concern the first one as well names the set.
bool lower_entries(Conversion& c) {
  const std::vector<ShapeSet>& sets = c.options.shape_sets;
  c.lowerings = options_of_sets(*c.imported, c.options.lowering, sets, c.diagnostics);
  if (c.diagnostics.refused()) return false;
  std::vector<Graph> graphs;
  for (size_t i = 0; i < c.lowerings.size(); ++i) {
    Diagnostics own;
    NodeFates fates;
    std::optional<Graph> graph =
        lower_model(*c.imported, c.lowerings[i], own, i == 0 ? &c.report.fates : &fates,
                    i == 0 ? &c.report.settled_dims : nullptr);
    add_of_set(own, i, c);
    if (!graph || c.diagnostics.refused()) return false;
    graphs.push_back(std::move(*graph));
  }
  if (!sets.empty()) attribute_to_sets(*c.imported, c.options.lowering, c.report.settled_dims);
  check_sets(graphs, sets, c.diagnostics);
  if (c.diagnostics.refused()) return false;
  for (size_t i = 0; i < graphs.size(); ++i)
    c.entries.push_back({sets.empty() ? "" : sets[i].text, std::move(graphs[i])});
  describe_ports(c);
  c.report.onnx_multiply_adds = total(multiply_adds(c.graph()));
  c.report.proposed_states = propose_states(c.graph());
  c.report.lowered_nodes = count_nodes(c.graph());
  // Data that does not fit is refused before anything runs.
  c.inputs = sample_inputs(c.graph(), &c.imported->graph);
  if (c.options.reads_data() || !keeps_facts(c.options))
    check_preprocessing(c.options.preprocessing, {c.options.calibrate, c.options.evaluate}, c.inputs);
  return true;
}

}  // namespace sinter::convert

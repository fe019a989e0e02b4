// Scan, as a planned loop whose body takes its element of every sequence.
#include "converter/import/lower/control.h"

namespace sinter::convert {
namespace {

// Attribute lists of Scan-9 and later, with defaults.
struct ScanAttrs {
  size_t inputs = 0, states = 0, outputs = 0;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
};

bool read_scan(NodeLowering& n, const ImportedGraph& body, ScanAttrs* a) {
  a->inputs = static_cast<size_t>(std::max<int64_t>(0, n.attr_int("num_scan_inputs", 0)));
  if (a->inputs < 1 || a->inputs > n.node().inputs.size() || n.node().inputs.size() != body.inputs.size())
    return n.refuse_shapes("num_scan_inputs {} does not fit {} operands and a body of {}", a->inputs,
                           n.node().inputs.size(), body.inputs.size());
  a->states = n.node().inputs.size() - a->inputs;
  if (body.outputs.size() < a->states) return n.refuse("its body gives fewer results than there are states");
  a->outputs = body.outputs.size() - a->states;
  a->input_axes = n.attr_ints("scan_input_axes", std::vector<int64_t>(a->inputs, 0));
  a->input_directions = n.attr_ints("scan_input_directions", std::vector<int64_t>(a->inputs, 0));
  a->output_axes = n.attr_ints("scan_output_axes", std::vector<int64_t>(a->outputs, 0));
  a->output_directions = n.attr_ints("scan_output_directions", std::vector<int64_t>(a->outputs, 0));
  if (a->input_axes.size() != a->inputs || a->input_directions.size() != a->inputs ||
      a->output_axes.size() != a->outputs || a->output_directions.size() != a->outputs)
    return n.refuse_shapes("its axes and directions do not fit its operands and results");
  return true;
}

// One scan over sequences along their axes. Results: final states, scanned values.
std::optional<std::vector<ValueId>> scan(NodeLowering& n, const ImportedGraph& body, const ScanAttrs& a,
                                         std::vector<ValueId> states, const std::vector<ValueId>& sequences) {
  int64_t trips = -1;
  std::vector<int64_t> axes = a.input_axes;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (!n.normalize_axis(&axes[i], n.rank(sequences[i]))) return std::nullopt;
    const int64_t length = n.dims(sequences[i])[static_cast<size_t>(axes[i])];
    if (trips >= 0 && trips != length)
      return n.refuse("its sequences have {} and {} elements", trips, length), std::nullopt;
    trips = length;
  }
  if (trips < 1) return n.refuse("a scan over an empty sequence"), std::nullopt;
  PlannedLoop loop;
  loop.trips = n.int64(trips);
  loop.max_trips = trips;
  loop.exact = true;
  loop.carried = std::move(states);
  loop.names = {"scan.iteration", "scan.condition"};
  for (size_t i = 0; i < a.states; ++i) loop.names.push_back(body.inputs[i].name);
  // Every iteration takes its element of the captured sequences.
  const auto prologue = [&](GraphLowering& inner) {
    Builder& builder = inner.builder();
    builder.set_origin({n.node().name, "Scan"});
    const ValueId iteration = inner.graph().inputs[0];
    for (size_t i = 0; i < sequences.size(); ++i) {
      const ValueId sequence = inner.capture(sequences[i], {});
      std::vector<ValueId> index{iteration}, element;
      Status status = ok_status();
      if (a.input_directions[i] != 0) {
        const ValueId last = inner.graph().add_constant(Constant::scalar_int(DType::kInt64, trips - 1));
        status = builder.emit(SubAttrs{}, {last, iteration}, 1, &index);
      }
      if (status.ok()) status = builder.emit(GatherAttrs{axes[i]}, {sequence, index[0]}, 1, &element);
      inner.define(body.inputs[a.states + i].name, status.ok() ? element[0] : kUnknown);
    }
  };
  auto results = planned_loop(n, body, loop, n.parent().diagnostics(), prologue, false);
  if (!results) return std::nullopt;
  for (size_t i = 0; i < a.outputs; ++i) {
    ValueId& y = (*results)[a.states + i];
    if (a.output_directions[i] != 0) {
      SliceAttrs back;
      for (size_t axis = 0; axis < n.dims(y).size(); ++axis) {
        back.starts.push(axis == 0 ? trips - 1 : 0);
        back.steps.push(axis == 0 ? -1 : 1);
        back.sizes.push(n.dims(y)[axis]);
      }
      y = n.emit(back, {y});
    }
    int64_t axis = a.output_axes[i];
    if (!n.normalize_axis(&axis, n.rank(y))) return std::nullopt;
    std::vector<int64_t> perm;
    for (int64_t d = 1; d < n.rank(y); ++d) perm.push_back(d);
    perm.insert(perm.begin() + axis, 0);
    y = n.transpose(y, perm);
  }
  return results;
}

// Scan-8: a leading batch axis everywhere, sequence lengths that must be absent; one scan per batch
// entry.
bool lower_scan_8(NodeLowering& n, const ImportedGraph& body) {
  if (n.has_input(0)) return n.refuse("sequence_lens of Scan-8 is not supported");
  ScanAttrs a;
  a.inputs = static_cast<size_t>(std::max<int64_t>(0, n.attr_int("num_scan_inputs", 0)));
  const size_t operands = n.node().inputs.size() - 1;
  if (a.inputs < 1 || a.inputs > operands || body.inputs.size() != operands ||
      body.outputs.size() + a.inputs < operands)
    return n.refuse_shapes("num_scan_inputs {} does not fit its operands and body", a.inputs);
  a.states = operands - a.inputs;
  a.outputs = body.outputs.size() - a.states;
  a.input_axes.assign(a.inputs, 0);
  a.input_directions = n.attr_ints("directions", std::vector<int64_t>(a.inputs, 0));
  a.output_axes.assign(a.outputs, 0);
  a.output_directions.assign(a.outputs, 0);
  if (a.input_directions.size() != a.inputs) return n.refuse_shapes("directions do not fit its operands");
  const int64_t batch = n.dims(n.input(1)).empty() ? 0 : n.dims(n.input(1))[0];
  std::vector<std::vector<ValueId>> gathered(body.outputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<ValueId> entries;
    for (size_t i = 0; i < operands; ++i) {
      ValueId v = n.input(1 + i);
      if (n.dims(v).empty() || n.dims(v)[0] != batch)
        return n.refuse("operand {} has no batch axis of {}", i + 1, batch);
      const Dims rest(n.dims(v).begin() + 1, n.dims(v).end());
      entries.push_back(n.reshape(n.slice(v, 0, b, 1), rest));
    }
    const auto results =
        scan(n, body, a, {entries.begin(), entries.begin() + static_cast<ptrdiff_t>(a.states)},
             {entries.begin() + static_cast<ptrdiff_t>(a.states), entries.end()});
    if (!results) return false;
    for (size_t i = 0; i < results->size(); ++i) gathered[i].push_back((*results)[i]);
  }
  std::vector<ValueId> results;
  for (const auto& items : gathered) results.push_back(items.empty() ? kUnknown : stack(n, items));
  return give_results(n, results);
}

bool lower_scan(NodeLowering& n) {
  const ImportedGraph* body = n.attr_graph("body");
  if (body == nullptr) return n.refuse("has no body");
  for (size_t i = 0; i < n.input_count(); ++i)
    if (n.input(i) == kUnknown) return false;
  if (n.opset() < 9) return lower_scan_8(n, *body);
  ScanAttrs a;
  if (!read_scan(n, *body, &a)) return false;
  std::vector<ValueId> states, sequences;
  for (size_t i = 0; i < a.states; ++i) states.push_back(n.input(i));
  for (size_t i = 0; i < a.inputs; ++i) sequences.push_back(n.input(a.states + i));
  const auto results = scan(n, *body, a, states, sequences);
  return results && give_results(n, *results);
}

}  // namespace

std::span<const OnnxOperator> scan_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Scan", 8, lower_scan, "", kTakesUnknown | kNoInput},
  };
  return kRules;
}

}  // namespace sinter::convert

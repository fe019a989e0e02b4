#include "converter/plan/elide.h"

#include <algorithm>

#include "runtime/core/in_place.h"

namespace sinter::convert {

bool contiguous(const SliceAttrs& slice, const Value& in, uint64_t* distance) {
  uint64_t stride = byte_width(in.dtype);
  bool whole = true;  // all axes behind this one are taken whole
  *distance = 0;
  for (size_t axis = in.dims.size(); axis-- > 0;) {
    const int i = static_cast<int>(axis);
    if (slice.sizes[i] == 0) return false;
    if (slice.sizes[i] > 1 && (slice.steps[i] != 1 || !whole)) return false;
    if (slice.sizes[i] != in.dims[axis]) whole = false;
    *distance += static_cast<uint64_t>(slice.starts[i]) * stride;
    stride *= static_cast<uint64_t>(in.dims[axis]);
  }
  return true;
}

Storage::Storage(const Graph& graph, size_t own_inputs, const Takes& takes, const std::vector<bool>& moved)
    : graph_(graph),
      blocks_(graph.values.size()),
      elided_(graph.nodes.size()),
      placed_(graph.values.size()),
      bytes_(graph.values.size()),
      strides_(graph.values.size()),
      takes_(takes) {
  const auto place = [&](ValueId id) {
    if (id < 0) return;
    const Value& v = graph.value(id);
    placed_[static_cast<size_t>(id)] = true;
    bytes_[static_cast<size_t>(id)] = dense_bytes(v.dtype, v.dims);
  };
  for (size_t i = 0; i < own_inputs; ++i) place(graph.inputs[i]);
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.outputs) place(id);
  caller_writes_.resize(graph.values.size());
  caller_reads_.resize(graph.values.size());
  for (size_t i = 0; i < own_inputs; ++i) caller_writes_[static_cast<size_t>(graph.inputs[i])] = true;
  for (const ValueId v : graph.outputs)
    caller_reads_[static_cast<size_t>(v)] = graph.state_written(v) == nullptr;
  // Also read after a run, when states have been copied.
  if (!graph.states.empty())
    for (const Value& v : graph.values)
      for (const auto& [axis, length] : v.bounded_dims) caller_reads_[static_cast<size_t>(length)] = true;
  bindable_.resize(graph.values.size());
  for (const size_t i : graph.bindable_inputs) bindable_[static_cast<size_t>(graph.inputs[i])] = true;
  for (const size_t i : graph.bindable_outputs) bindable_[static_cast<size_t>(graph.outputs[i])] = true;
  for (size_t n = 0; n < graph.nodes.size(); ++n) elide(n);
  if (!takes) return;
  touching_.resize(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const auto* list : {&graph.nodes[n].inputs, &graph.nodes[n].outputs})
      for (const ValueId id : *list)
        if (id >= 0 &&
            (touching_[static_cast<size_t>(id)].empty() || touching_[static_cast<size_t>(id)].back() != n))
          touching_[static_cast<size_t>(id)].push_back(n);
  const auto stays = [&](size_t n) { return elided_[n] || (n < moved.size() && moved[n]); };
  // A join of joins has its place before its parts get theirs in it.
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (graph.nodes[n].op() == Op::kConcat && !stays(n)) place_parts(n);
    if (graph.nodes[n].op() == Op::kPad && byte_width(graph.value(graph.nodes[n].outputs[0]).dtype) > 0)
      find_fitting(n);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op() == Op::kSlice && !stays(n)) place_window(n);
}

uint64_t Storage::reach(ValueId root) const {
  uint64_t far = 0;
  for (const ValueId m : blocks_.members(root)) far = std::max(far, blocks_.delta(m) + bytes(m));
  return far;
}

bool Storage::keeps_state(ValueId root) const {
  return std::any_of(graph_.states.begin(), graph_.states.end(),
                     [&](const GraphState& s) { return blocks_.root(graph_.inputs[s.input]) == root; });
}

bool Storage::fits_bindable(ValueId v, ValueId onto, uint64_t distance) const {
  const ValueId from = blocks_.root(v), to = blocks_.root(onto);
  const uint64_t start = blocks_.delta(onto) + distance;
  if (bindable(from)) return !bindable(to) && start == 0 && v == from && reach(to) <= bytes(from);
  return !bindable(to) || start + reach(from) <= bytes(to);
}

void Storage::join(ValueId v, ValueId onto, uint64_t distance) {
  if (bindable(v)) {
    onto = blocks_.root(onto), distance = 0;
    std::swap(v, onto);
  }
  const auto from = static_cast<size_t>(blocks_.root(v)), to = static_cast<size_t>(blocks_.root(onto));
  caller_writes_[to] = caller_writes_[to] || caller_writes_[from];
  caller_reads_[to] = caller_reads_[to] || caller_reads_[from];
  blocks_.join(v, onto, distance);
}

bool Storage::may_join(ValueId a, ValueId b) const {
  const ValueId ra = blocks_.root(a), rb = blocks_.root(b);
  if (ra == rb || graph_.value(a).memory != graph_.value(b).memory) return false;
  const bool in = caller_writes(ra) || caller_writes(rb), out_a = caller_reads(ra), out_b = caller_reads(rb);
  // When a run ends, states are copied one after the other.
  const GraphState* kept = nullptr;
  for (const GraphState& s : graph_.states)
    if (const ValueId r = blocks_.root(graph_.inputs[s.input]); r == ra || r == rb) {
      if (kept != nullptr) return false;
      kept = &s;
    }
  for (const GraphState& s : graph_.states)
    if (const ValueId r = blocks_.root(graph_.outputs[s.output]);
        kept != nullptr && &s != kept && (r == ra || r == rb))
      return false;
  return !(in && (out_a || out_b)) && !(out_a && out_b);
}

void Storage::elide(size_t n) {
  const Node& node = graph_.nodes[n];
  if (node.op() == Op::kConcat) return elide_concat(n);
  const auto* slice = node.as<SliceAttrs>();
  if (node.op() != Op::kView && node.op() != Op::kCopy && slice == nullptr) return;
  const ValueId in = node.inputs[0], out = node.outputs[0];
  uint64_t distance = 0;
  if (!placed(in) || !may_join(in, out)) return;
  if (slice != nullptr && !contiguous(*slice, graph_.value(in), &distance)) return;
  if (!fits_bindable(out, in, distance)) return;
  join(out, in, distance);
  elided_[n] = true;
}

void Storage::elide_concat(size_t n) {
  const Node& node = graph_.nodes[n];
  const auto axis = static_cast<size_t>(node.as<ConcatAttrs>()->axis);
  const ValueId out = node.outputs[0];
  const Dims& dims = graph_.value(out).dims;
  for (size_t i = 0; i < axis; ++i)
    if (dims[i] != 1) return;
  std::vector<ValueId> roots;
  for (const ValueId in : node.inputs) {
    if (!placed(in) || bytes(in) == 0 || graph_.value(in).memory != graph_.value(out).memory) return;
    const ValueId root = blocks_.root(in);
    // The part must be all of its block, or bytes outside the output would have no place.
    if (blocks_.delta(in) != 0 || reach(root) != bytes(in) || caller_writes(root) || caller_reads(root) ||
        bindable(root) || std::find(roots.begin(), roots.end(), root) != roots.end())
      return;
    roots.push_back(root);
  }
  uint64_t distance = 0;
  for (const ValueId in : node.inputs) {
    join(in, out, distance);
    distance += bytes(in);
  }
  elided_[n] = true;
}

std::vector<int64_t> Storage::laid_out(ValueId id) const {
  if (!strides(id).empty()) return strides(id);
  const Value& v = graph_.value(id);
  std::vector<int64_t> result(v.dims.size());
  auto stride = static_cast<int64_t>(byte_width(v.dtype));
  for (size_t i = v.dims.size(); i-- > 0;) result[i] = stride, stride *= v.dims[i];
  return result;
}

bool Storage::give_strides(size_t n, const std::vector<ValueId>& values, const std::vector<int64_t>& given) {
  for (const ValueId id : values) {
    const Value& v = graph_.value(id);
    uint64_t extent = byte_width(v.dtype);
    for (size_t i = 0; i < given.size(); ++i)
      extent += static_cast<uint64_t>(given[i]) * static_cast<uint64_t>(v.dims[i] - 1);
    strides_[static_cast<size_t>(id)] = given;
    bytes_[static_cast<size_t>(id)] = extent;
  }
  const bool agreed = std::all_of(values.begin(), values.end(), [&](ValueId id) {
    const auto& steps = touching_[static_cast<size_t>(id)];
    return std::all_of(steps.begin(), steps.end(), [&](size_t s) { return s == n || takes_(s, *this); });
  });
  if (!agreed) drop_strides(values);
  return agreed;
}

void Storage::drop_strides(const std::vector<ValueId>& values) {
  for (const ValueId id : values) {
    strides_[static_cast<size_t>(id)].clear();
    bytes_[static_cast<size_t>(id)] = dense_bytes(graph_.value(id).dtype, graph_.value(id).dims);
  }
}

bool Storage::may_lie_inside(ValueId part, ValueId whole) const {
  return placed(part) && bytes(part) > 0 && alone(part) && !caller_writes(part) && !caller_reads(part) &&
         !bindable(part) && graph_.state_written(part) == nullptr &&  // a state is dense
         graph_.value(part).memory == graph_.value(whole).memory;
}

// The inputs are parts of the output, each with its strides.
void Storage::place_parts(size_t n) {
  const Node& node = graph_.nodes[n];
  const auto axis = static_cast<size_t>(node.as<ConcatAttrs>()->axis);
  const ValueId out = node.outputs[0];
  if (byte_width(graph_.value(out).dtype) == 0) return;
  std::vector<ValueId> parts;
  for (const ValueId in : node.inputs) {
    if (!may_lie_inside(in, out) || std::find(parts.begin(), parts.end(), in) != parts.end())
      return find_fitting(n);
    parts.push_back(in);
  }
  const std::vector<int64_t> given = laid_out(out);
  if (!give_strides(n, parts, given)) return find_fitting(n);
  uint64_t distance = 0;
  for (const ValueId in : parts) {
    join(in, out, distance);
    distance += static_cast<uint64_t>(graph_.value(in).dims[axis] * given[axis]);
  }
  elided_[n] = true;
  strided_.push_back(n);
}

// Which operands could be placed in the result, were it not for others.
void Storage::find_fitting(size_t n) {
  const Node& node = graph_.nodes[n];
  const ValueId out = node.outputs[0];
  const std::vector<int64_t> given = laid_out(out);
  PartialJoin join{n, std::vector<bool>(node.inputs.size()), 0};
  const size_t parts = node.op() == Op::kPad ? 1 : node.inputs.size();
  for (size_t i = 0; i < parts; ++i) {
    const ValueId in = node.inputs[i];
    const auto here = node.inputs.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(node.inputs.begin(), here, in) != here || !may_lie_inside(in, out) ||
        !give_strides(n, {in}, given))
      continue;
    drop_strides({in});
    join.fits[i] = true;
    join.bytes += bytes(in);
  }
  if (join.bytes > 0) partial_.push_back(std::move(join));
}

// The output is part of the input.
void Storage::place_window(size_t n) {
  const Node& node = graph_.nodes[n];
  const auto& slice = *node.as<SliceAttrs>();
  const ValueId in = node.inputs[0], out = node.outputs[0];
  if (!placed(in) || !alone(out) || bytes(out) == 0 || byte_width(graph_.value(in).dtype) == 0 ||
      caller_reads(out) || bindable(out) || graph_.state_written(out) != nullptr || !may_join(in, out))
    return;
  std::vector<int64_t> given = laid_out(in);
  uint64_t distance = 0;
  for (size_t axis = 0; axis < given.size(); ++axis) {
    const int i = static_cast<int>(axis);
    distance += static_cast<uint64_t>(slice.starts[i] * given[axis]);
    if (slice.sizes[i] <= 1) continue;
    if (slice.steps[i] < 1) return;
    given[axis] *= slice.steps[i];
  }
  if (!give_strides(n, {out}, given)) return;
  join(out, in, distance);
  elided_[n] = true;
  strided_.push_back(n);
}

ValueId works_in_place(const Node& node, ValueId operand) {
  if (operand < 0) return kAbsent;
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    bool reads = false, all = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != operand) continue;
      reads = true, all = all && may_be_in_place(node.op(), o, i);
    }
    if (reads && all) return node.outputs[o];
  }
  return kAbsent;
}

ValueId Storage::fits_in_place(const Node& node, ValueId operand) const {
  const ValueId result = works_in_place(node, operand);
  if (result < 0) return kAbsent;
  const Value &in = graph_.value(operand), &out = graph_.value(result);
  const bool fits = in.dims == out.dims && byte_width(in.dtype) == byte_width(out.dtype) &&
                    in.memory == out.memory && strides(operand) == strides(result);
  return fits ? result : kAbsent;
}

}  // namespace sinter::convert

#include "converter/plan/stripes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "converter/flow/element_map.h"
#include "converter/flow/slice_along.h"
#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"

namespace sinter::convert {
namespace {

constexpr size_t kRowAxis = 1;

// Returns the axis of an operand whose entries are the result's rows, one for one; nullopt: there is none.
std::optional<size_t> axis_of_rows(const Graph& graph, const Node& node, size_t operand) {
  const auto map = element_map(graph, node, operand);
  const int axis = map && !map->is_flat ? map->following(static_cast<int>(kRowAxis)) : -1;
  if (axis < 0 || !map->axes[static_cast<size_t>(axis)].is_in_place()) return std::nullopt;
  const auto of = static_cast<size_t>(axis);
  return graph.value(node.inputs[operand]).dims[of] == graph.value(node.outputs[0]).dims[kRowAxis]
             ? std::optional(of)
             : std::nullopt;
}

// Returns whether a node without a window reads operand 0 row by row and the others whole.
bool works_on_rows(const Graph& graph, const Node& node) {
  const Value& x = graph.value(node.inputs[0]);
  const auto rank = static_cast<int64_t>(x.dims.size());
  const auto row = static_cast<int64_t>(kRowAxis);
  const auto along_rows = [&](int64_t axis, int64_t block) {
    return axis == row && (block > 0 || element_count(graph.value(node.inputs[1]).dims) > 1);
  };
  switch (node.op()) {
    case Op::kFullyConnected:
    case Op::kLowBitFullyConnected:
    case Op::kQFullyConnected:
    case Op::kQPRelu:
    case Op::kLut:
    case Op::kQTable:
      return rank >= 3;  // the last axis is another one
    case Op::kQuantize:
      return !along_rows(node.as<QuantizeAttrs>()->axis, node.as<QuantizeAttrs>()->block_size);
    case Op::kDequantize:
      return !along_rows(node.as<DequantizeAttrs>()->axis, node.as<DequantizeAttrs>()->block_size);
    case Op::kSoftmax:
      return node.as<SoftmaxAttrs>()->axis != row;
    case Op::kQSoftmax:
      return node.as<QSoftmaxAttrs>()->axis != row;
    case Op::kLayerNorm:
      return node.as<LayerNormAttrs>()->axis > row;
    case Op::kRmsNorm:
      return node.as<RmsNormAttrs>()->axis > row;
    case Op::kTranspose:
    case Op::kPad:
    case Op::kSlice:
      return axis_of_rows(graph, node, 0).value_or(0) != 0;
    default:
      return false;
  }
}

RowRange all_rows(const Graph& graph, ValueId id) { return {0, graph.value(id).dims[kRowAxis]}; }

// Returns whether each of these nodes reads the value row by row.
bool read_by_rows(const Graph& graph, const std::vector<int>& readers, ValueId id) {
  return std::all_of(readers.begin(), readers.end(), [&](int n) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == id) {
        const auto read = rows_read(graph, node, k, all_rows(graph, node.outputs[0]));
        if (!read || read->axis != kRowAxis) return false;
      }
    return true;
  });
}

// Returns the attributes with which a node computes only the rows `out`.
std::optional<OpAttrs> attrs_for(const Graph& graph, const Node& node, RowRange out) {
  OpAttrs attrs = node.attrs;
  if (auto* slice = std::get_if<SliceAttrs>(&attrs)) slice->sizes[static_cast<int>(kRowAxis)] = out.count();
  const std::optional<RowWindow> window = row_window(graph, node);
  if (window && !window->narrow(out, &attrs)) return std::nullopt;
  return attrs;
}

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}

  void keep(size_t n) { add(graph_.nodes[n], n); }

  bool compute(const Striping& striping) {
    std::vector<ValueId> parts;
    for (size_t s = 0; s < striping.stripes.size(); ++s) {
      const ValueId part = compute(striping.region, striping.stripes[s], s);
      if (part == kAbsent) return false;
      parts.push_back(part);
    }
    const size_t last = striping.region.nodes.back();
    const Node& node = graph_.nodes[last];
    add({ConcatAttrs{static_cast<int64_t>(kRowAxis)},
         std::move(parts),
         {node.outputs[0]},
         node.name,
         node.origin,
         {}},
        last);
    return true;
  }

  std::vector<size_t> finish() {
    graph_.nodes = std::move(nodes_);
    return std::move(origin_);
  }

 private:
  void add(Node node, size_t from) {
    nodes_.push_back(std::move(node));
    origin_.push_back(from);
  }

  // Returns the last result's part, or kAbsent.
  ValueId compute(const StripeRegion& region, const Stripe& stripe, size_t number) {
    slices_.clear();
    std::map<ValueId, std::pair<ValueId, RowRange>> made;  // the parts, by the whole value
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      const Node& node = graph_.nodes[region.nodes[i]];
      std::vector<ValueId> operands = node.inputs;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k] == kAbsent) continue;
        const std::optional<RowsRead> read = rows_read(graph_, node, k, stripe[i]);
        if (!read) continue;
        const auto it = made.find(operands[k]);
        operands[k] = it != made.end()
                          ? part(it->second.first, it->second.second, read->rows, kRowAxis, region.nodes[i])
                          : part(operands[k], {0, graph_.value(operands[k]).dims[read->axis]}, read->rows,
                                 read->axis, region.nodes[i]);
        if (operands[k] == kAbsent) return kAbsent;
      }
      std::optional<OpAttrs> attrs = attrs_for(graph_, node, stripe[i]);
      const ValueId result = attrs ? emit(std::move(*attrs), std::move(operands), region.nodes[i]) : kAbsent;
      Dims dims = graph_.value(node.outputs[0]).dims;
      dims[kRowAxis] = stripe[i].count();
      if (result == kAbsent || graph_.value(result).dims != dims) return kAbsent;
      const Value& whole = graph_.value(node.outputs[0]);
      Value& rows = graph_.value(result);
      rows.order = whole.order, rows.scale = whole.scale, rows.zero_point = whole.zero_point;
      if (!whole.name.empty()) rows.name = fmt::format("{}.rows{}", whole.name, number);
      made[node.outputs[0]] = {result, stripe[i]};
    }
    return made.at(graph_.nodes[region.nodes.back()].outputs[0]).first;
  }

  ValueId emit(OpAttrs attrs, std::vector<ValueId> operands, size_t from) {
    std::vector<ValueFact> in, out;
    for (const ValueId id : operands)
      in.push_back(id == kAbsent ? ValueFact{} : ValueFact{graph_.value(id).dtype, graph_.value(id).dims});
    if (!infer_outputs(attrs, in, 1, {true}, &out).ok()) return kAbsent;
    const ValueId result = graph_.add_value({}, out[0].dtype, out[0].dims);
    const Node& node = graph_.nodes[from];
    add({std::move(attrs), std::move(operands), {result}, node.name, node.origin, {}}, from);
    return result;
  }

  // Returns the entries `wanted` along an axis of a value whose entries `held` are in `id`.
  ValueId part(ValueId id, RowRange held, RowRange wanted, size_t axis, size_t reader) {
    if (wanted == held) return id;
    const RowRange rows{wanted.begin - held.begin, wanted.end - held.begin};
    for (const Slice& s : slices_)
      if (s.from == id && s.rows == rows && s.axis == axis) return s.slice;
    const Dims& dims = graph_.value(id).dims;
    const SliceAttrs window = slice_along(dims, axis, rows.begin, rows.count());
    ValueId slice = kAbsent;
    if (graph_.is_constant(id)) {
      std::vector<ConstantPtr> folded;
      if (!evaluate(window, {graph_.value(id).constant}, 1, &folded).ok()) return kAbsent;
      slice = graph_.add_constant(folded[0]);
    } else {
      slice = emit(window, {id}, reader);
    }
    slices_.push_back({id, rows, axis, slice});
    return slice;
  }

  struct Slice {
    ValueId from;
    RowRange rows;
    size_t axis;
    ValueId slice;
  };

  Graph& graph_;
  std::vector<Node> nodes_;
  std::vector<size_t> origin_;
  std::vector<Slice> slices_;  // the slices that this stripe has
};

}  // namespace

bool has_rows(const Graph& graph, const Node& node) {
  if (node.outputs.empty() || node.outputs[0] == kAbsent || node.inputs.empty() ||
      node.inputs[0] == kAbsent || !node.bodies.empty() ||
      !std::all_of(node.outputs.begin() + 1, node.outputs.end(), [](ValueId id) { return id == kAbsent; }))
    return false;
  const Value &x = graph.value(node.inputs[0]), &y = graph.value(node.outputs[0]);
  const auto plain = [](const Value& v) {
    return v.dims.size() >= 3 && v.dims[0] == 1 && element_count(v.dims) > 0 && v.bounded_dims.empty() &&
           v.memory == 0;
  };
  if (!plain(y) || y.constant != nullptr) return false;
  if (is_elementwise(node.op())) {
    // An operand without leading axes must have none of the rows' either.
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      if (id == kAbsent) return true;
      const Value& v = graph.value(id);
      const size_t rank = v.dims.size();
      return v.bounded_dims.empty() && (rank == y.dims.size() || rank + 1 < y.dims.size() ||
                                        (rank + 1 == y.dims.size() && v.dims[0] == 1));
    });
  }
  if (!plain(x)) return false;
  if (const auto* concat = node.as<ConcatAttrs>()) {
    return concat->axis != static_cast<int64_t>(kRowAxis) && concat->axis != 0 &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return plain(graph.value(id)); });
  }
  if (row_window(graph, node)) {
    // The sums of a window that leaves the padding behind count fewer elements than those of one that does
    // not.
    if (const auto* pool = node.as<AvgPoolAttrs>())
      return pool->ceil_mode == 0 || pool->count_include_pad == 0;
    if (const auto* pool = node.as<QAvgPoolAttrs>())
      return pool->ceil_mode == 0 || pool->count_include_pad == 0;
    return true;
  }
  return works_on_rows(graph, node);
}

std::optional<RowsRead> rows_read(const Graph& graph, const Node& node, size_t operand, RowRange out) {
  if (is_elementwise(node.op()) || moves(node.op())) {
    const auto axis = axis_of_rows(graph, node, operand);
    return axis ? std::optional(RowsRead{out, *axis}) : std::nullopt;
  }
  if (operand > 0) return std::nullopt;
  if (const std::optional<RowWindow> window = row_window(graph, node)) return RowsRead{window->read(out)};
  return RowsRead{out};
}

std::vector<StripeRegion> regions_ending(const Graph& graph, const Uses& uses, size_t last, size_t most) {
  std::vector<StripeRegion> regions;
  if (!has_rows(graph, graph.nodes[last])) return regions;
  std::vector<bool> inside(graph.nodes.size());
  inside[last] = true;
  StripeRegion region{{last}};
  // Returns the latest of the producers that may join.
  const auto next = [&] {
    int found = -1;
    for (const size_t n : region.nodes)
      for (const ValueId id : graph.nodes[n].inputs) {
        const int p = id == kAbsent ? -1 : uses.producer[static_cast<size_t>(id)];
        if (p <= found || inside[static_cast<size_t>(p)]) continue;
        const Node& producer = graph.nodes[static_cast<size_t>(p)];
        const std::vector<int>& readers = uses.readers[static_cast<size_t>(id)];
        if (has_rows(graph, producer) && producer.outputs[0] == id &&
            std::all_of(readers.begin(), readers.end(),
                        [&](int r) { return r >= 0 && inside[static_cast<size_t>(r)]; }) &&
            read_by_rows(graph, readers, id))
          found = p;
      }
    return found;
  };
  regions.push_back(region);
  for (int p = next(); p >= 0 && region.nodes.size() < most; p = next()) {
    inside[static_cast<size_t>(p)] = true;
    region.nodes.insert(std::lower_bound(region.nodes.begin(), region.nodes.end(), static_cast<size_t>(p)),
                        static_cast<size_t>(p));
    regions.push_back(region);
  }
  return regions;
}

std::vector<Stripe> cut_stripes(const Graph& graph, const StripeRegion& region, int64_t parts) {
  const size_t count = region.nodes.size();
  const int64_t rows = all_rows(graph, graph.nodes[region.nodes.back()].outputs[0]).end;
  if (parts < 2 || parts > rows) return {};
  std::map<ValueId, size_t> made;
  for (size_t i = 0; i < count; ++i) made[graph.nodes[region.nodes[i]].outputs[0]] = i;
  std::vector<Stripe> stripes;
  for (int64_t s = 0; s < parts; ++s) {
    Stripe stripe(count, RowRange{INT64_MAX, 0});
    stripe.back() = {s * rows / parts, (s + 1) * rows / parts};
    for (size_t i = count; i-- > 0;) {
      const Node& node = graph.nodes[region.nodes[i]];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k] == kAbsent) continue;
        const std::optional<RowsRead> read = rows_read(graph, node, k, stripe[i]);
        if (!read) continue;
        if (read->rows.count() <= 0) return {};
        if (const auto it = made.find(node.inputs[k]); it != made.end()) {
          RowRange& all = stripe[it->second];
          all = {std::min(all.begin, read->rows.begin), std::max(all.end, read->rows.end)};
        }
      }
    }
    stripes.push_back(std::move(stripe));
  }
  return stripes;
}

std::optional<std::vector<size_t>> compute_in_stripes(Graph& graph, const std::vector<Striping>& stripings) {
  std::map<size_t, const Striping*> inside;
  for (const Striping& striping : stripings)
    for (const size_t n : striping.region.nodes) inside[n] = &striping;
  Rewriter rewriter(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto it = inside.find(n);
    if (it == inside.end())
      rewriter.keep(n);
    else if (n == it->second->region.nodes.back() && !rewriter.compute(*it->second))
      return std::nullopt;
  }
  return rewriter.finish();
}

}  // namespace sinter::convert

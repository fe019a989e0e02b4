#include "converter/passes/integers/byte_tables.h"

#include <algorithm>

#include "converter/ir/op_traits.h"
#include "converter/ir/quant_params.h"
#include "converter/passes/editor.h"

namespace sinter::convert {
namespace {

constexpr int64_t kByteCount = 256;
constexpr size_t kMostChainNodes = 24;  // of a chain
constexpr int64_t kMostChannels = 4;    // of a picture; each costs a Slice and a part of a Concat

// All bytes, in the order of a table's entries.
ConstantPtr all_bytes(DType type) {
  std::vector<int8_t> bytes(kByteCount);
  const int first = type == DType::kInt8 ? -128 : 0;
  for (int i = 0; i < kByteCount; ++i) bytes[static_cast<size_t>(i)] = static_cast<int8_t>(first + i);
  return Constant::of<int8_t>(type, {kByteCount}, bytes);
}

// `q` moved as these nodes do it, the last one first; kAbsent: not possible.
ValueId moved(Editor& e, int n, ValueId q, const std::vector<OpAttrs>& movers) {
  for (size_t i = movers.size(); i > 0 && q != kAbsent; --i) q = e.insert(n, movers[i - 1], {q});
  return q;
}

// The operations that compute the operand of a Quantize from bytes.
class ByteChain {
 public:
  ByteChain(Editor& editor, int quantize) : e_(editor), n_(quantize) {}

  // Whether there is such a chain whose constants are one number, or one for each of few channels.
  bool find() {
    const auto params = quant_params(e_.graph(), e_.node(n_));
    if (!params || !is_byte(params->type)) return false;
    ValueId at = e_.node(n_).inputs[0];
    bool alone = e_.single_read(at);
    for (size_t i = 0; i < kMostChainNodes; ++i) {
      const int p = e_.producer(at);
      if (p < 0 || e_.erased(p) || !e_.value(at).bounded_dims.empty()) return false;
      const Node& node = e_.node(p);
      if (node.outputs.size() != 1 || !node.bodies.empty()) return false;
      if (moves_each_once(node.attrs))
        movers_.push_back(node.attrs);
      else if (is_elementwise(node.op()) && take(node, at))
        chain_.push_back(p);
      else
        return false;
      at = operand(node);
      if (is_byte(e_.value(at).dtype)) {
        bytes_ = at;
        return !e_.graph().is_constant(at) && movers_alone(alone);
      }
      alone = alone && e_.single_read(at);
    }
    return false;
  }

  // The Quantize's integers, by tables; kAbsent: not possible.
  ValueId look_up() {
    std::vector<ConstantPtr> tables;
    for (int64_t c = 0; c < channels_; ++c) {
      tables.push_back(table(c));
      if (!tables.back()) return kAbsent;
    }
    if (channels_ == 1) return moved(e_, n_, entries(bytes_, tables[0]), movers_);
    const Dims dims = e_.value(bytes_).dims;
    std::vector<ValueId> parts;
    for (int64_t c = 0; c < channels_; ++c) {
      SliceAttrs slice;
      for (size_t a = 0; a < dims.size(); ++a) {
        const bool split = a == axis_;
        slice.starts.push(split ? c : 0), slice.steps.push(1), slice.sizes.push(split ? 1 : dims[a]);
      }
      const ValueId part = e_.insert(n_, slice, {bytes_});
      parts.push_back(part == kAbsent ? kAbsent : entries(part, tables[static_cast<size_t>(c)]));
      if (parts.back() == kAbsent) return kAbsent;
    }
    return e_.insert(n_, ConcatAttrs{static_cast<int64_t>(axis_)}, parts);
  }

 private:
  // The operand that is not constant.
  ValueId operand(const Node& node) const {
    const auto at = std::find_if(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId id) { return id >= 0 && !e_.graph().is_constant(id); });
    return at == node.inputs.end() ? kAbsent : *at;
  }

  // Whether a node computes `y` from one value of its shape and constants that are numbers of channels.
  bool take(const Node& node, ValueId y) {
    const Dims& dims = e_.value(y).dims;
    size_t computed = 0;
    for (const ValueId id : node.inputs) {
      if (id < 0) continue;
      const Value& v = e_.value(id);
      if (!v.constant) {
        if (v.dims != dims || ++computed > 1) return false;
        continue;
      }
      if (v.constant->size() == 1) continue;
      size_t axis = dims.size() - v.dims.size();
      for (const int64_t d : v.dims) {
        if (d != 1) break;
        ++axis;
      }
      if (axis >= dims.size() || v.constant->size() != dims[axis] || dims[axis] > kMostChannels ||
          (channels_ > 1 && axis != axis_))
        return false;
      axis_ = axis, channels_ = dims[axis];
    }
    return computed == 1;
  }

  // Returns whether operations that move floats move nothing else, and no channels.
  bool movers_alone(bool alone) const { return movers_.empty() || (alone && channels_ == 1); }

  // The table for a channel; null: an operation cannot be computed.
  ConstantPtr table(int64_t c) const {
    ConstantPtr numbers = all_bytes(e_.value(bytes_).dtype);
    const auto with = [&](const Node& node) {
      std::vector<ConstantPtr> inputs;
      for (const ValueId id : node.inputs) {
        ConstantPtr k = id < 0 ? nullptr : e_.value(id).constant;
        if (id >= 0 && !k) k = numbers;
        if (k && k != numbers && k->size() > 1)
          k = evaluated(SliceAttrs{IntList{c}, IntList{1}, IntList{1}}, {k->reshaped({k->size()})}, false);
        inputs.push_back(k && k != numbers ? k->reshaped({}) : k);
      }
      return evaluated(node.attrs, inputs, false);
    };
    for (size_t i = chain_.size(); i > 0 && numbers; --i) numbers = with(e_.node(chain_[i - 1]));
    return numbers ? with(e_.node(n_)) : nullptr;
  }

  ValueId entries(ValueId bytes, const ConstantPtr& table) {
    if (bytes == kAbsent) return kAbsent;
    if (e_.value(bytes).dtype == DType::kInt8 && table->dtype() == DType::kInt8 &&
        table->as_int64s() == all_bytes(DType::kInt8)->as_int64s())
      return bytes;
    return e_.insert(n_, LutAttrs{}, {bytes, e_.constant(table)});
  }

  Editor& e_;
  int n_;
  ValueId bytes_ = kAbsent;
  std::vector<int> chain_;  // from the Quantize to the bytes
  std::vector<OpAttrs> movers_;
  int64_t channels_ = 1;
  size_t axis_ = 0;
};

// The table that a Lut looks up, if it is of bytes; null otherwise.
ConstantPtr byte_table(const Editor& e, const Node& node) {
  return node.as<LutAttrs>() == nullptr ? nullptr : e.value(node.inputs[1]).constant;
}

void join(Editor& e, int n) {
  const ConstantPtr second = byte_table(e, e.node(n));
  if (!second) return;
  std::vector<OpAttrs> movers;
  ValueId at = e.node(n).inputs[0];
  int p = -1;
  for (;; at = e.node(p).inputs[0]) {
    p = e.single_read(at) ? e.producer(at) : -1;
    if (p < 0 || e.erased(p)) return;
    if (!moves_each_once(e.node(p).attrs)) break;
    movers.push_back(e.node(p).attrs);
  }
  const ConstantPtr first = byte_table(e, e.node(p));
  if (!first || !is_byte(first->dtype())) return;
  const ConstantPtr both = evaluated(LutAttrs{}, {first, second}, false);
  const ValueId x = both ? moved(e, n, e.node(p).inputs[0], movers) : kAbsent;
  if (x != kAbsent) e.replace(n, LutAttrs{}, {x, e.constant(both)});
}

}  // namespace

int tables_of_bytes(Graph& graph) {
  Editor e(graph);
  return e.sweep([&](int n) {
    if (e.node(n).as<QuantizeAttrs>() == nullptr) return;
    ByteChain chain(e, n);
    const ValueId q = chain.find() ? chain.look_up() : kAbsent;
    if (q == kAbsent) return;
    const Value old = e.value(e.node(n).outputs[0]);
    const QuantParams params = *quant_params(graph, e.node(n));
    if (Value& made = graph.value(q); e.producer(q) < 0 && !graph.is_input(q)) {
      if (made.name.empty()) made.name = old.name;
      made.order = old.order, made.scale = params.scale, made.zero_point = params.zero_point;
    }
    e.bypass(n, q);
  });
}

int join_tables(Graph& graph) {
  Editor e(graph);
  return e.sweep([&](int n) { join(e, n); });
}

}  // namespace sinter::convert

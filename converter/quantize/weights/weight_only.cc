#include "converter/quantize/weights/weight_only.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "converter/ir/builder.h"
#include "converter/ir/narrow_weights.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/recipe.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"
#include "converter/quantize/report/type_rows.h"
#include "converter/quantize/weights/block_codes.h"
#include "converter/quantize/weights/weight_coding.h"

namespace sinter::convert {
namespace {

constexpr int64_t kSmall = 1024;  // weights; fewer are not worth it

uint64_t stored_bytes(const ConstantPtr& c) {
  return c->recipe() ? c->recipe()->stored_bytes : c->byte_size();
}

void add_bytes(const Graph& graph, std::set<const Constant*>* seen, uint64_t* sum) {
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs)
      if (graph.is_constant(id) && seen->insert(graph.value(id).constant.get()).second)
        *sum += stored_bytes(graph.value(id).constant);
    for (const auto& body : node.bodies) add_bytes(*body, seen, sum);
  }
}

uint64_t constant_bytes(const Graph& graph) {
  std::set<const Constant*> seen;
  uint64_t sum = 0;
  add_bytes(graph, &seen, &sum);
  return sum;
}

class Narrowing {
 public:
  Narrowing(Graph& graph, const WeightOnlyOptions& options, WeightOnlySummary* summary)
      : e_(graph), options_(options), summary_(summary), coder_(options.bits, options.block) {}

  void run() {
    fewest_in_8_bits_ = narrow_layer_elements(e_.graph(), [](const Constant&) { return true; });
    for (int n = 0; n < e_.size(); ++n) visit(n);
    e_.commit();
  }

 private:
  void visit(int n) {
    const Node node = e_.node(n);
    WeightOnlyOptions inside = options_;
    inside.skipped.clear();
    for (const auto& body : node.bodies) Narrowing(*body, inside, summary_).run();
    if (options_.recurrent_only && !is_recurrent(node.op())) return;
    if (std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId id) { return options_.skipped.contains(id); }))
      return;
    if (node.op() == Op::kExpertFullyConnected) return experts(n);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!e_.graph().is_constant(node.inputs[i])) continue;
      const ConstantPtr c = e_.value(node.inputs[i]).constant;
      if (is_sub_byte(c->dtype()) || bit_width(c->dtype()) == 8) {
        if (const auto* a = node.as<LowBitFullyConnectedAttrs>(); a != nullptr && i == 1)
          file(n, true,
               fmt::format("{} bits as in the model", a->bits != 0 ? a->bits : bit_width(c->dtype())));
        continue;
      }
      if (c->dtype() != DType::kFloat32 || c->size() < kSmall) {
        if (is_float(c->dtype()) && c->size() > 1 && may_be_weights(node.op(), i)) file(n, false, "small");
        continue;
      }
      if (c->recipe() && static_cast<int64_t>(c->recipe()->stored_bytes) < 2 * c->size() - c->size() / 4) {
        file(n, true, "narrow in the model");
        continue;
      }
      const LoadedFloats floats(*c);
      const Weights w = floats.items();
      if (!std::all_of(w.begin(), w.end(), [](float f) { return std::isfinite(f); }))
        file(n, false, "not all finite");
      else
        narrow(n, i, c, w);
    }
  }

  void narrow(int n, size_t i, const ConstantPtr& c, Weights w) {
    const Node& node = e_.node(n);
    const auto rank = static_cast<int64_t>(c->dims().size());
    if (!may_be_weights(node.op(), i)) {
      file(n, false, "not weights of a product");
    } else if (node.op() == Op::kFullyConnected) {
      row_product(n, c, w);
    } else if (const auto* m = node.as<MatMulAttrs>()) {
      const bool by_rows = i == 0 ? m->transpose_a == 0 : m->transpose_b != 0;
      if (i == 1 && rank == 2 && m->transpose_a == 0)
        row_product(n, c, w);
      else if (rank >= 2)
        store(n, i, c, w, {by_rows ? rank - 1 : rank - 2, false}, false);
      else
        file(n, false, "a vector");
    } else if (node.op() == Op::kGather) {
      table(n, c, w);
    } else if (node.op() == Op::kDepthwiseConv) {
      store(n, i, c, w, {rank - 1, true}, false);
    } else if (node.op() == Op::kConv || node.op() == Op::kConvTranspose) {
      // Only kernels of one element have their rows along one axis.
      const bool plain = c->size() == c->dims().front() * c->dims().back();
      store(n, i, c, w, plain ? RowAxis{rank - 1, false} : RowAxis{0, true}, plain);
    } else {
      store(n, i, c, w, {rank - 1, false}, false);
    }
  }

  // Narrows a FullyConnected, or a MatMul with a matrix.
  void row_product(int n, const ConstantPtr& c, Weights w) {
    const Node node = e_.node(n);
    const auto* connected = node.as<FullyConnectedAttrs>();
    const bool turned = connected == nullptr && node.as<MatMulAttrs>()->transpose_b == 0;
    const RowAxis by{turned ? 0 : 1, false};
    const Arrangement arranged(c->dims(), by);
    const auto [at, fresh] = products_.try_emplace({c.get(), turned});
    Product& p = at->second;
    if (fresh) {
      const ConstantPtr transposed = turned ? evaluated(TransposeAttrs{IntList{1, 0}}, {c}, false) : c;
      if (!transposed) return file(n, false, "its weights cannot be transposed");
      const LoadedFloats in_rows(*transposed);
      const Weights rows = in_rows.items();
      p.coded = coder_.code_in(options_.bits, rows, arranged.shape, {.blocks = true, .zeros = true});
      const Scheme& s = p.coded.scheme;
      p.how = describe(p.coded);
      p.packed = s.bits < 8 || s.block > 0 || c->size() >= fewest_in_8_bits_;
      if (p.packed) {
        p.block = s.block_of(arranged.shape.columns);
        p.operands =
            pack({arranged.shape.rows, arranged.shape.columns}, rows, p.coded, e_.value(node.inputs[1]).name);
        p.coded.codes = {};
      }
    }
    if (!p.packed) return store(n, 1, c, w, by, false, &p.coded);
    std::vector<ValueId> inputs{node.inputs[0]};
    inputs.insert(inputs.end(), p.operands.begin(), p.operands.end());
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kAbsent;
    if (bias != kAbsent) {
      inputs.resize(4, kAbsent);
      inputs.push_back(bias);
    }
    LowBitFullyConnectedAttrs attrs{};
    attrs.block_size = p.block, attrs.bits = p.coded.scheme.format().attribute();
    if (connected != nullptr) attrs.act_min = connected->act_min, attrs.act_max = connected->act_max;
    done(n, 1, e_.value(p.operands[0]).dtype, p.how);
    e_.replace(n, attrs, inputs);
  }

  // Narrows the rows of all experts, which are floats of any type.
  void experts(int n) {
    const Node node = e_.node(n);
    if (!e_.graph().is_constant(node.inputs[2])) return file(n, false, "computed weights");
    ConstantPtr c = e_.value(node.inputs[2]).constant;
    if (node.inputs.size() > 3 && node.inputs[3] != kAbsent)
      return file(n, true, fmt::format("{} bits as in the model", bit_width(c->dtype())));
    if (c->size() < kSmall) return file(n, false, "small");
    if (c->dtype() != DType::kFloat32)
      c = evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c});
    if (!c) return file(n, false, "its weights cannot be widened");
    const LoadedFloats floats(*c);
    const Weights w = floats.items();
    if (!std::all_of(w.begin(), w.end(), [](float f) { return std::isfinite(f); }))
      return file(n, false, "not all finite");
    const Dims dims = c->dims();
    const BlockShape shape = Arrangement(dims, {2, false}).shape;
    const Coded coded = coder_.code(w, shape, true, {.blocks = true, .zeros = true});
    const Scheme& s = coded.scheme;
    std::vector<ValueId> inputs{node.inputs[0], node.inputs[1]};
    const std::vector<ValueId> packed = pack(dims, w, coded, e_.value(node.inputs[2]).name);
    inputs.insert(inputs.end(), packed.begin(), packed.end());
    if (const ValueId bias = node.inputs.size() > 5 ? node.inputs[5] : kAbsent; bias != kAbsent) {
      inputs.resize(5, kAbsent);
      inputs.push_back(bias);
    }
    done(n, 2, s.format().type, describe(coded));
    e_.replace(n, ExpertFullyConnectedAttrs{s.block_of(shape.columns), 0}, inputs);
  }

  // Rows are dequantized after they were looked up.
  void table(int n, const ConstantPtr& c, Weights w) {
    const Node node = e_.node(n);
    const Value y = e_.value(node.outputs[0]);
    const int64_t rows = c->dims()[0], columns = rows == 0 ? 0 : c->size() / rows;
    if (node.as<GatherAttrs>()->axis != 0) return file(n, false, "not looked up by rows");
    if (e_.graph().is_constant(node.inputs[1]) || !y.bounded_dims.empty() ||
        element_count(y.dims) > c->size())
      return file(n, false, "not looked up by rows, or as much as the table has");
    if (columns < 8) return file(n, false, "rows of fewer than 8");
    BlockShape shape{rows, columns, columns};
    const Coded coded = coder_.code(w, shape, true, {.blocks = true, .kept = true});
    const Scheme& s = coded.scheme;
    const int64_t block = s.block_of(columns);
    const std::string name = e_.value(node.inputs[0]).name;
    const Dims blocks{rows, (columns + block - 1) / block};
    const bool packed = s.bits == 4;
    const ConstantPtr q = integers(s.format(), {rows, columns}, w, coded.codes);
    // Halves of a byte are looked up as bytes.
    ConstantPtr stored = q;
    if (packed) {
      const LoadedBytes loaded = q->load();
      stored = Constant::mapped(DType::kUint8, {rows, columns / 2}, loaded.owner, loaded.bytes);
    }
    const ValueId indices = node.inputs[1];
    const auto chosen = [&](const ConstantPtr& of, const char* what) {
      return e_.insert(n, GatherAttrs{0}, {add(of, name, what), indices});
    };
    ValueId found = chosen(stored, "");
    if (packed && found != kAbsent) {
      Dims dims = e_.value(found).dims;
      const auto rank = static_cast<int64_t>(dims.size());
      dims.push_back(1);
      std::vector<ValueId> halves;
      for (const bool high : {false, true})
        halves.push_back(e_.insert(n, ViewAttrs{list(dims), -1},
                                   {e_.insert(n, LutAttrs{}, {found, e_.constant(nibbles(high))})}));
      dims.resize(static_cast<size_t>(rank));
      dims.back() *= 2;
      found = e_.insert(n, ViewAttrs{list(dims), -1}, {e_.insert(n, ConcatAttrs{rank}, halves)});
    }
    const ValueId scales = chosen(scales_constant(blocks, coded.codes.scales), ".scales");
    DequantizeAttrs attrs{};
    attrs.axis = static_cast<int64_t>(e_.value(found).dims.size()) - 1, attrs.block_size = block;
    const ValueId numbers = e_.insert(n, attrs, {found, scales});
    if (numbers == kAbsent) return file(n, false, "its rows cannot be read from packed integers");
    done(n, 0, q->dtype(), describe(coded));
    e_.replace(n, ViewAttrs{list(y.dims), -1}, {numbers});
  }

  // Stores other weights as integers with scales in the file, which are widened when a session is created.
  void store(int n, size_t operand, const ConstantPtr& c, Weights w, const RowAxis& by, bool four,
             const Coded* known = nullptr) {
    const auto [at, fresh] = stored_.try_emplace({c.get(), by});
    Stored& s = at->second;
    if (fresh) {
      const Arrangement arranged(c->dims(), by);
      const bool last = !by.channel && by.axis + 1 == static_cast<int64_t>(c->dims().size());
      const std::vector<float> rows = arranged.rows(w);
      const Coded coded = known ? *known : coder_.code(rows, arranged.shape, four && last, {.blocks = last});
      const Scheme& scheme = coded.scheme;
      s.type = scheme.format().type;
      s.how = describe(coded);
      Dims dims = c->dims();
      DequantizeAttrs attrs{};
      attrs.axis = by.axis;
      if (by.channel) {
        dims = {dims[static_cast<size_t>(by.axis)]};
      } else {
        int64_t& length = dims[static_cast<size_t>(by.axis)];
        attrs.block_size = scheme.block_of(length);
        length = (length + attrs.block_size - 1) / attrs.block_size;
      }
      const std::vector<int8_t> q = coded.codes.integers(rows, 0, coded.codes.shape.rows);
      const ConstantPtr wide = evaluated(
          attrs, {integers(s.type, c->dims(), arranged.lying(q)), scales_constant(dims, coded.codes.scales)});
      if (wide && wide->recipe()) s.value = add(wide, e_.value(e_.node(n).inputs[operand]).name, "");
    }
    if (s.value == kAbsent) return file(n, false, "small: its scales would take as many bytes");
    std::vector<ValueId> inputs = e_.node(n).inputs;
    inputs[operand] = s.value;
    done(n, operand, s.type, s.how + ", widened when a session is created");
    e_.replace(n, e_.node(n).attrs, inputs);
  }

  void file(int n, bool narrow, std::string reason) {
    const Node& node = e_.node(n);
    summary_->layers.push_back({node.name,
                                op_info(node.op())->name,
                                node.outputs.empty() ? kAbsent : node.outputs[0],
                                narrow,
                                {narrow ? Reason::kNone : Reason::kNoKernel, std::move(reason)}});
  }
  void done(int n, size_t operand, DType type, const std::string& how) {
    const Node& node = e_.node(n);
    file(n, true, how);
    ++summary_->narrowed;
    e_.graph().decide(e_.value(node.inputs[operand]), node, type, TypeRule::kQuantizeWeights,
                      TypeEffect::kRetyped, how);
  }
  // Adds the codes and scales of the rows, and zero points if they have any, as constants. `name` is a copy:
  // adding constants moves the values of the graph.
  std::vector<ValueId> pack(const Dims& dims, Weights rows, const Coded& coded, std::string name) {
    const Scheme& s = coded.scheme;
    const int64_t block = s.block_of(dims.back());
    Dims blocks = dims;
    blocks.back() = (dims.back() + block - 1) / block;
    std::vector<ValueId> operands{add(integers(s.format(), dims, rows, coded.codes), name, ""),
                                  add(scales_constant(blocks, coded.codes.scales), name, ".scales")};
    if (s.zeros)
      operands.push_back(add(integers(s.format().type, blocks, coded.codes.zeros), name, ".zeros"));
    return operands;
  }
  ValueId add(const ConstantPtr& c, std::string name, const char* what) {
    return e_.graph().add_constant(c, name.empty() ? name : name + what);
  }
  static IntList list(const Dims& dims) { return IntList(std::span<const int64_t>(dims)); }

  struct Product {
    bool packed = false;
    int64_t block = 0;
    std::vector<ValueId> operands;  // if packed
    Coded coded;
    std::string how;
  };
  struct Stored {
    ValueId value = kAbsent;
    DType type = DType::kNone;
    std::string how;
  };

  Editor e_;
  const WeightOnlyOptions& options_;
  WeightOnlySummary* summary_;
  WeightCoder coder_;
  int64_t fewest_in_8_bits_ = 0;  // weights of a product; fewer are faster as floats, from a cache
  std::map<std::pair<const Constant*, bool>, Product> products_;
  std::map<std::pair<const Constant*, RowAxis>, Stored> stored_;
};

// Products with weights of few bits round their activations to int8, block by block, and sum products of
// integers (attribute activation_bits of LowBitFullyConnected), in bodies too. Returns how many do; those
// with weights that are floats or indices into a table stay as they are.
int round_activations(Graph& graph) {
  int rounded = 0;
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) rounded += round_activations(*body);
    const auto* attrs = node.as<LowBitFullyConnectedAttrs>();
    if (attrs == nullptr || is_float(graph.value(node.inputs[1]).dtype)) continue;
    if (node.inputs.size() > 5 && node.inputs[5] != kAbsent) continue;  // numbers of a table
    LowBitFullyConnectedAttrs changed = *attrs;
    changed.activation_bits = 8;
    node.attrs = changed;
    const Value& x = graph.value(node.inputs[0]);
    graph.decide(
        x, node, DType::kInt8, TypeRule::kQuantizeValues, TypeEffect::kQuantized,
        fmt::format("rounded by the product, {} to a scale", std::min(attrs->block_size, x.dims.back())));
    ++rounded;
  }
  return rounded;
}

}  // namespace

WeightOnlySummary narrow_weights(Graph& graph, const WeightOnlyOptions& options) {
  require_stage(graph, Stage::kRewritten, "narrowing weights");
  WeightOnlySummary summary;
  if (options.bits != 0) {
    summary.bytes_before = constant_bytes(graph);
    Narrowing(graph, options, &summary).run();
    for (const char* pass : {"common-subexpressions-last", "dead-code-last"}) run_pass(graph, pass);
    summary.bytes_after = constant_bytes(graph);
  }
  if (!options.recurrent_only) file_left_float(graph, summary.layers, graph.ledger.get());
  if (options.round_activations) summary.rounded_products = round_activations(graph);
  return summary;
}

}  // namespace sinter::convert

// Mixtures of experts of com.microsoft: MoE, and QMoE with integer weights.
//
// A token's k experts are k rows of ExpertFullyConnected, so that a run reads the weights of chosen experts
// only: rows [tokens * k, hidden], a token's rows being adjacent.
#include <algorithm>
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostBits = 8;

// One projection of all experts.
struct Projection {
  ValueId weights = kAbsent, scales = kAbsent, zeros = kAbsent, bias = kAbsent;
  int64_t block = 0;  // of scales
  int64_t experts = 0, outputs = 0, inputs = 0;

  bool present() const { return weights != kAbsent; }
};

// [experts, outputs]
bool fits_bias(NodeLowering& n, const char* name, const Projection& p) {
  if (p.bias == kAbsent || n.dims(p.bias) == Dims{p.experts, p.outputs}) return true;
  return n.refuse_shapes("{}_experts_bias {} is not [{},{}]", name, to_string(n.dims(p.bias)), p.experts,
                         p.outputs);
}

// ---- MoE: weights, bias? from operand `at` on

bool read_plain(NodeLowering& n, const char* name, size_t at, int64_t inputs, Projection* p) {
  if (!n.has_input(at)) {
    if (n.has_input(at + 1)) return n.refuse("{}_experts_bias without weights", name);
    return true;
  }
  const Dims d = n.dims(n.input(at));
  if (d.size() != 3 || d[2] != inputs)
    return n.refuse_shapes("{}_experts_weights {} do not take rows of {}", name, to_string(d), inputs);
  *p = {n.input(at), kAbsent, kAbsent, n.input(at + 1), 0, d[0], d[1], d[2]};
  return fits_bias(n, name, *p);
}

// ---- QMoE: weights, scales, bias? from operand `at` on, zero points? at `zero_at`

// Numbers of `bits` bits, low bits first, of rows that begin at whole bytes, without the gaps between the
// rows.
Bytes without_gaps(std::span<const std::byte> bytes, int64_t rows, int64_t count, int64_t bits) {
  const int64_t row_bytes = (count * bits + 7) / 8;
  Bytes result(static_cast<size_t>((rows * count * bits + 7) / 8));
  for (int64_t i = 0; i < rows * count; ++i) {
    const int64_t from = i / count * row_bytes * 8 + i % count * bits, to = i * bits;
    const auto number =
        static_cast<unsigned>(bytes[static_cast<size_t>(from / 8)]) >> (from % 8) & ((1U << bits) - 1);
    result[static_cast<size_t>(to / 8)] |= static_cast<std::byte>(number << (to % 8));
  }
  return result;
}

DType packed_type(int64_t bits) {
  return bits == 2 ? DType::kUint2 : bits == 4 ? DType::kUint4 : DType::kUint8;
}

// The zero points [experts, outputs, blocks]: packed along the blocks, or along the outputs where rows have
// one scale; without them the middle of the range.
bool read_zeros(NodeLowering& n, const char* name, size_t at, int64_t bits, int64_t blocks, Projection* p) {
  const Dims dims{p->experts, p->outputs, blocks};
  const DType type = packed_type(bits);
  const bool by_block = n.attr_int("block_size", 0) > 0;
  const int64_t rows = by_block ? p->experts * p->outputs : p->experts,
                count = by_block ? blocks : p->outputs;
  Bytes bytes;
  if (n.has_input(at)) {
    const ConstantPtr given = n.constant(n.input(at));
    if (!given || given->dtype() != DType::kUint8)
      return n.refuse("{}_zero_points must be constant and packed in uint8", name);
    if (given->size() != rows * ((count * bits + 7) / 8))
      return n.refuse_shapes("{}_zero_points {} do not fit {} experts of {} rows and {} blocks", name,
                             to_string(given->dims()), p->experts, p->outputs, blocks);
    bytes = without_gaps(given->load().bytes, rows, count, bits);
  } else {
    unsigned middle = 0;
    for (int64_t i = 0; i < kMostBits; i += bits) middle |= 1U << (i + bits - 1);
    bytes.assign(static_cast<size_t>((rows * count * bits + 7) / 8), static_cast<std::byte>(middle));
  }
  p->zeros = n.add_constant(Constant::owned(type, dims, std::move(bytes)));
  return true;
}

bool read_quantized(NodeLowering& n, const char* name, size_t at, size_t zero_at, int64_t inputs,
                    Projection* p) {
  const int64_t all = n.attr_int("expert_weight_bits", 4), block = n.attr_int("block_size", 0),
                bits = n.attr_int(std::string(name) + "_expert_weight_bits", all);
  if (!n.has_input(at)) {
    if (n.has_input(at + 2) || n.has_input(zero_at))
      return n.refuse("{}_experts_bias or {}_zero_points without weights", name, name);
    (void)n.has_input(at + 1);
    return true;
  }
  if (bits != 2 && bits != 4 && bits != 8)
    return n.refuse("{} has weights of {} bits; 2, 4 and 8 are supported", name, bits);
  const ConstantPtr w = n.constant(n.input(at));
  if (!w || w->dtype() != DType::kUint8)
    return n.refuse("{}_experts_weights must be constant and packed in uint8", name);
  const Dims d = w->dims();
  if (d.size() != 3 || d[2] * 8 / bits != inputs || inputs * bits % 8 != 0)
    return n.refuse_shapes("{}_experts_weights {} do not take rows of {} in {} bits", name, to_string(d),
                           inputs, bits);
  if (block > 0 && inputs % block != 0)
    return n.refuse_shapes("{} rows of {} are not whole blocks of {}", name, inputs, block);
  const int64_t blocks = block > 0 ? inputs / block : 1;
  if (!n.has_input(at + 1)) return n.refuse("{}_scales are missing", name);
  if (n.size(n.input(at + 1)) != d[0] * d[1] * blocks)
    return n.refuse_shapes("{}_scales {} do not fit {} experts of {} rows and {} blocks", name,
                           to_string(n.dims(n.input(at + 1))), d[0], d[1], blocks);
  const DType x = n.dtype(n.input(0));
  const LoadedBytes loaded = w->load();
  p->weights =
      n.add_constant(Constant::mapped(packed_type(bits), {d[0], d[1], inputs}, loaded.owner, loaded.bytes));
  if (p->weights >= 0) {
    Graph& graph = n.parent().graph();
    if (graph.value(p->weights).name.empty()) graph.value(p->weights).name = graph.value(n.input(at)).name;
  }
  p->scales = n.reshape(n.input(at + 1), {d[0], d[1], blocks});
  if (bit_width(n.dtype(p->scales)) >= bit_width(x)) p->scales = n.cast(p->scales, x);
  p->bias = n.input(at + 2);
  p->block = block > 0 ? block : std::max<int64_t>(inputs, 1);
  p->experts = d[0], p->outputs = d[1], p->inputs = inputs;
  return fits_bias(n, name, *p) && read_zeros(n, name, zero_at, bits, blocks, p);
}

// ---- both

ValueId project(NodeLowering& n, ValueId rows, ValueId expert, const Projection& p) {
  std::vector<ValueId> operands{rows, expert, p.weights, p.scales, p.zeros, p.bias};
  while (operands.back() == kAbsent) operands.pop_back();
  return n.emit(ExpertFullyConnectedAttrs{std::max<int64_t>(p.block, 1), 0}, operands);
}

// The activation between the projections: of fc1's rows, or of fc1's and fc3's.
class Gate {
 public:
  explicit Gate(NodeLowering& n)
      : n_(n),
        name_(n.attr_string("activation_type", "relu")),
        fusion_(n.attr_int("swiglu_fusion", 0)),
        alpha_(n.attr_float("activation_alpha", 1)),
        beta_(n.attr_float("activation_beta", 0)),
        limit_(n.attr_float("swiglu_limit", kInfinity)) {}

  // Whether fc1 has the rows of both.
  bool fused() const { return name_ == "swiglu" && fusion_ != 0; }

  bool check() {
    static constexpr std::string_view kNames[] = {"relu", "gelu", "silu", "swiglu", "identity"};
    if (std::find(std::begin(kNames), std::end(kNames), name_) == std::end(kNames))
      return n_.refuse("activation_type '{}' is not supported", name_);
    if (fusion_ < 0 || fusion_ > 2) return n_.refuse("swiglu_fusion is {}, not 0, 1 or 2", fusion_);
    if (std::isnan(limit_) || limit_ < 0) return n_.refuse("swiglu_limit is {}", limit_);
    return true;
  }

  // first: rows of fc1; third: rows of fc3, or absent.
  ValueId apply(ValueId first, ValueId third) {
    if (first < 0) return first;
    if (name_ != "swiglu") {
      const ValueId y = plain(first);
      return third == kAbsent ? y : n_.mul(y, third);
    }
    ValueId gate = first, linear = third;
    if (fused()) {
      const int64_t size = n_.dims(first)[1] / 2;
      gate = fusion_ == 1 ? n_.slice(first, 1, 0, size, 2) : n_.slice(first, 1, 0, size);
      linear = fusion_ == 1 ? n_.slice(first, 1, 1, size, 2) : n_.slice(first, 1, size, size);
    }
    if (limit_ < kInfinity) {
      gate = n_.emit(ClampAttrs{-kInfinity, limit_}, {gate});
      linear = n_.emit(ClampAttrs{-limit_, limit_}, {linear});
    }
    if (beta_ != 0) linear = n_.add(linear, n_.scalar(n_.dtype(linear), beta_));
    return n_.mul(n_.emit(SiluAttrs{alpha_}, {gate}), linear);
  }

 private:
  ValueId plain(ValueId y) {
    if (name_ == "relu") return n_.emit(ClampAttrs{0, kInfinity}, {y});
    if (name_ == "gelu") return n_.emit(GeluAttrs{1}, {y});
    if (name_ == "silu") return n_.emit(SiluAttrs{1}, {y});
    return y;
  }

  NodeLowering& n_;
  std::string name_;
  int64_t fusion_;
  double alpha_, beta_, limit_;
};

// The k experts of each token, and their weights: [tokens, k].
struct Routes {
  ValueId expert = kUnknown, weight = kUnknown;
};
Routes route(NodeLowering& n, ValueId logits, ValueId weights, int64_t k, bool normalized) {
  const std::vector<ValueId> top = n.emit_many(TopKAttrs{k, 1, 1, 1}, {logits}, 2);
  if (top[1] < 0) return {};
  // A softmax over the chosen ones is one over all of them, normalized.
  if (weights == kAbsent && normalized) return {top[1], n.emit(SoftmaxAttrs{1, 0}, {top[0]})};
  const ValueId all = weights == kAbsent ? n.emit(SoftmaxAttrs{1, 0}, {logits}) : weights;
  ValueId chosen = n.emit(GatherElementsAttrs{1}, {all, top[1]});
  if (normalized)
    chosen =
        n.div(chosen, n.emit(ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 1}, {chosen}));
  return {top[1], chosen};
}

// The largest of `scores` [tokens, experts], and its part of a softmax over the scores that are near it:
// within kReach of the larger one of the two magnitudes.
Routes nearest_route(NodeLowering& n, ValueId scores, ValueId all) {
  constexpr double kReach = 2 * 0.01;
  const DType t = n.dtype(scores);
  const std::vector<ValueId> top = n.emit_many(TopKAttrs{1, 1, 1, 1}, {scores}, 2);
  const ValueId apart = n.div(n.sub(top[0], all), n.emit(MaxAttrs{}, {n.emit(AbsAttrs{}, {all}), top[0]}));
  const ValueId far =
      n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kGreater)}, {apart, n.scalar(t, kReach)});
  const ValueId near = n.emit(WhereAttrs{}, {far, n.scalar(t, -kInfinity), scores});
  return {top[1], n.emit(GatherElementsAttrs{1}, {n.emit(SoftmaxAttrs{1, 0}, {near}), top[1]})};
}

// use_sparse_mixer, as the models of Phi define it at inference: the second expert is chosen from the others
// in the same way as the first.
Routes sparse_routes(NodeLowering& n, ValueId logits, int64_t experts) {
  if (logits < 0) return {};
  const Routes first = nearest_route(n, logits, logits);
  const ValueId taken = n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kEqual)},
                               {n.reshape(index_row(n, experts), {1, experts}), first.expert});
  const ValueId rest = n.emit(WhereAttrs{}, {taken, n.scalar(n.dtype(logits), -kInfinity), logits});
  const Routes second = nearest_route(n, rest, logits);
  return {n.emit(ConcatAttrs{1}, {first.expert, second.expert}),
          n.emit(ConcatAttrs{1}, {first.weight, second.weight})};
}

using ReadProjection = bool (*)(NodeLowering&, int which, int64_t inputs, Projection*);

// `weights`: what the chosen experts' results are weighted with, or absent: the softmax of the router.
bool mixture(NodeLowering& n, ValueId router_weights, bool normalized, ReadProjection read) {
  const ValueId x = n.input(0);
  const int64_t k = n.attr_int("k", 1);
  if (!n.has_input(0) || !n.has_input(1)) return n.refuse("needs an input and router_probs");
  Gate gate(n);
  if (!gate.check()) return false;
  const bool sparse = n.attr_int("use_sparse_mixer", 0) != 0;
  if (sparse && (k != 2 || router_weights != kAbsent || n.attr_int("normalize_routing_weights", 0) != 0))
    return n.refuse(
        "use_sparse_mixer with {}; it takes k 2, the router's own weights, and does not normalize them",
        k != 2                      ? "another k"
        : router_weights != kAbsent ? "router_weights"
                                    : "normalize_routing_weights");
  const Dims given = n.dims(x), router = n.dims(n.input(1));
  if (given.size() < 2 || given.size() > 3 || router.size() < 2)
    return n.refuse_shapes("input {} and router_probs {} do not fit", to_string(given), to_string(router));
  const int64_t hidden = given.back(), experts = router.back();
  const int64_t tokens = element_count({given.begin(), given.end() - 1});
  if (element_count({router.begin(), router.end() - 1}) != tokens)
    return n.refuse_shapes("input {} and router_probs {} differ in tokens", to_string(given),
                           to_string(router));
  if (k < 1 || k > experts) return n.refuse_shapes("k is {} of {} experts", k, experts);
  Projection first, second, third;
  if (!read(n, 1, hidden, &first) || !first.present())
    return n.refused() ? false : n.refuse("fc1_experts_weights are missing");
  const int64_t inner = gate.fused() ? first.outputs / 2 : first.outputs;
  if (!read(n, 2, inner, &second) || !second.present())
    return n.refused() ? false : n.refuse("fc2_experts_weights are missing");
  if (!read(n, 3, hidden, &third)) return false;
  if ((gate.fused() && first.outputs % 2 != 0) || second.outputs != hidden || first.experts != experts ||
      second.experts != experts || (third.present() && (third.outputs != inner || third.experts != experts)))
    return n.refuse_shapes("experts of {} -> {} and {} -> {} do not fit {} experts and input {}",
                           first.inputs, first.outputs, second.inputs, second.outputs, experts,
                           to_string(given));
  if (gate.fused() && third.present()) return n.refuse("fc3 beside a fused swiglu");
  if (n.attr_string("activation_type", "relu") == "swiglu" && !gate.fused() && !third.present())
    return n.refuse("swiglu with swiglu_fusion 0 needs fc3_experts_weights");
  if (router_weights != kAbsent && n.size(router_weights) != tokens * experts)
    return n.refuse_shapes("router_weights {} do not fit router_probs {}", to_string(n.dims(router_weights)),
                           to_string(router));

  const auto by_token = [&](ValueId v) { return v == kAbsent ? v : n.reshape(v, {tokens, experts}); };
  const Routes routes = sparse ? sparse_routes(n, by_token(n.input(1)), experts)
                               : route(n, by_token(n.input(1)), by_token(router_weights), k, normalized);
  const ValueId expert = n.reshape(routes.expert, {tokens * k});
  ValueId rows = n.reshape(x, {tokens, 1, hidden});
  rows = n.reshape(n.broadcast(rows, {tokens, k, hidden}), {tokens * k, hidden});
  const ValueId extra = third.present() ? project(n, rows, expert, third) : kAbsent;
  const ValueId active = gate.apply(project(n, rows, expert, first), extra);
  const ValueId results = n.reshape(project(n, active, expert, second), {tokens, k, hidden});
  ValueId y = n.mul(results, n.reshape(routes.weight, {tokens, k, 1}));
  if (k > 1) y = n.emit(ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 0}, {y});
  return n.output(0, n.reshape(y, given));
}

bool lower_moe(NodeLowering& n) {
  static constexpr const char* kNames[] = {"fc1", "fc2", "fc3"};
  static constexpr size_t kAt[] = {2, 4, 6};
  return mixture(n, kAbsent, n.attr_int("normalize_routing_weights", 0) != 0,
                 [](NodeLowering& node, int which, int64_t inputs, Projection* p) {
                   return read_plain(node, kNames[which - 1], kAt[which - 1], inputs, p);
                 });
}

bool lower_qmoe(NodeLowering& n) {
  static constexpr const char* kNames[] = {"fc1", "fc2", "fc3"};
  const std::string type = n.attr_string("quant_type", "int");
  n.ignore_attr("accuracy_level");
  if (type != "int") return n.refuse("quant_type '{}' is not supported; 'int' is", type);
  if (n.attr_int("weights_prepacked", -1) == 1)
    return n.refuse_advising("export it with weights_prepacked 0",
                             "weights_prepacked is 1: the layout is that of one device");
  for (size_t i = 15; i < n.input_count(); ++i)
    if (n.has_input(i)) return n.refuse("operand {} is not one of quant_type 'int'", i);
  const ValueId weights = n.input(14);
  bool normalized = n.attr_int("normalize_routing_weights", 0) != 0;
  if (!normalized && weights == kAbsent && n.attr_int("k", 1) != n.dims(n.input(1)).back()) {
    n.warn(
        "normalize_routing_weights is 0: onnxruntime normalizes the weights all the same on a CPU, and not "
        "on "
        "CUDA; they are normalized here");
    normalized = true;
  }
  return mixture(n, weights, normalized, [](NodeLowering& node, int which, int64_t inputs, Projection* p) {
    const auto at = static_cast<size_t>(which - 1);
    return read_quantized(node, kNames[at], 2 + 3 * at, 11 + at, inputs, p);
  });
}

}  // namespace

std::span<const OnnxOperator> experts_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MoE", 1, lower_moe, "F F f f f f f f", kTakesBounded | kSumsProducts, kMicrosoft},
      {"QMoE", 1, lower_qmoe, "F F * * f * * f * * f * * * F", kTakesBounded | kSumsProducts, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

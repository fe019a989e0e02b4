// Mixtures of experts of com.microsoft: MoE, and QMoE with weights of few bits.
//
// A token's k experts are k rows of ExpertFullyConnected, so that a run reads the weights of chosen experts
// only: rows [tokens * k, hidden], a token's rows being adjacent.
#include <algorithm>
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/expert_weights.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

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

  bool gated() const { return name_ == "swiglu" || name_ == "geglu"; }
  // Set: fc1 has the rows of both.
  bool fused() const { return gated() && fusion_ != 0; }

  bool check() {
    static constexpr std::string_view kNames[] = {"relu",  "gelu",   "silu", "identity",
                                                  "relu2", "swiglu", "geglu"};
    if (std::find(std::begin(kNames), std::end(kNames), name_) == std::end(kNames))
      return n_.refuse("activation_type '{}' is not supported", name_);
    if (fusion_ < 0 || fusion_ > 2) return n_.refuse("swiglu_fusion is {}, not 0, 1 or 2", fusion_);
    if (std::isnan(limit_) || limit_ < 0) return n_.refuse("swiglu_limit is {}", limit_);
    return true;
  }

  // first: rows of fc1; third: rows of fc3, or absent.
  ValueId apply(ValueId first, ValueId third) {
    if (first < 0) return first;
    if (!gated()) {
      const ValueId y = plain(first);
      return third == kAbsent ? y : n_.mul(y, third);
    }
    ValueId gate = first, linear = third;
    if (fused()) {
      const int64_t size = n_.dims(first)[1] / 2;
      gate = fusion_ == 1 ? n_.slice(first, 1, 0, size, 2) : n_.slice(first, 1, 0, size);
      linear = fusion_ == 1 ? n_.slice(first, 1, 1, size, 2) : n_.slice(first, 1, size, size);
    }
    if (name_ == "geglu") return n_.mul(n_.emit(GeluAttrs{1}, {gate}), linear);
    if (limit_ < kInfinity) {
      gate = n_.emit(ClampAttrs{-kInfinity, limit_}, {gate});
      linear = n_.emit(ClampAttrs{-limit_, limit_}, {linear});
    }
    if (beta_ != 0) linear = n_.add(linear, n_.scalar(n_.dtype(linear), beta_));
    return n_.mul(n_.emit(SiluAttrs{alpha_}, {gate}), linear);
  }

 private:
  ValueId plain(ValueId y) {
    if (name_ == "relu" || name_ == "relu2") y = n_.emit(ClampAttrs{0, kInfinity}, {y});
    if (name_ == "relu2") return n_.mul(y, y);
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
  if (normalized) chosen = n.div(chosen, n.reduce(ReduceFn::kSum, IntList{1}, 1, {chosen}));
  return {top[1], chosen};
}

// The largest of `scores` [tokens, experts], and its part of a softmax over the scores that are near it:
// within kReach of the larger one of the two magnitudes.
Routes nearest_route(NodeLowering& n, ValueId scores, ValueId all) {
  constexpr double kReach = 2 * 0.01;
  const DType t = n.dtype(scores);
  const std::vector<ValueId> top = n.emit_many(TopKAttrs{1, 1, 1, 1}, {scores}, 2);
  const ValueId larger = n.emit(MaxAttrs{}, {n.emit(AbsAttrs{}, {all}), top[0]});
  const ValueId apart = n.div(n.sub(top[0], all), larger);
  const ValueId far = n.compare(CompareFn::kGreater, {apart, n.scalar(t, kReach)});
  const ValueId near = n.where({far, n.scalar(t, -kInfinity), scores});
  return {top[1], n.emit(GatherElementsAttrs{1}, {n.emit(SoftmaxAttrs{1, 0}, {near}), top[1]})};
}

// use_sparse_mixer, as the models of Phi define it at inference: the second expert is chosen from the others
// in the same way as the first.
Routes sparse_routes(NodeLowering& n, ValueId logits, int64_t experts) {
  if (logits < 0) return {};
  const Routes first = nearest_route(n, logits, logits);
  const ValueId taken =
      n.compare(CompareFn::kEqual, {n.reshape(index_row(n, experts), {1, experts}), first.expert});
  const ValueId rest = n.where({taken, n.scalar(n.dtype(logits), -kInfinity), logits});
  const Routes second = nearest_route(n, rest, logits);
  return {n.emit(ConcatAttrs{1}, {first.expert, second.expert}),
          n.emit(ConcatAttrs{1}, {first.weight, second.weight})};
}

using ReadProjection = bool (*)(NodeLowering&, int which, int64_t inputs, ExpertProjection*);

// `weights`: what the chosen experts' results are weighted with, or absent: the softmax of the router.
bool mixture(NodeLowering& n, ValueId router_weights, bool normalized, ReadProjection read) {
  const ValueId x = n.input(0);
  const int64_t k = n.attr_int("k", 1);
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
  ExpertProjection first, second, third;
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
  if (gate.fused() && third.present()) return n.refuse("fc3 beside a fused gate");
  if (gate.gated() && !gate.fused() && !third.present())
    return n.refuse("a gated activation with swiglu_fusion 0 needs fc3_experts_weights");
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
  if (k > 1) y = n.reduce(ReduceFn::kSum, IntList{1}, 0, {y});
  return n.output(0, n.reshape(y, given));
}

bool lower_moe(NodeLowering& n) {
  return mixture(n, kAbsent, n.attr_int("normalize_routing_weights", 0) != 0,
                 [](NodeLowering& node, int which, int64_t inputs, ExpertProjection* p) {
                   return read_moe_projection(node, which, inputs, p);
                 });
}

bool lower_qmoe(NodeLowering& n) {
  const std::string type = n.attr_string("quant_type", "int");
  const bool integers = type == "int";
  n.ignore_attr("accuracy_level");
  if (!is_expert_quant_type(type))
    return n.refuse("quant_type '{}' is not supported; int, fp4, nvfp4, fp8 and wfp4afp8 are", type);
  if (integers && n.attr_int("weights_prepacked", -1) == 1)
    return n.refuse_advising("export it with weights_prepacked 0",
                             "weights_prepacked is 1: the layout is that of one device");
  n.ignore_attr("weights_prepacked");
  // Scales of activations, which are not rounded here.
  constexpr size_t kActivations = 17;
  for (size_t i = 15; i < n.input_count(); ++i)
    if (n.has_input(i) && (integers || (i >= kActivations && type != "wfp4afp8")))
      return n.refuse("operand {} is not one of quant_type '{}'", i, type);
  if (type == "wfp4afp8")
    n.warn("quant_type is wfp4afp8: activations are not rounded to float8 here, nor on most devices");
  const ValueId weights = n.input(14);
  bool normalized = n.attr_int("normalize_routing_weights", 0) != 0;
  if (integers && !normalized && weights == kAbsent && n.attr_int("k", 1) != n.dims(n.input(1)).back()) {
    n.warn(
        "normalize_routing_weights is 0: onnxruntime normalizes the weights all the same on a CPU, and not "
        "on "
        "CUDA; they are normalized here");
    normalized = true;
  }
  return mixture(n, weights, normalized,
                 [](NodeLowering& node, int which, int64_t inputs, ExpertProjection* p) {
                   return read_qmoe_projection(node, which, inputs, p);
                 });
}

}  // namespace

std::span<const OnnxOperator> experts_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"MoE", 1, lower_moe, "F F f f f f f f", kTakesBounded | kSumsProducts | kTwoInputs, kMicrosoft},
      {"QMoE", 1, lower_qmoe, "F F * * f * * f * * f * * * F * * * * * *",
       kTakesBounded | kSumsProducts | kTwoInputs, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

// Why an output has a low SQNR, and what settings would raise it.
#include <fmt/format.h>

#include <algorithm>

#include "converter/quantize/quantizer.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/samples/sample_list.h"
#include "converter/quantize/search/leave_float.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

constexpr double kEnough = 24;  // dB to suggest where the SQNR is low

}  // namespace

void Quantizer::advise(const Graph& rounded) {
  summary_.wanted_db = options_.min_sqnr && !summary_.reached ? *options_.min_sqnr : kLittleSignal;
  // A loss on data other than the kept samples cannot be attributed to an output here.
  const bool elsewhere = options_.evaluate && worst_of(summary_.outputs) >= summary_.wanted_db;
  if ((options_.max_drop || elsewhere) && !summary_.reached) {
    measure_remedies(false);
    return;
  }
  if (worst_of(summary_.outputs) >= summary_.wanted_db) return;
  const Graph& graph = plan_.graph;
  const std::vector<Role> roles = assign_roles(graph, plan_.left);
  const std::vector<ValueId> scales = scaled_values(graph, roles);
  const Uses uses(graph);
  const std::vector<Sample> samples = judging().samples(Part::kAll);
  SampleList list(samples);
  const std::vector<LayerReport> layers =
      report_layers(exact_, rounded, list, {.runner = options_.runner, .most_samples = kMostLookedAt});
  for (size_t i = 0; i < summary_.outputs.size(); ++i) {
    const OutputNoise& output = summary_.outputs[i];
    if (output.db >= summary_.wanted_db) continue;
    LowOutput low{output.name, output.db, {"", "", "", 999, false}, ""};
    const auto weigh = [&](ValueId id, const Noise& noise, bool weights) {
      const double db = i < noise.outputs.size() ? to_db(noise.outputs[i]) : 999;
      if (db >= low.loudest.db) return;
      const int n = uses.producer[static_cast<size_t>(id)];
      const Node* node = n < 0 ? nullptr : &graph.nodes[static_cast<size_t>(n)];
      low.loudest = {node == nullptr ? "" : node->name, node == nullptr ? "input" : op_info(node->op())->name,
                     weights ? "" : exact_name(graph.value(id).name), db, weights};
    };
    for (const ValueId id : scales) {
      const auto at = sensitivity_.values.find(id);
      // Values that now have 16 bits add negligible noise.
      if (at != sensitivity_.values.end() && !plan_.wide.contains(id)) weigh(id, at->second, false);
    }
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (roles[n] != Role::kInteger) continue;
      const ValueId id = graph.nodes[n].outputs[0];
      if (const auto at = sensitivity_.weights.find(id); at != sensitivity_.weights.end())
        weigh(id, at->second, true);
    }
    low.cause =
        low.loudest.db < 999 ? cause_of(low.loudest, layers, graph)
        : std::none_of(roles.begin(), roles.end(), [](Role r) { return r == Role::kInteger; })
            ? "no operation computes on integers: this is the loss of float32 itself and of weights in 8 bits"
            : "no single rounding";
    summary_.low.push_back(std::move(low));
  }
  measure_remedies(!options_.min_sqnr && (options_.max_drop || !may_leave_float_));
}

void Quantizer::measure_remedies(bool leaving) {
  const auto try_out = [&](std::string flags, std::string what, const Graph& graph) {
    const Noise noise = judging().measure(graph);
    Suggestion& remedy =
        add_remedy(std::move(flags), std::move(what), noise_by_output(exact_, noise), &summary_);
    if (options_.max_drop && options_.accuracy) remedy.accuracy = options_.accuracy(graph);
    if (options_.evaluate && options_.min_sqnr)
      remedy.evaluated_db = worst_of(options_.evaluate(exact_, graph).outputs);
  };
  if (leaving) {
    QuantizationPlan plan = plan_;
    const bool wanted = options_.force_int8 || options_.require_int8;
    const MeasurePlan measure = [&](const QuantizationPlan& tried) { return foresee(tried, fewer_); };
    const auto reach = [&](Remedy remedy) {
      return leave_float(&plan, *trials_, measure, sensitivity_, fine_, remedy, {.db = kEnough}).reached;
    };
    const bool wide = wanted && !fine_.empty();
    if ((wide && reach(Remedy::kWide)) || reach(wanted ? Remedy::kFloat : Remedy::kCheaper)) {
      std::string what;
      const auto say = [&](size_t count, const char* one, const char* many) {
        if (count > 0)
          what += fmt::format("{}{} {}", what.empty() ? "" : ", ", count, count == 1 ? one : many);
      };
      say(plan.left.size() - plan_.left.size(), "more operation in float", "more operations in float");
      say(plan.wide.size() - plan_.wide.size(), "value of 16 bits", "values of 16 bits");
      try_out(fmt::format("--min-sqnr {:.0f}{}", kEnough, options_.max_drop ? " instead of --max-drop" : ""),
              what, build(plan).graph);
    }
  }
  const std::string without = without_flags(options_.byte_flags);
  if (options_.activations == DType::kInt8) {
    QuantizationPlan plan = plan_;
    for (auto& [id, params] : plan.params) params = finer(params);
    try_out("--quantize int8x16" + without, "activations of 16 bits", build(plan).graph);
  }
  Graph weights = exact_;
  weights.ledger = std::make_shared<TypeLedger>();
  if (narrow_weights(weights, {}).narrowed > 0)
    try_out("--quantize int8w" + without, "activations in float", weights);
  rank_remedies(summary_.wanted_db, &summary_.remedies);
}

}  // namespace sinter::convert

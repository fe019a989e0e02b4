// The list of passes and the loop that runs them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/passes/follow_nodes.h"
#include "converter/passes/pass.h"

namespace sinter::convert {

int widen_narrow_floats(Graph& graph);
int make_masks_finite(Graph& graph);
int simplify(Graph& graph);
int share_common_subexpressions(Graph& graph);
int narrow_integers(Graph& graph);
int drop_roundings(Graph& graph);
int recognise_writes(Graph& graph);
int recognise_activations(Graph& graph);
int recognise_norms(Graph& graph);
int recognise_attention(Graph& graph);
int recognise_rope(Graph& graph);
int dynamic_products(Graph& graph);
int float_products(Graph& graph);
int recognise_experts(Graph& graph);
int recognise_low_bit(Graph& graph);
int assign_layout(Graph& graph);
int integer_form(Graph& graph);
int fold_scale(Graph& graph);
int fuse_pad(Graph& graph);
int fuse_clamp(Graph& graph);
int drop_subnormals(Graph& graph);
int remove_dead(Graph& graph) { return remove_dead_nodes(graph); }

std::span<const Pass> all_passes() {
  static constexpr Pass kPasses[] = {
      {"dead-code", "drops operations that no output needs", remove_dead},
      {"widen",
       "computes float16 and bfloat16 values in float32, with casts where the model's own types are public",
       widen_narrow_floats},
      {"finite-masks", "masks with large finite numbers where infinity would give NaN", make_masks_finite},
      {"simplify", "drops operations that change nothing and replaces others by exactly equal, cheaper ones",
       simplify},
      {"common-subexpressions", "computes equal subexpressions once", share_common_subexpressions},
      {"narrow-integers", "computes int64 arithmetic in int32 where it is proven to fit", narrow_integers},
      {"drop-roundings", "drops roundings of normalized values between float32 operations", drop_roundings},
      {"recognise-writes", "joins what is written to constant parts of an axis with the rest of it",
       recognise_writes},
      {"recognise-activations", "finds GELU, SiLU, HardSigmoid and HardSwish in elementary operations",
       recognise_activations},
      {"recognise-norms", "finds layer and root-mean-square normalizations in elementary operations",
       recognise_norms},
      {"recognise-attention", "finds softmax attention in two products", recognise_attention},
      {"recognise-rope", "finds rotary embeddings in elementary operations", recognise_rope},
      {"dynamic-products",
       "computes products of integers by constants on integers where DynamicQuantizeLinear has rounded x",
       dynamic_products},
      {"float-products",
       "computes products of integers of 8 bits in float32 where only a Cast to float32 reads the sums",
       float_products},
      {"recognise-experts", "reads chosen matrices of constant weights where they are", recognise_experts},
      {"recognise-low-bit", "keeps weights of 4 and 8 bits packed in products, with scales per block",
       recognise_low_bit},
      {"layout", "holds values channels-last wherever that leaves the fewest bytes to transpose",
       assign_layout},
      {"fold-batch-norm", "folds operations that scale and shift output channels into weights and bias",
       fold_scale},
      {"fuse-pad", "merges a Pad of zeros into the convolution or average after it", fuse_pad},
      {"fuse-clamp", "lets operations clamp their own results", fuse_clamp},
      {"integer", "computes operations between Dequantize and Quantize on integers", integer_form},
      {"drop-subnormals", "sets weights to 0 that are too small to matter and slow to compute with",
       drop_subnormals},
      {"simplify-last", "as simplify, after the fusions", simplify},
      {"common-subexpressions-last", "as before, after the fusions", share_common_subexpressions},
      {"dead-code-last", "drops operations that earlier passes left unused", remove_dead},
  };
  return kPasses;
}

size_t count_nodes(const Graph& graph) {
  size_t n = graph.nodes.size();
  for (const Node& node : graph.nodes)
    for (const auto& body : node.bodies) n += count_nodes(*body);
  return n;
}

namespace {

int run_everywhere(const Pass& pass, Graph& graph) {
  int changes = pass.run(graph);
  for (Node& node : graph.nodes)
    for (const auto& body : node.bodies) changes += run_everywhere(pass, *body);
  return changes;
}

void require(const Graph& graph, const char* when) {
  if (std::string fault = check(graph); !fault.empty())
    throw std::logic_error(fmt::format("{}: {}", when, fault));
}

}  // namespace

int run_pass(Graph& graph, const char* name) {
  for (const Pass& pass : all_passes()) {
    if (std::string_view(pass.name) != name) continue;
    advance(graph, Stage::kRewritten);
    const int changes = run_everywhere(pass, graph);
    require(graph, pass.name);
    return changes;
  }
  throw std::logic_error(fmt::format("'{}' is not a pass", name));
}

namespace {

PassReport run_all(Graph& graph, const PassOptions& options, NodeFates* fates) {
  const auto known = [](const std::string& name) {
    return std::any_of(all_passes().begin(), all_passes().end(),
                       [&](const Pass& p) { return p.name == name; });
  };
  const auto refuse = [](const char* flag, const std::string& name) {
    throw UsageError(
        fmt::format("{} {}: this is not a pass; sinter convert --help lists the passes", flag, name));
  };
  for (const std::string& name : options.disabled)
    if (!known(name)) refuse("--disable-pass", name);
  if (!options.dump_after.empty() && !known(options.dump_after)) refuse("--dump-after", options.dump_after);
  PassReport report;
  require_stage(graph, Stage::kLowered, "the list of passes");
  require(graph, "before the passes");
  advance(graph, Stage::kRewritten);
  int number = 0;
  std::optional<NodeFates::Picture> before;  // the graph as the last pass that changed it left it
  for (const Pass& pass : all_passes()) {
    if (options.stop_after >= 0 && number++ >= options.stop_after) break;
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end())
      continue;
    if (fates != nullptr && !before) before.emplace(graph);
    const int changes = run_everywhere(pass, graph);
    require(graph, pass.name);
    if (before && changes > 0) {
      fates->follow(pass.name, *before, graph);
      before.reset();
    }
    report.entries.push_back({pass.name, pass.description, changes, count_nodes(graph)});
    if (options.dump_after == pass.name && options.dump) options.dump(dump(graph));
  }
  return report;
}

}  // namespace

PassReport run_passes(Graph& graph, const PassOptions& options) { return run_all(graph, options, nullptr); }

PassReport run_passes(Graph& graph, const PassOptions& options, NodeFates& fates) {
  return run_all(graph, options, &fates);
}

}  // namespace sinter::convert

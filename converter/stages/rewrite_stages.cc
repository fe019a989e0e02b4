// The passes rewrite the graphs. Then operations compute in the type of 16 bits that the user prefers, if
// any.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "converter/passes/pass.h"
#include "converter/quantize/search/trial_magnitudes.h"
#include "converter/stages/conversion.h"
#include "converter/target/target_platforms.h"
#include "runtime/backend/backend.h"

namespace sinter::convert {
namespace {

// Inputs that a model is not made for may be larger than those of the trial, so that little of the range is
// allowed there; that bytes come unscaled is the worst case.
constexpr double kAllowedByUnit = 65504.0 / 16, kAllowedByBytes = 65504;

// Computes in `type` where a platform that the plan may use does.
void prefer(const HalfType& type, Graph& graph, const ConversionOptions& options, Diagnostics& diagnostics) {
  const Target& target = options.targets.front();
  const std::vector<Backend*>& backends = options.backends;
  std::vector<const Platform*> with_kernels = platforms_to_plan(target, options);
  std::erase_if(with_kernels, [&](const Platform* p) { return !computes_half(*p, target, type.dtype); });
  if (with_kernels.empty()) {
    diagnostics.warn(
        "", "",
        fmt::format("{}: target '{}' has no kernels that compute in {} ({}); the model computes in "
                    "float32",
                    type.flag, target_text(target), type.name, type.machines),
        fmt::format("without the option, {} weights stay {} in the file", type.name, type.name));
    return;
  }
  Reached reached;
  if (type.is_narrow()) {
    RunnerOptions runner;
    runner.backends = backends;
    for (const auto& [id, range] : try_out(graph, runner))
      reached[id] = std::max(range.unit / kAllowedByUnit, range.bytes / kAllowedByBytes);
  }
  const auto accept = [&](const OpCall& call, size_t* workspace) {
    Status status;
    for (const Platform* p : with_kernels)
      if (status = p->accept(target, call, target.cores, workspace); status.ok()) break;
    return status;
  };
  const HalfSummary done = compute_in_half(graph, type, accept, reached);
  if (done.computed == 0)
    diagnostics.warn("", "",
                     fmt::format("{}: no operation of this model can compute in {}; the model computes in "
                                 "float32",
                                 type.flag, type.name),
                     "sinter inspect --types lists the reasons");
  if (done.unproven > 0)
    diagnostics.warn(
        done.first_unproven, done.first_op,
        fmt::format("{}: {} of {} operations in {}, the first of them this one, are not proven to "
                    "stay below {}; larger values become infinite",
                    type.flag, done.unproven, done.computed, type.name, type.largest),
        "test typical inputs with sinter compare, or remove the option");
  const auto is_missing = [&](const Platform* p) {
    return p->on_request && std::none_of(backends.begin(), backends.end(), [&](const Backend* b) {
             return std::string_view(b->name()) == p->name;
           });
  };
  const auto missing = std::ranges::find_if(with_kernels, is_missing);
  if (done.computed > 0 && missing != with_kernels.end())
    diagnostics.warn(
        "", "",
        fmt::format("{}: products in {} need {} on target '{}', which this build lacks and which the "
                    "device's runtime "
                    "may lack; there they run on the reference kernels, many times slower than in float32",
                    type.flag, type.name, (*missing)->name, target_text(target)),
        fmt::format("build the device's runtime with {}, or remove the option", (*missing)->name));
}

}  // namespace

bool rewrite(Conversion& c) {
  if (c.options.narrow_float64)
    for (Entry& entry : c.entries) narrow_float64(entry.graph);
  c.report.passes = run_passes(c.graph(), c.options.passes, &c.report.fates);
  for (Entry& other : c.further()) run_passes(other.graph, c.options.passes);
  c.rewritten.emplace(c.graph());
  return true;
}

bool compute_in_preferred_type(Conversion& c) {
  for (size_t i = 0; i < c.entries.size(); ++i) {
    Diagnostics own;
    prefer(*c.options.prefer, c.entries[i].graph, c.options, own);
    add_of_set(own, i, c);
  }
  return true;
}

}  // namespace sinter::convert

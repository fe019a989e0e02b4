#include "converter/plan/grow_workspaces.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "converter/plan/call_view.h"
#include "runtime/core/tensor_view.h"

namespace sinter::convert {
namespace {

using ByteRange = std::pair<uint64_t, uint64_t>;  // begin, end

// Where values lie in `region` during step n, by address.
std::vector<ByteRange> taken_in(const PlannedProgram& program, uint32_t region, int n) {
  std::vector<ByteRange> taken;
  for (const PlannedValue& v : program.values)
    if (v.placed && v.region == region && v.bytes > 0 && v.first_step <= n && n <= v.last_step)
      taken.emplace_back(v.offset, v.offset + v.bytes);
  std::sort(taken.begin(), taken.end());
  return taken;
}

// Its begin and size.
ByteRange widest_gap(const std::vector<ByteRange>& taken, uint64_t end) {
  ByteRange widest{0, 0};
  uint64_t at = 0;
  const auto meet = [&](uint64_t next) {
    if (next > at && next - at > widest.second) widest = {at, next - at};
  };
  for (const auto& [begin, stop] : taken) {
    meet(begin);
    at = std::max<uint64_t>(at, (stop + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment);
  }
  meet(end);
  return widest;
}

}  // namespace

void grow_workspaces(PlannedProgram& program, const PlanOptions& options) {
  for (size_t n = 0; n < program.steps.size(); ++n) {
    PlannedStep& step = program.steps[n];
    constexpr size_t kFirstAndReference = 2;
    if (step.elided || step.candidates.size() <= kFirstAndReference) continue;
    const CallView view(*program.graph, program.graph->nodes[n]);
    const int threads = planned_threads(view.call, options.threads);
    std::optional<ByteRange> gap;
    for (size_t i = 1; i + 1 < step.candidates.size(); ++i)
      for (const int count : {threads, 1}) {
        size_t wanted = 0;
        if (!options.candidates[step.candidates[i]].accept(view.call, count, &wanted).ok() ||
            wanted <= step.workspace_bytes)
          continue;
        if (!gap)
          gap = widest_gap(taken_in(program, step.workspace_region, static_cast<int>(n)),
                           program.regions[step.workspace_region].bytes - kReadPadding);
        if (wanted <= gap->second) step.workspace_offset = gap->first, step.workspace_bytes = wanted;
      }
  }
}

}  // namespace sinter::convert

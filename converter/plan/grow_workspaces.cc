#include "converter/plan/grow_workspaces.h"

#include <algorithm>
#include <functional>

#include "converter/plan/place_memories.h"

namespace sinter::convert {
namespace {

struct Extent {
  uint64_t begin, end;
};

// The bytes that float32 takes for each byte; 0 for values that were not quantized.
uint64_t float_factor(DType t) { return t == DType::kInt8 ? 4 : t == DType::kInt16 ? 2 : 0; }

// Calls visit(n, values in the first region, of host memory, that are live in step n) for each step.
void for_each_step(const PlannedProgram& program,
                   const std::function<void(size_t n, const std::vector<size_t>& living)>& visit) {
  std::vector<size_t> coming, living;
  for (size_t v = 0; v < program.values.size(); ++v)
    if (program.values[v].placed && program.values[v].bytes > 0 && program.values[v].region == 0)
      coming.push_back(v);
  std::stable_sort(coming.begin(), coming.end(), [&](size_t a, size_t b) {
    return program.values[a].first_step > program.values[b].first_step;
  });
  for (size_t n = 0; n < program.steps.size(); ++n) {
    const int step = static_cast<int>(n);
    std::erase_if(living, [&](size_t v) { return program.values[v].last_step < step; });
    for (; !coming.empty() && program.values[coming.back()].first_step <= step; coming.pop_back())
      if (program.values[coming.back()].last_step >= step) living.push_back(coming.back());
    visit(n, living);
  }
}

// The parts of memory that these values cover: sorted, apart from one another.
std::vector<Extent> covered_by(const PlannedProgram& program, const std::vector<size_t>& values,
                               const std::function<bool(size_t)>& counts) {
  std::vector<Extent> all, apart;
  for (const size_t v : values)
    if (counts(v))
      all.push_back({program.values[v].offset, program.values[v].offset + program.values[v].bytes});
  std::sort(all.begin(), all.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (const Extent& e : all) {
    if (apart.empty() || apart.back().end < e.begin)
      apart.push_back(e);
    else
      apart.back().end = std::max(apart.back().end, e.end);
  }
  return apart;
}

// Where `bytes` fit below `limit` beside what is taken; UINT64_MAX: nowhere.
uint64_t free_place(const std::vector<Extent>& taken, uint64_t bytes, uint64_t limit) {
  uint64_t at = 0;
  for (const Extent& e : taken) {
    if (e.begin >= at && e.begin - at >= bytes) return at;
    at = std::max(at, align_up(e.end, kBufferAlignment));
  }
  return at <= limit && limit - at >= bytes ? at : UINT64_MAX;
}

bool has_host_region(const PlannedProgram& program) {
  return !program.regions.empty() && program.regions[0].memory == 0;
}

bool may_grow(const PlannedProgram& program, size_t n) {
  const PlannedStep& step = program.steps[n];
  return !step.elided && !step.in_order && memory_of(*program.graph, program.graph->nodes[n]) == 0;
}

bool place_workspace(PlannedStep& step, const std::vector<Extent>& taken, uint64_t bytes, uint64_t limit) {
  const uint64_t at = free_place(taken, bytes, limit);
  if (at == UINT64_MAX) return false;
  step.workspace_bytes = bytes, step.workspace_offset = at;
  return true;
}

}  // namespace

uint64_t float_bytes(const PlannedProgram& program) {
  const auto& values = program.graph->values;
  if (std::none_of(values.begin(), values.end(),
                   [](const Value& v) { return v.dtype == DType::kInt8 || v.dtype == DType::kInt16; }))
    return 0;
  uint64_t most = 0;
  for_each_step(program, [&](size_t, const std::vector<size_t>& living) {
    uint64_t sum = 0;
    for (const DType t : {DType::kInt8, DType::kInt16})
      for (const Extent& e :
           covered_by(program, living, [&](size_t v) { return program.graph->values[v].dtype == t; }))
        sum += (e.end - e.begin) * float_factor(t);
    most = std::max(most, sum);
  });
  return most == 0 ? 0 : align_up(most, kBufferAlignment) + kReadPadding;
}

void widen_workspaces(PlannedProgram& program, uint64_t most_bytes) {
  if (!has_host_region(program)) return;
  PlannedRegion& region = program.regions[0];
  const uint64_t limit = std::max(most_bytes, region.bytes) - kReadPadding, before = region.bytes;
  uint64_t used = region.bytes - kReadPadding, bound = region.lower_bound;
  for_each_step(program, [&](size_t n, const std::vector<size_t>& living) {
    PlannedStep& step = program.steps[n];
    if (!may_grow(program, n) || step.wider.empty()) return;
    const std::vector<Extent> taken = covered_by(program, living, [](size_t) { return true; });
    for (const uint64_t bytes : step.wider) {
      if (bytes <= step.workspace_bytes) return;
      if (!place_workspace(step, taken, bytes, limit)) continue;
      used = std::max(used, step.workspace_offset + bytes);
      uint64_t sum = align_up(bytes, kBufferAlignment) + kReadPadding;
      for (const Extent& e : taken) sum += e.end - e.begin;
      bound = std::max(bound, sum);
      return;
    }
  });
  region.bytes = std::max(before, align_up(used, kBufferAlignment) + kReadPadding);
  region.lower_bound = std::min(bound, region.bytes);
  region.proved = region.bytes == region.lower_bound || (region.proved && region.bytes == before);
  program.arena_bytes += region.bytes - before;
  program.lower_bound = 0;
  program.proved = true;
  for (const PlannedRegion& r : program.regions)
    program.lower_bound += r.lower_bound, program.proved &= r.proved;
}

void grow_workspaces(PlannedProgram& program) {
  if (!has_host_region(program)) return;
  const uint64_t limit = program.regions[0].bytes - kReadPadding;
  for_each_step(program, [&](size_t n, const std::vector<size_t>& living) {
    PlannedStep& step = program.steps[n];
    if (!may_grow(program, n) || step.later.empty()) return;
    const std::vector<Extent> taken = covered_by(program, living, [](size_t) { return true; });
    for (const uint64_t bytes : step.later)
      if (bytes > step.workspace_bytes) place_workspace(step, taken, bytes, limit);
  });
}

}  // namespace sinter::convert

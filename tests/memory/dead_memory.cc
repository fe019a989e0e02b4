#include "tests/memory/dead_memory.h"

#include <algorithm>
#include <cstring>

namespace sinter::test {

using detail::items;
using detail::length;

namespace {
constexpr size_t kElsewhere = SIZE_MAX;  // a region on a device
}

DeadMemory::DeadMemory(const Model& model, const SessionOptions& options, std::byte* arena, std::byte poison)
    : model_(*model.state()), poison_(poison) {
  const uint32_t profile = options.profile != nullptr
                               ? static_cast<uint32_t>(model.find_profile(options.profile))
                               : model.default_profile();
  profile_ = model_.root->profiles()->Get(profile);
  const uint32_t entry = model.entry_program(options.entry, profile);
  const fb::ProgramPlan& plan = *detail::find_plan(*profile_, entry);
  homes_.resize(model_.root->programs()->size());
  std::vector<size_t> regions;
  size_t bytes = 0;
  for (uint32_t i = 0; i < length(plan.regions()); ++i) {
    const bool host = plan.regions()->Get(i)->memory_kind() == 0;
    regions.push_back(host ? bytes : kElsewhere);
    if (!host) continue;
    bytes += static_cast<size_t>(plan.regions()->Get(i)->bytes());
  }
  place(entry, arena, bytes, std::move(regions));
  observer_.context = this;
  observer_.before = [](void* self, const StepInfo& info) {
    static_cast<DeadMemory*>(self)->poison_before(info);
  };
}

void DeadMemory::place(uint32_t p, std::byte* base, size_t bytes, std::vector<size_t> regions) {
  Home& home = homes_[p];
  home = {base, bytes, model_.root->programs()->Get(p), detail::find_plan(*profile_, p), std::move(regions),
          {}};
  home.lives.resize(length(home.program->values()));
  detail::find_lives(*home.program, home.lives);
  for (uint32_t s = 0; s < length(home.program->steps()); ++s) {
    const auto& step = *home.program->steps()->Get(s);
    const auto& plan = *home.plan->steps()->Get(s);
    const size_t region =
        home.regions.empty() || plan.workspace_bytes() == 0 ? 0 : home.regions[plan.workspace_region()];
    for (const uint32_t body : items(step.subprograms())) {
      const auto* list = detail::find_plan(*profile_, body)->regions();
      std::vector<size_t> inside;
      for (uint32_t r = 0; r < length(list); ++r)
        inside.push_back(list->Get(r)->memory_kind() == 0 ? 0 : kElsewhere);
      place(body, base + region + plan.workspace_offset(), static_cast<size_t>(plan.workspace_bytes()),
            std::move(inside));
    }
  }
}

void DeadMemory::poison_before(const StepInfo& info) {
  const Home& home = homes_[info.program];
  const auto step = static_cast<int32_t>(info.step);
  live_.clear();
  for (const auto* p : *home.plan->placements()) {
    const auto kind = home.program->values()->Get(p->value())->kind();
    const bool given = kind == fb::ValueKind::Input || kind == fb::ValueKind::State;
    const detail::Life life = detail::stated_life(*p, home.lives[p->value()]);
    if (life.last < step || (given ? life.first > step : life.first >= step)) continue;
    if (!home.regions.empty() && home.regions[p->region()] == kElsewhere) continue;
    const size_t from =
        (home.regions.empty() ? 0 : home.regions[p->region()]) + static_cast<size_t>(p->offset());
    live_.push_back({from, from + static_cast<size_t>(detail::placed_bytes(*home.program, *p))});
  }
  std::sort(live_.begin(), live_.end(), [](const Part& a, const Part& b) { return a.from < b.from; });
  size_t at = 0;
  for (const Part& part : live_) {
    if (part.from > at) std::memset(home.base + at, static_cast<int>(poison_), part.from - at);
    at = std::max(at, part.to);
  }
  if (home.bytes > at) std::memset(home.base + at, static_cast<int>(poison_), home.bytes - at);
}

}  // namespace sinter::test

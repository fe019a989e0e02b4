// A plan under verification: the places of its values, and the facts that were established about it.
// verify_plan.cc checks every placement and step by itself, verify_blocks.cc those that share memory.
#pragma once

#include "runtime/model/overlap.h"
#include "runtime/model/verify.h"

namespace sinter::detail {

// A value's place, ready to compare.
struct Place {
  const fb::Placement* placement = nullptr;
  uint64_t begin = 0, end = 0;  // in one address space for all regions
  TensorView view;              // dims and strides
};

inline bool same_strides(const TensorView& a, const TensorView& b) {
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] > 1 && b.dims[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

struct PlanScratch {
  Box* boxes;
  int32_t* block;   // per placement: index of its block's first placement
  uint32_t* order;  // placements by block
  uint32_t* active;
  uint8_t* written;  // per value: a step that is not elided, or a caller, writes it
  uint8_t* state;    // per placement, while blocks are found

  PlanScratch(uint32_t values, size_t workspaces, BumpArena& arena)
      : boxes(arena.allocate_array<Box>(values + workspaces)),
        block(arena.allocate_array<int32_t>(values)),
        order(arena.allocate_array<uint32_t>(values)),
        active(arena.allocate_array<uint32_t>(values)),
        written(arena.allocate_array<uint8_t>(values)),
        state(arena.allocate_array<uint8_t>(values)) {
    BumpArena sweep = arena;
    if (arena.measuring()) measure_disjoint(values + workspaces, sweep);
    rest = arena;
    needed = sweep.used();
  }
  BumpArena rest;
  size_t needed = 0;
};

struct PlanView {
  const ModelState& model;
  const fb::Profile& profile;
  const fb::ProgramPlan& plan;
  const fb::ProgramPlan& entry_plan;  // of the entry program that this one is, or to which it belongs
  std::span<const ProgramFacts> all;
  const ProgramFacts& facts;
  PlanScratch& scratch;
  int64_t budget = 20'000'000;  // pairs that are compared one by one

  bool entry() const { return facts.owner == nullptr; }
  uint32_t steps() const { return length(facts.program->steps()); }
  const fb::Value& value(uint32_t v) const { return *facts.program->values()->Get(v); }
  uint32_t placements() const { return length(plan.placements()); }

  Place place(const fb::Placement& p) const {
    Place out;
    out.placement = &p;
    out.view = placed_view(value(p.value()), p);
    out.begin = base(p.region()) + p.offset();
    out.end = out.begin + extent_bytes(out.view);
    return out;
  }
  // Returns the place of a value, with a null placement if it has none.
  Place place_of(uint32_t v) const {
    const fb::Placement* p = find_placement(plan, v);
    return p != nullptr ? place(*p) : Place{};
  }
  uint64_t base(uint32_t region) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < region; ++i) sum += plan.regions()->Get(i)->bytes();
    return sum;
  }
};

// Checks the memory of every value, step and transfer.
Status check_memories(const PlanView& view);
// Follows alias_of to set scratch.block and the boxes' blocks.
Status find_blocks(PlanView& view);
// Checks rule 3: within a block, a written value touches no other live value.
Status check_blocks(PlanView& view);

}  // namespace sinter::detail

// The verifier: everything that the runtime relies on and FlatBuffers' own verifier does not check. FORMAT.md
// lists the rules.
#pragma once

#include "runtime/core/bump_arena.h"
#include "runtime/model/model_state.h"

namespace sinter::detail {

// Scratch that verify() takes for this model, to be stored in Header::scratch_bytes. `root` has passed
// FlatBuffers' verifier (or was just built).
uint64_t open_scratch_bytes(const fb::Model* root);

// The structure: indices, types, dims, attributes, order, control flow, constants. Then every profile's plan.
Status verify(const ModelState& model, std::span<std::byte> scratch);

// ---- parts

// First and last step that a value is live in, before any plan: see Placement. kNever: the value does not
// exist yet.
struct Life {
  static constexpr int32_t kNever = -2;
  int32_t first = kNever;
  int32_t last = kNever;
};

// One program with what the verifier has found out about it.
struct ProgramFacts {
  const fb::Program* program = nullptr;
  uint32_t index = 0;
  // The step that owns it, if it is a subprogram.
  const fb::Program* owner = nullptr;
  uint32_t owner_index = 0;
  const fb::Step* owner_step = nullptr;
  uint32_t owner_step_index = 0;
  // Inputs before this are the program's own, the others captured (entry programs own all).
  uint32_t own_inputs = 0;
  std::span<Life> lives;     // per value
  std::span<uint8_t> ports;  // per value: bit 0 captured
};

// Checks a program's values and ports; to be called for all programs first.
Status verify_values(const ModelState& model, ProgramFacts& facts);
// Fills facts.lives and checks the program's steps.
Status verify_program(const ModelState& model, ProgramFacts& facts);
// Checks one profile's plan of a program.
Status verify_plan(const ModelState& model, const fb::Profile& profile, const ProgramFacts& facts,
                   BumpArena scratch);
void measure_plan(uint32_t values, uint32_t steps, BumpArena& scratch);
Status verify_regions(const fb::Profile& profile);

}  // namespace sinter::detail

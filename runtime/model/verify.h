// The verifier: everything that the runtime relies on and FlatBuffers' own verifier does not check. FORMAT.md
// lists the rules.
#pragma once

#include "runtime/core/bump_arena.h"
#include "runtime/model/model_state.h"

namespace sinter::detail {

// Returns the scratch that verify() takes for this model, to be stored in Header::scratch_bytes: facts about
// programs and values, the operands of one step, and the scratch of the largest plan. `root` has passed
// FlatBuffers' verifier (or was just built).
uint64_t open_scratch_bytes(const fb::Model* root);

// Verifies indices, types, dims, attributes, order, control flow and constants, then every profile's plan.
Status verify(const ModelState& model, std::span<std::byte> scratch);

// Checks that every operation and element type of the model is built in, and every operation has a kernel.
// The structure is verified, or trusted.
Status check_built(const ModelState& model);

// ---- parts

// The first and the last step that a value is live in, before any plan: see Placement. kNever: the value does
// not exist yet.
struct Life {
  static constexpr int32_t kNever = -2;
  int32_t first = kNever;
  int32_t last = kNever;
};

// A program and the verifier's facts about it.
struct ProgramFacts {
  const fb::Program* program = nullptr;
  uint32_t index = 0;
  // The step that owns it, if it is a subprogram.
  const fb::Program* owner = nullptr;
  uint32_t owner_index = 0;
  const fb::Step* owner_step = nullptr;
  uint32_t owner_step_index = 0;
  uint32_t entry = 0;    // the program itself, or the one that it is a part of
  uint32_t planned = 0;  // the last profile that plans it, counted from 1
  uint32_t listed = 0;   // the last profile that has it as an entry, likewise
  // Inputs before this are the program's own, the others captured (entry programs own all).
  uint32_t own_inputs = 0;
  std::span<Life> lives;  // per value
  // Per value: bit 0 is set if it is captured; the others are its memory in the profile under verification.
  std::span<uint8_t> ports;
  TensorView* views = nullptr;  // room for the operands of one step, the same for all programs
};

// Checks a program's values and ports, for all programs before anything else.
Status verify_values(const ModelState& model, ProgramFacts& facts);
// Checks the lengths that the caller of an entry program gives, as a part of verify_values().
Status verify_lengths(const fb::Program& program, bool entry);
// Fills facts.lives and checks the program's steps.
Status verify_program(const ModelState& model, ProgramFacts& facts);
// Checks a profile: the programs that it plans, and its plan of each. `index` is the profile's; `facts` are
// those of all programs. Profiles are verified in their order.
Status verify_profile(const ModelState& model, uint32_t index, std::span<ProgramFacts> facts,
                      BumpArena scratch);
// Checks the profile's plan of a program. The profile plans the programs that it must plan.
Status verify_plan(const ModelState& model, const fb::Profile& profile, std::span<const ProgramFacts> all,
                   uint32_t program, BumpArena scratch);
// Counts the scratch for `workspaces` of steps, one each, and device_workspaces() more.
void measure_plan(uint32_t values, size_t workspaces, BumpArena& scratch);
size_t device_workspaces(const fb::ProgramPlan& plan);

// Checks metadata and labels. All else is verified.
Status verify_metadata(const fb::Model& root);

// The memory of a value: host memory (0), that of a backend (as Region.memory_kind), or none for a constant.
inline constexpr uint8_t kNowhere = 127;
inline constexpr uint8_t kMostMemoryKind = 126;
// Writes the memories of all captured values, from the outside inwards, into ProgramFacts::ports. No plan of
// the profile needs to be verified.
void locate_captured(const fb::Profile& profile, std::span<ProgramFacts> facts);
// Returns the memory of a value that exists, by a plan of the program that need not be verified.
uint8_t location_of(const fb::ProgramPlan& plan, const ProgramFacts& facts, uint32_t value);

}  // namespace sinter::detail

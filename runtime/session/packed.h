// Packed constants of a model: their identity, and the memory block of PackedWeights.
#pragma once

#include "runtime/backend/backend.h"
#include "runtime/model/model_state.h"
#include "runtime/model/structure_arena.h"

namespace sinter::detail {

// Steps with more operands do not share packed constants with others: Lstm has eleven.
inline constexpr uint32_t kPackedOperands = 12;
inline bool can_share_packings(const fb::Step& step) {
  return length(step.inputs()) + length(step.outputs()) <= kPackedOperands;
}
// Inputs that a packing may read.
inline constexpr size_t kPackedInputs = 5;

// The identity of a packing: the constants that are packed, and the form. Equal keys have the same bytes.
struct PackedKey {
  const char* backend = "";  // its name
  Packing packing;
  // The number of each input in Packing::inputs: the model's constant, or, negative, a prepared value of a
  // program.
  int64_t constants[kPackedInputs] = {};

  bool packs(size_t input) const { return input < 32 && (packing.inputs >> input & 1) != 0; }
  bool operator==(const PackedKey& other) const;
  uint64_t hash() const;
};

// One packing of a PackedWeights.
struct PackedEntry {
  PackedKey key;
  uint64_t hash = 0;
  const std::byte* data = nullptr;
  uint64_t layouts = 0;  // Backend::packed_layouts(); 0: in device memory, or not to be stored
  bool stored = false;   // `data` is in the model's file
};

struct Frame;

// The state of PackedWeights: this struct, then the entries, then the bytes.
struct PackedState {
  const ModelState* model = nullptr;
  std::span<const PackedEntry> entries;  // by hash
  size_t bytes = 0;                      // of the block
  uint32_t stored = 0;                   // entries whose bytes are in the model's file
  // The number of an operand in the keys.
  using Number = int64_t(const Frame& frame, int32_t value);
  Number* number = nullptr;

  // Returns null if it is not packed here.
  const PackedEntry* find(const PackedKey& key) const;
};

// The functions of stored_packings.h that sessions need: SessionOptions::packed_in_file.
struct PackedInFile {
  Status (*verify)(const ModelState& model);
  const std::byte* (*find)(const ModelState& model, const PackedKey& key, const Backend& backend);
  PackedState::Number* number;
};

// Returns a number of an operand that is the same in every entry that reads the same: a prepared value has
// that of the first entry whose prepare step of the same place makes it from the same constants. Only
// PackedWeights and files use it, so that programs without them do not link it.
PackedState::Number shared_number_of;

// The place of a step's packed constants that may be shared within a session, while it is created.
struct PackedAt {
  uint32_t program = 0, step = 0;
  std::byte* data = nullptr;
  PackedAt* next = nullptr;
};

SINTER_ON_32(PackedAt, 16, 4);
SINTER_ON_32(PackedEntry, 184, 8);
SINTER_ON_32(PackedState, 24, 4);

}  // namespace sinter::detail

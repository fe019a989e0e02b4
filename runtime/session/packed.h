// Packed constants of a model: their identity, and the memory block of PackedWeights.
#pragma once

#include "runtime/backend/backend.h"
#include "runtime/model/model_state.h"
#include "runtime/model/structure_arena.h"

namespace sinter::detail {

// Inputs that a packing may read.
inline constexpr size_t kPackedInputs = 5;

// Which constants are packed, and how. Two packings with equal keys have the same bytes.
struct PackedKey {
  const char* backend = "";  // its name
  Packing packing;
  // Of each input in Packing::inputs: the model's constant, or, negative, a prepared value of a program.
  int64_t constants[kPackedInputs] = {};

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

class Creator;
struct Frame;

// The state of PackedWeights: this struct, then the entries, then the bytes.
struct PackedState {
  const ModelState* model = nullptr;
  std::span<const PackedEntry> entries;  // by hash
  size_t bytes = 0;                      // of the block
  uint32_t stored = 0;                   // entries whose bytes are in the model's file
  // The number of an operand in the keys.
  using Number = int64_t(const Creator& creator, const Frame& frame, int32_t value);
  Number* number = nullptr;

  // Null: not packed here.
  const PackedEntry* find(const PackedKey& key) const;
};

// What sessions need of stored_packings.h: SessionOptions::packed_in_file.
struct PackedInFile {
  Status (*verify)(const ModelState& model);
  const std::byte* (*find)(const ModelState& model, const PackedKey& key, const Backend& backend);
  PackedState::Number* number;
};

// Where the packed constants of a step are that may be shared within a session, while it is created.
struct PackedAt {
  uint32_t program = 0, step = 0;
  std::byte* data = nullptr;
  PackedAt* next = nullptr;
};

SINTER_ON_32(PackedAt, 16, 4);
SINTER_ON_32(PackedEntry, 184, 8);
SINTER_ON_32(PackedState, 24, 4);

}  // namespace sinter::detail

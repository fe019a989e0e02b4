// Packings finds where constants are packed while something is created. A constant that several steps read in
// the same packed form is packed once: by PackedWeights, or by the first of these steps.
#pragma once

#include "runtime/session/devices.h"

namespace sinter::detail {

class Packings {
 public:
  Packings(const Entry& entry, Chooser& chooser, Devices& devices, CreationMemory& memory)
      : entry_(entry), chooser_(chooser), devices_(devices), memory_(memory) {}

  // Returns the packing in host memory that the model's file stores; null: it has none, or is not searched.
  const std::byte* find_in_file(const PackedKey& key, const Choice& choice) const;
  // Begins the walk of an entry after the walks of so many others; of none: a pass.
  void begin(uint32_t entries_before);
  // Measuring: finds where the packed constants of step `s` come from.
  Status find(Frame& frame, uint32_t s, const Packing& packing, Choice* choice);

  // Returns the arena that a step's packed constants are in.
  BumpArena& arena(const Choice& choice) {
    return choice.memory != 0 ? devices_.of(choice.memory).prepared : memory_.prepared;
  }
  // Takes the place of a step's packed constants, in both passes. Building: `*packed` is where they are;
  // `*fresh`: the same, if this step is to pack them.
  Status take(const Frame& frame, uint32_t s, const Choice& choice, std::span<const std::byte>* packed,
              std::span<std::byte>* fresh);
  // Building: has the backend pack a step's constants.
  Status pack(const Choice& choice, const OpCall& call, std::span<std::byte> bytes, std::byte* scratch,
              ThreadPool* threads) const;

  size_t packed_bytes = 0;  // of packed constants in prepared memory

 private:
  struct Search;

  Status find_earlier(Frame& frame, uint32_t s, Search* search);
  Status search_steps(const Frame& frame, uint32_t begin, uint32_t end, Search* search);
  Status search_step(const Frame& frame, uint32_t s, Search* search);
  Status compare_step(const Frame& frame, uint32_t s, Search* search);
  std::byte* packed_earlier(const Choice& choice) const;

  const Entry& entry_;
  Chooser& chooser_;
  Devices& devices_;
  CreationMemory& memory_;
  uint32_t entries_before_ = 0;
  // A bit for constants that a step has packed: set for these and, where there are more constants than bits,
  // for some others.
  static constexpr size_t kPackedBits = 4096;
  uint64_t has_packed_[kPackedBits / 64] = {};
  static constexpr size_t kPackedLists = 64;
  PackedAt* packed_at_[kPackedLists] = {};  // while building, by step
};

}  // namespace sinter::detail

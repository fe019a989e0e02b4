// A model file from which constants are left out: the others move together in their segments, and the
// structure states where they are.
//
// The old structure stays as it is, behind a new root table and new tables of the constants: references of a
// FlatBuffer point forwards, so nothing in it has to change, and nothing is built in memory.
#pragma once

#include "runtime/session/stored_packings.h"

namespace sinter::detail {

struct KeptConstants {
  static constexpr uint64_t kNoPlace = UINT64_MAX;
  const ModelState* model = nullptr;
  std::span<const uint64_t> places;  // of all constants: the offset in their segment; kNoPlace: left out
  std::span<const uint32_t> order;   // those that stay, by segment and offset
};

// Moves the constants of `order` together; places the constants.
void place_kept(const ModelState& model, std::span<const uint32_t> order, std::span<uint64_t> places);

Status structure_bytes(const KeptConstants& kept, uint64_t* bytes);
Status write_structure(const KeptConstants& kept, Put* put, void* context);
// Returns the bytes of a segment of weights.
uint64_t weights_bytes(const KeptConstants& kept, uint32_t segment);
Status write_weights(const KeptConstants& kept, uint32_t segment, Put* put, void* context);

// Return as many zeros as follow the last constant of a segment, and those up to the next multiple of the
// alignment.
std::span<const std::byte> zeros();
inline std::span<const std::byte> zeros_behind(uint64_t offset) {
  return zeros().first(static_cast<size_t>((0 - offset) % format::kAlignment));
}

template <class T>
std::span<const std::byte> object_bytes(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace sinter::detail

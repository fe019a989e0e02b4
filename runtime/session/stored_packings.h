// Packed weights in a model file: segments of kind kPackedWeights, which `sinter pack` adds. Each holds
// packings in the form that kernels of one machine read, with the keys by which sessions find them.
//
// The bytes of a packing are numbers alone, which no kernel takes for an address, an index or a length. So
// where a segment is sound, any content is safe.
#pragma once

#include "runtime/session/packed.h"

namespace sinter::detail {

// A segment: StoredHead, `count` records in ascending order of the hash, then the packings, each at a
// multiple of 64 and with 64 bytes of the segment behind it.
struct StoredHead {
  uint64_t count;
  uint64_t reserved;  // zero
};
static_assert(sizeof(StoredHead) == 16);

struct StoredPacking {
  uint64_t hash;      // PackedKey::hash()
  uint64_t layouts;   // Backend::packed_layouts() of the machine that packed; not 0
  uint64_t offset;    // of the bytes, from the segment's start
  uint64_t bytes;     // Packing::bytes; not 0
  char backend[16];   // its name, zeros behind it
  uint32_t inputs;    // Packing::inputs
  uint32_t reserved;  // zero
  int64_t parameters[kPackingParameters];
  int64_t constants[kPackedInputs];
};
static_assert(sizeof(StoredPacking) == 192);

// Returns whether the file has such a segment.
bool stores_packings(const ModelState& model);

// Checks every segment of packed weights. kCorrupt with the segment's number.
Status verify_stored(const ModelState& model);

// The bytes that this machine's `backend`, which is open, made for the key, in the file; null: it has none.
// The segments are verified.
const std::byte* find_stored(const ModelState& model, const PackedKey& key, const Backend& backend);

// Returns whether a file can hold the packing.
bool can_be_stored(const PackedEntry& entry);

// The segment with those packings of a block that the file lacks. Its size; 0: it lacks none.
uint64_t segment_bytes(const PackedState& packed);
using Put = Status(void* context, std::span<const std::byte> piece);
Status write_segment(const PackedState& packed, Put* put, void* context);

// The block's file with that segment, and with these constants; null: with all that it has.
struct KeptConstants;
Status write_file(const PackedState& packed, const KeptConstants* kept, Put* put, void* context);

}  // namespace sinter::detail

// The parts of a file of planned models: its FlatBuffer, its constants, and its header.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "converter/emit/constant_pool.h"
#include "converter/emit/emitter.h"
#include "runtime/model/format.h"

namespace sinter::convert {

struct WrittenModel {
  std::vector<uint8_t> flatbuffer;
  ConstantPool pool;  // the constants of the weights segment
};
WrittenModel write_model(std::span<const PlannedModel> profiles, const EmitOptions& options,
                         ConstantPool::Layout layout);

// Returns the segment for these constants, without its offset and digest; none if there are no constants.
std::vector<format::Segment> weights_segment(const ConstantPool& pool);

// Returns a header with the digest of the FlatBuffer, and sets the segments' offsets; a file whose digests
// are BLAKE2b gets room for a signature. Throws std::length_error where the sizes do not fit.
format::Header header_of(std::span<const uint8_t> flatbuffer, std::span<format::Segment> segments,
                         format::DigestAlgorithm algorithm);

}  // namespace sinter::convert

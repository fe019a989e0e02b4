// A model file with its packed weights in one more segment, whose bytes a test may change.
#pragma once

#include <cstring>
#include <vector>

#include "runtime/model/format.h"
#include "runtime/session/stored_packings.h"
#include "sinter/packed_weights.h"

namespace sinter::testing {

// The segment that PackedWeights adds to its file.
inline std::vector<std::byte> packed_segment(const PackedWeights& packed) {
  std::vector<std::byte> bytes;
  const auto put = [](void* to, std::span<const std::byte> piece) {
    auto& all = *static_cast<std::vector<std::byte>*>(to);
    all.insert(all.end(), piece.begin(), piece.end());
    return ok_status();
  };
  (void)detail::write_segment(*packed.state(), put, &bytes);
  return bytes;
}

// `file`, which is sound and not signed, with one more segment of this content, sealed.
inline std::vector<std::byte> with_packed_segment(std::span<const std::byte> file,
                                                  std::span<const std::byte> segment) {
  const format::Header old = format::read_header(file).value();
  const format::Envelope envelope =
      format::read_envelope(file, file.first(static_cast<size_t>(format::head_bytes(old)))).value();
  std::vector<format::Segment> segments;
  for (uint32_t i = 0; i < old.segment_count; ++i) segments.push_back(envelope.segment(i));
  segments.push_back({});
  segments.back().kind = static_cast<uint32_t>(format::SegmentKind::kPackedWeights);
  segments.back().bytes = segment.size();
  format::Header header = old;
  (void)format::lay_out(header, segments);
  std::vector<std::byte> all(static_cast<size_t>(header.file_bytes));
  const auto place = [&](uint64_t offset, std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(all.data() + offset, bytes.data(), bytes.size());
  };
  place(header.flatbuffer_offset, envelope.flatbuffer);
  for (uint32_t i = 0; i < old.segment_count; ++i) {
    const format::Segment from = envelope.segment(i);
    place(segments[i].offset,
          file.subspan(static_cast<size_t>(from.offset), static_cast<size_t>(from.bytes)));
  }
  place(segments.back().offset, segment);
  segments.back().digest = format::digest_of(segment);
  format::seal(header, segments);
  place(0, std::as_bytes(std::span(&header, 1)));
  place(sizeof(header), std::as_bytes(std::span<const format::Segment>(segments)));
  return all;
}

}  // namespace sinter::testing

#include "runtime/model/format.h"

#include <bit>

#include "runtime/core/checked.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

namespace sinter::format {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read in place");
static_assert(sizeof(XXH3_state_t) <= 640 && alignof(XXH3_state_t) <= 64);

constexpr size_t kHeaderDigestOffset = offsetof(Header, header_digest);

XXH3_state_t* state_of(std::byte* bytes) { return reinterpret_cast<XXH3_state_t*>(bytes); }

template <class T>
std::span<const std::byte> bytes_of(std::span<const T> items) {
  return std::as_bytes(items);
}

// The digest of a header and its segment table, given as bytes, with the digest field taken as zero.
Digest header_digest(std::span<const std::byte> header, std::span<const std::byte> table) {
  const Digest zero;
  Digester digester;
  digester.update(header.first(kHeaderDigestOffset));
  digester.update(bytes_of(std::span<const uint8_t>(zero.bytes)));
  digester.update(table);
  return digester.finish();
}

bool all_zero(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes)
    if (b != std::byte{0}) return false;
  return true;
}

}  // namespace

Digester::Digester() { XXH3_128bits_reset(state_of(state_)); }

void Digester::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}

Digest Digester::finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state_)));
  Digest digest;
  std::memcpy(digest.bytes, canonical.digest, sizeof(canonical.digest));
  return digest;
}

Digest digest_of(std::span<const std::byte> bytes) {
  Digester digester;
  digester.update(bytes);
  return digester.finish();
}

Status lay_out(Header& header, std::span<Segment> segments) {
  SINTER_CHECK(segments.size() <= kMaxSegments, invalid("%a segments are too many", segments.size()));
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.segment_count = static_cast<uint32_t>(segments.size());
  header.header_bytes = static_cast<uint32_t>(sizeof(Header) + segments.size() * sizeof(Segment));
  header.digest_algorithm = static_cast<uint32_t>(DigestAlgorithm::kXxh3);
  header.signature_offset = header.signature_bytes = 0;
  uint64_t end = align_up(header.header_bytes, kAlignment);
  header.flatbuffer_offset = end;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  SINTER_CHECK(header.flatbuffer_bytes < kMost, invalid("the file would be too large"));
  end += header.flatbuffer_bytes;
  for (Segment& segment : segments) {
    segment.offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    segment.algorithm = static_cast<uint32_t>(DigestAlgorithm::kXxh3);
    segment.reserved = 0;
    SINTER_CHECK(segment.bytes < kMost && segment.offset < kMost, invalid("the file would be too large"));
    end = segment.offset + segment.bytes;
  }
  header.file_bytes = end;
  return ok_status();
}

void seal(Header& header, std::span<const Segment> segments) {
  header.header_digest =
      header_digest(std::as_bytes(std::span<const Header>(&header, 1)), bytes_of(segments));
}

Segment Envelope::segment(uint32_t i) const {
  Segment segment;
  std::memcpy(&segment, segment_table + size_t{i} * sizeof(Segment), sizeof(segment));
  return segment;
}

Result<Header> read_header(std::span<const std::byte> file) {
  Header h;
  SINTER_CHECK(file.size() >= sizeof(kMagic) && std::memcmp(file.data(), kMagic, sizeof(kMagic)) == 0,
               corrupt("this is not a Sinter model file"));
  SINTER_CHECK(file.size() >= sizeof(Header), corrupt("the file ends within its header"));
  std::memcpy(&h, file.data(), sizeof(Header));
  SINTER_CHECK(
      h.version == kVersion,
      unsupported("the file has format version %a; this build reads version %b", h.version, kVersion));
  SINTER_CHECK(h.segment_count <= kMaxSegments &&
                   h.header_bytes == sizeof(Header) + uint64_t{h.segment_count} * sizeof(Segment) &&
                   h.header_bytes <= file.size(),
               corrupt("the header's size is wrong"));
  return h;
}

Result<Envelope> read_envelope(std::span<const std::byte> file, std::span<const std::byte> head) {
  const Result<Header> read = read_header(head);
  if (!read.ok()) return read.status();
  Envelope e;
  e.header = read.value();
  const Header& h = e.header;
  SINTER_CHECK(h.header_bytes == head.size(), corrupt("the header's size is wrong"));
  const auto table = head.subspan(sizeof(Header));
  e.segment_table = table.data();
  SINTER_CHECK(h.digest_algorithm == static_cast<uint32_t>(DigestAlgorithm::kXxh3),
               unsupported("unknown digest algorithm %a", h.digest_algorithm));
  SINTER_CHECK(header_digest(head.first(sizeof(Header)), table) == h.header_digest,
               corrupt("the header does not match its digest"));
  SINTER_CHECK(h.signature_offset == 0 && h.signature_bytes == 0,
               unsupported("signed files are not supported yet"));
  SINTER_CHECK(h.file_bytes == file.size(),
               corrupt("the file should have %a bytes and has %b", static_cast<int64_t>(h.file_bytes),
                       static_cast<int64_t>(file.size())));

  // Each part starts at the next multiple of 64 after the one before; what lies between is zero.
  uint64_t end = h.header_bytes;
  const auto take = [&](uint64_t offset, uint64_t bytes) -> Status {
    SINTER_CHECK(offset == (end + kAlignment - 1) / kAlignment * kAlignment && offset <= file.size() &&
                     bytes <= file.size() - offset,
                 corrupt("a part of the file is not where it should be"));
    SINTER_CHECK(all_zero(file.subspan(static_cast<size_t>(end), static_cast<size_t>(offset - end))),
                 corrupt("padding in the file is not zero"));
    end = offset + bytes;
    return ok_status();
  };
  SINTER_RETURN_IF_ERROR(take(h.flatbuffer_offset, h.flatbuffer_bytes));
  e.flatbuffer =
      file.subspan(static_cast<size_t>(h.flatbuffer_offset), static_cast<size_t>(h.flatbuffer_bytes));
  for (uint32_t i = 0; i < h.segment_count; ++i) {
    const Segment s = e.segment(i);
    const auto index = static_cast<int32_t>(i);
    SINTER_CHECK(s.algorithm == static_cast<uint32_t>(DigestAlgorithm::kXxh3),
                 unsupported("unknown digest algorithm %a", s.algorithm).at(Where::kSegment, index));
    SINTER_CHECK(s.kind <= static_cast<uint32_t>(SegmentKind::kDebug) && s.reserved == 0,
                 corrupt("unknown kind of segment").at(Where::kSegment, index));
    const Status placed = take(s.offset, s.bytes);
    if (!placed.ok()) return placed.at(Where::kSegment, index);
  }
  SINTER_CHECK(end == file.size(), corrupt("the file goes on after its last part"));
  return e;
}

Status check_segments(std::span<const std::byte> file, const Envelope& e) {
  for (uint32_t i = 0; i < e.header.segment_count; ++i) {
    const Segment s = e.segment(i);
    const auto bytes = file.subspan(static_cast<size_t>(s.offset), static_cast<size_t>(s.bytes));
    SINTER_CHECK(digest_of(bytes) == s.digest,
                 corrupt("a segment does not match its digest").at(Where::kSegment, static_cast<int32_t>(i)));
  }
  return ok_status();
}

}  // namespace sinter::format

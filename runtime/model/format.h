// The envelope of a .sinter file: header, segment table, digests. Used by the runtime to read and by the
// converter to write. schemas/FORMAT.md describes the layout in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/core/status.h"

namespace sinter::format {

inline constexpr char kMagic[8] = {'S', 'I', 'N', 'T', 'E', 'R', '\0', '\x01'};
inline constexpr uint32_t kVersion = 1;
// Alignment of the FlatBuffer and of every segment in the file, and of every constant in its segment.
inline constexpr uint64_t kAlignment = 64;
// A weights segment ends with at least this many bytes that no constant holds: kernels may read past their
// operands.
inline constexpr uint64_t kSegmentPadding = 64;
inline constexpr uint32_t kMaxSegments = 65536;

enum class DigestAlgorithm : uint32_t {
  kXxh3 = 1,     // XXH3-128, canonical (big-endian) form, in the first 16 bytes; the others are zero
  kSha256 = 2,   // reserved
  kBlake2s = 3,  // reserved
};

enum class SegmentKind : uint32_t { kWeights = 0, kPackedWeights = 1, kDebug = 2 };

struct Digest {
  uint8_t bytes[32] = {};
  bool operator==(const Digest& o) const { return std::memcmp(bytes, o.bytes, sizeof(bytes)) == 0; }
};

// All numbers little-endian; offsets count from the start of the file.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // sizeof(Header) + segment_count * sizeof(Segment)
  uint64_t file_bytes;
  uint64_t flatbuffer_offset;  // align_up(header_bytes, 64)
  uint64_t flatbuffer_bytes;
  uint64_t scratch_bytes;  // what opening needs besides the FlatBuffer's copy; from open_scratch_bytes()
  uint32_t segment_count;
  uint32_t digest_algorithm;  // of header_digest and flatbuffer_digest
  uint32_t signature_offset;  // reserved, zero
  uint32_t signature_bytes;   // reserved, zero
  Digest flatbuffer_digest;
  Digest header_digest;  // over the header_bytes first bytes with this field zero
};
static_assert(sizeof(Header) == 128);

// Segments follow the FlatBuffer in order, each at the next multiple of 64; the last one ends the file.
struct Segment {
  uint64_t offset;
  uint64_t bytes;
  uint32_t kind;       // SegmentKind
  uint32_t algorithm;  // DigestAlgorithm
  uint64_t reserved;   // zero
  Digest digest;
};
static_assert(sizeof(Segment) == 64);

// XXH3-128 of bytes that arrive in pieces. Holds its state by value.
class Digester {
 public:
  Digester();
  void update(std::span<const std::byte> bytes);
  Digest finish() const;

 private:
  alignas(64) std::byte state_[640];
};

Digest digest_of(std::span<const std::byte> bytes);

// Offsets of a file's parts, for the writer: sets header.flatbuffer_offset, header.header_bytes,
// header.file_bytes and every segment's offset from the sizes (flatbuffer_bytes, segment.bytes), and the
// constant fields. Fails when the sum overflows or there are too many segments.
Status lay_out(Header& header, std::span<Segment> segments);

// Sets header.header_digest; to be called last, when every other field of header and segments is final.
void seal(Header& header, std::span<const Segment> segments);

// The file's parts, checked as far as the envelope goes.
struct Envelope {
  Header header{};
  const std::byte* segment_table = nullptr;  // header.segment_count records, maybe unaligned
  std::span<const std::byte> flatbuffer;
  Segment segment(uint32_t i) const;
};

// Header and segment table of the file, not checked but for magic, version and that they lie in the file.
Result<Header> read_header(std::span<const std::byte> file);

// Checks the envelope. `head` is the file's first header_bytes bytes, or a copy of them that nobody can
// change: everything read from the header comes from there. Checks sizes, layout, header digest, zero
// padding.
Result<Envelope> read_envelope(std::span<const std::byte> file, std::span<const std::byte> head);

// Checks the segments' digests (the FlatBuffer's is checked by whoever copies it).
Status check_segments(std::span<const std::byte> file, const Envelope& envelope);

}  // namespace sinter::format

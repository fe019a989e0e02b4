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
inline constexpr uint32_t kVersion = 3;  // the only one that this build reads
// The alignment of the FlatBuffer and of every segment in the file, and of every constant in its segment.
inline constexpr uint64_t kAlignment = 64;
// A weights segment ends with at least this many bytes that no constant holds, because kernels may read past
// their operands.
inline constexpr uint64_t kSegmentPadding = 64;
inline constexpr uint32_t kMaxSegments = 65536;

enum class DigestAlgorithm : uint32_t {
  kXxh3 = 1,     // XXH3-128, canonical (big-endian) form, in the first 16 bytes; the others are zero
  kSha256 = 2,   // reserved
  kBlake2s = 3,  // reserved
  kBlake2b = 4,  // BLAKE2b-256; in signed files alone
};

enum class SegmentKind : uint32_t { kWeights = 0, kPackedWeights = 1, kDebug = 2 };

struct Digest {
  uint8_t bytes[32] = {};
  bool operator==(const Digest& o) const { return std::memcmp(bytes, o.bytes, sizeof(bytes)) == 0; }
};

// All numbers are little-endian; offsets count from the start of the file.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // sizeof(Header) + segment_count * sizeof(Segment)
  uint64_t file_bytes;
  uint64_t flatbuffer_offset;  // align_up(header_bytes + signature_bytes, 64)
  uint64_t flatbuffer_bytes;
  uint64_t scratch_bytes;  // needed to open, besides the FlatBuffer's copy; from open_scratch_bytes()
  uint32_t segment_count;
  uint32_t digest_algorithm;  // of flatbuffer_digest
  uint32_t signature_offset;  // header_bytes, or 0 if the file is not signed
  uint32_t signature_bytes;   // sizeof(Signature) or 0
  Digest flatbuffer_digest;
  // XXH3-128 over the first header_bytes bytes with this field zero and, in signed files, the first
  // kSignatureHead bytes of the signature.
  Digest header_digest;
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

enum class SignatureAlgorithm : uint32_t { kEd25519 = 1 };

// The record that follows the segment table of a signed file. The signature is over everything before it:
// header, segment table and the first kSignatureHead bytes of this record.
struct Signature {
  uint32_t algorithm;  // SignatureAlgorithm
  uint32_t reserved[7];
  uint8_t public_key[32];
  uint8_t signature[64];
};
static_assert(sizeof(Signature) == 128);
inline constexpr size_t kSignatureHead = offsetof(Signature, signature);

// Returns whether this build can compute the digest (BLAKE2b needs SINTER_SIGNATURES).
bool can_digest(DigestAlgorithm algorithm);

// The digest of bytes that arrive in pieces, by an algorithm that can_digest(). It holds its state by value.
class Digester {
 public:
  explicit Digester(DigestAlgorithm algorithm = DigestAlgorithm::kXxh3);
  void update(std::span<const std::byte> bytes);
  Digest finish();

 private:
  DigestAlgorithm algorithm_;
  alignas(64) std::byte state_[640];
};

Digest digest_of(std::span<const std::byte> bytes, DigestAlgorithm algorithm = DigestAlgorithm::kXxh3);

// Sets, for the writer, the offsets of a file's parts (header.flatbuffer_offset, header.header_bytes,
// header.file_bytes and every segment's offset) from the sizes (flatbuffer_bytes, segment.bytes), and the
// constant fields. Fails when the sum overflows or there are too many segments. A signed file gets room for
// the signature and BLAKE2b digests.
Status lay_out(Header& header, std::span<Segment> segments, bool sign = false);

// Sets header.header_digest. Every other field of header, segments and signature is final, except the
// signature proper.
void seal(Header& header, std::span<const Segment> segments, const Signature* signature = nullptr);

// Returns the number of the file's first bytes that have to be read before its parts: header, segment table,
// signature.
inline uint64_t head_bytes(const Header& h) { return uint64_t{h.header_bytes} + h.signature_bytes; }

// The parts of a file whose envelope was checked.
struct Envelope {
  Header header{};
  const std::byte* segment_table = nullptr;  // header.segment_count records, maybe unaligned
  std::span<const std::byte> flatbuffer;
  Segment segment(uint32_t i) const;
};

// Returns the header; only magic, version and that the file holds its head_bytes() are checked.
Result<Header> read_header(std::span<const std::byte> file);

// Checks that the file, whose first head_bytes() bytes these are, is signed with this key and that the
// signature covers every byte by cryptographic digests. Builds without SINTER_SIGNATURES refuse
// (kUnsupported). With an empty key, a signature is checked against the key in the file, which proves nothing
// about the file's origin.
Status check_signature(std::span<const std::byte> head, std::span<const uint8_t> public_key);

// Returns the signature record for display, or nothing if the file is not signed. Nothing is verified.
Result<Signature> read_signature(std::span<const std::byte> file);

// Checks the envelope: sizes, layout, header digest, zero padding. `head` is the file's first head_bytes()
// bytes, or a copy of them that cannot change: everything read from the header comes from there.
Result<Envelope> read_envelope(std::span<const std::byte> file, std::span<const std::byte> head);

// Checks the FlatBuffer's digest, given the copy that is read from then on.
Status check_structure(std::span<const std::byte> structure, const Envelope& envelope);
Status check_segments(std::span<const std::byte> file, const Envelope& envelope);

}  // namespace sinter::format

#include "runtime/model/format.h"

#include <bit>

#include "runtime/core/checked.h"
#include "runtime/signature/signature.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

namespace sinter::format {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read in place");
static_assert(sizeof(XXH3_state_t) <= 640 && alignof(XXH3_state_t) <= 64);
static_assert(signature::kDigestStateBytes <= 640 && signature::kDigestStateAlignment <= 64);
static_assert(sizeof(Signature::public_key) == signature::kPublicKeyBytes &&
              sizeof(Signature::signature) == signature::kSignatureBytes &&
              sizeof(Digest) == signature::kDigestBytes);

constexpr size_t kHeaderDigestOffset = offsetof(Header, header_digest);

XXH3_state_t* state_of(std::byte* bytes) { return reinterpret_cast<XXH3_state_t*>(bytes); }

template <class T>
std::span<const std::byte> bytes_of(std::span<const T> items) {
  return std::as_bytes(items);
}

// Returns the digest of a header and the bytes that follow it, with the digest field taken as zero.
Digest header_digest(std::span<const std::byte> header, std::span<const std::byte> table,
                     std::span<const std::byte> signature) {
  const Digest zero;
  Digester digester;
  digester.update(header.first(kHeaderDigestOffset));
  digester.update(bytes_of(std::span<const uint8_t>(zero.bytes)));
  digester.update(table);
  digester.update(signature);
  return digester.finish();
}

bool all_zero(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes)
    if (b != std::byte{0}) return false;
  return true;
}

}  // namespace

bool can_digest(DigestAlgorithm algorithm) {
  return algorithm == DigestAlgorithm::kXxh3 ||
         (algorithm == DigestAlgorithm::kBlake2b && signature::available());
}

Digester::Digester(DigestAlgorithm algorithm) : algorithm_(algorithm) {
  if (algorithm_ == DigestAlgorithm::kBlake2b)
    signature::digest_start(state_);
  else
    XXH3_128bits_reset(state_of(state_));
}

void Digester::update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (algorithm_ == DigestAlgorithm::kBlake2b)
    signature::digest_update(state_, bytes);
  else
    XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}

Digest Digester::finish() {
  Digest digest;
  if (algorithm_ == DigestAlgorithm::kBlake2b) {
    signature::digest_finish(state_, digest.bytes);
  } else {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_of(state_)));
    std::memcpy(digest.bytes, canonical.digest, sizeof(canonical.digest));
  }
  return digest;
}

Digest digest_of(std::span<const std::byte> bytes, DigestAlgorithm algorithm) {
  Digester digester(algorithm);
  digester.update(bytes);
  return digester.finish();
}

Status lay_out(Header& header, std::span<Segment> segments, bool sign) {
  const auto algorithm = static_cast<uint32_t>(sign ? DigestAlgorithm::kBlake2b : DigestAlgorithm::kXxh3);
  SINTER_RETURN_UNLESS(segments.size() <= kMaxSegments, invalid("%a segments are too many", segments.size()));
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.segment_count = static_cast<uint32_t>(segments.size());
  header.header_bytes = static_cast<uint32_t>(sizeof(Header) + segments.size() * sizeof(Segment));
  header.digest_algorithm = algorithm;
  header.signature_offset = sign ? header.header_bytes : 0;
  header.signature_bytes = sign ? sizeof(Signature) : 0;
  uint64_t end = align_up(head_bytes(header), kAlignment);
  header.flatbuffer_offset = end;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  SINTER_RETURN_UNLESS(header.flatbuffer_bytes < kMost, invalid("the file would be too large"));
  end += header.flatbuffer_bytes;
  for (Segment& segment : segments) {
    segment.offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    segment.algorithm = algorithm;
    segment.reserved = 0;
    SINTER_RETURN_UNLESS(segment.bytes < kMost && segment.offset < kMost,
                         invalid("the file would be too large"));
    end = segment.offset + segment.bytes;
  }
  header.file_bytes = end;
  return ok_status();
}

void seal(Header& header, std::span<const Segment> segments, const Signature* signature) {
  std::span<const std::byte> beside;
  if (signature != nullptr) beside = std::as_bytes(std::span(signature, 1)).first(kSignatureHead);
  header.header_digest =
      header_digest(std::as_bytes(std::span<const Header>(&header, 1)), bytes_of(segments), beside);
}

Segment Envelope::segment(uint32_t i) const {
  Segment segment;
  std::memcpy(&segment, segment_table + size_t{i} * sizeof(Segment), sizeof(segment));
  return segment;
}

Result<Header> read_header(std::span<const std::byte> file) {
  Header h;
  SINTER_RETURN_UNLESS(file.size() >= sizeof(kMagic) && std::memcmp(file.data(), kMagic, sizeof(kMagic)) == 0,
                       corrupt("this is not a Sinter model file"));
  SINTER_RETURN_UNLESS(file.size() >= sizeof(Header), corrupt("the file ends within its header"));
  std::memcpy(&h, file.data(), sizeof(Header));
  SINTER_RETURN_UNLESS(
      h.version == kVersion,
      unsupported(h.version < kVersion
                      ? "the file has format version %a and this build reads %b; convert the model again"
                      : "the file has format version %a and this build reads %b; update Sinter",
                  h.version, kVersion));
  SINTER_RETURN_UNLESS(h.segment_count <= kMaxSegments &&
                           h.header_bytes == sizeof(Header) + uint64_t{h.segment_count} * sizeof(Segment) &&
                           h.header_bytes <= file.size(),
                       corrupt("the header's size is wrong"));
  const bool sign = h.signature_bytes != 0;
  SINTER_RETURN_UNLESS(h.signature_offset == (sign ? h.header_bytes : 0) &&
                           h.signature_bytes == (sign ? sizeof(Signature) : 0) &&
                           head_bytes(h) <= file.size(),
                       corrupt("the signature is not where it should be"));
  return h;
}

Result<Signature> read_signature(std::span<const std::byte> file) {
  const Result<Header> header = read_header(file);
  if (!header.ok()) return header.status();
  SINTER_RETURN_UNLESS(header.value().signature_bytes != 0, corrupt("the file is not signed"));
  Signature signature;
  std::memcpy(&signature, file.data() + header.value().signature_offset, sizeof(signature));
  return signature;
}

Status check_signature(std::span<const std::byte> head, std::span<const uint8_t> public_key) {
  SINTER_RETURN_UNLESS(signature::available(), unsupported("this build of Sinter cannot check signatures"));
  const Result<Header> read = read_header(head);
  if (!read.ok()) return read.status();
  const Header& h = read.value();
  SINTER_RETURN_UNLESS(h.signature_bytes != 0,
                       corrupt("the file is not signed; only a file signed with the given key is accepted"));
  const Signature s = read_signature(head).value();
  SINTER_RETURN_UNLESS(
      public_key.empty() || (public_key.size() == sizeof(s.public_key) &&
                             std::memcmp(s.public_key, public_key.data(), sizeof(s.public_key)) == 0),
      corrupt("the file is signed with a key other than the given one"));
  SINTER_RETURN_UNLESS(s.algorithm == static_cast<uint32_t>(SignatureAlgorithm::kEd25519),
                       unsupported("unknown signature algorithm %a", s.algorithm));
  SINTER_RETURN_UNLESS(
      signature::verify(head.first(h.header_bytes + kSignatureHead), s.signature, s.public_key),
      corrupt("the signature is wrong: the file was changed after it was signed"));
  return ok_status();
}

Result<Envelope> read_envelope(std::span<const std::byte> file, std::span<const std::byte> head) {
  const Result<Header> read = read_header(head);
  if (!read.ok()) return read.status();
  Envelope e;
  e.header = read.value();
  const Header& h = e.header;
  SINTER_RETURN_UNLESS(head_bytes(h) == head.size(), corrupt("the header's size is wrong"));
  const auto table = head.subspan(sizeof(Header), h.header_bytes - sizeof(Header));
  e.segment_table = table.data();
  // Data covered by a signature must be covered by collision-resistant digests.
  const bool sign = h.signature_bytes != 0;
  const auto algorithm = static_cast<uint32_t>(sign ? DigestAlgorithm::kBlake2b : DigestAlgorithm::kXxh3);
  SINTER_RETURN_UNLESS(h.digest_algorithm == algorithm,
                       unsupported("unknown digest algorithm %a", h.digest_algorithm));
  SINTER_RETURN_UNLESS(
      header_digest(head.first(sizeof(Header)), table,
                    head.subspan(h.header_bytes, sign ? kSignatureHead : 0)) == h.header_digest,
      corrupt("the header does not match its digest"));
  if (sign) {
    const Signature s = read_signature(head).value();
    SINTER_RETURN_UNLESS(s.algorithm == static_cast<uint32_t>(SignatureAlgorithm::kEd25519),
                         unsupported("unknown signature algorithm %a", s.algorithm));
    SINTER_RETURN_UNLESS(all_zero(bytes_of(std::span<const uint32_t>(s.reserved))),
                         corrupt("padding in the file is not zero"));
  }
  SINTER_RETURN_UNLESS(h.file_bytes == file.size(),
                       corrupt("the file must have %a bytes but has %b", static_cast<int64_t>(h.file_bytes),
                               static_cast<int64_t>(file.size())));

  // Each part starts at the next multiple of 64 after the one before; the bytes between are zero.
  uint64_t end = head.size();
  const auto take = [&](uint64_t offset, uint64_t bytes) -> Status {
    SINTER_RETURN_UNLESS(offset == (end + kAlignment - 1) / kAlignment * kAlignment &&
                             offset <= file.size() && bytes <= file.size() - offset,
                         corrupt("a part of the file is not where it should be"));
    SINTER_RETURN_UNLESS(all_zero(file.subspan(static_cast<size_t>(end), static_cast<size_t>(offset - end))),
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
    SINTER_RETURN_UNLESS(s.algorithm == algorithm,
                         unsupported("unknown digest algorithm %a", s.algorithm).at(Where::kSegment, index));
    SINTER_RETURN_UNLESS(s.kind <= static_cast<uint32_t>(SegmentKind::kDebug) && s.reserved == 0,
                         corrupt("unknown kind of segment").at(Where::kSegment, index));
    const Status placed = take(s.offset, s.bytes);
    if (!placed.ok()) return placed.at(Where::kSegment, index);
  }
  SINTER_RETURN_UNLESS(end == file.size(), corrupt("the file continues after its last part"));
  return e;
}

namespace {
Status check_algorithm(const Envelope& e) {
  SINTER_RETURN_UNLESS(
      can_digest(static_cast<DigestAlgorithm>(e.header.digest_algorithm)),
      unsupported("the file is signed, and this build of Sinter cannot compute its BLAKE2b digests"));
  return ok_status();
}
}  // namespace

Status check_structure(std::span<const std::byte> structure, const Envelope& e) {
  SINTER_RETURN_IF_ERROR(check_algorithm(e));
  SINTER_RETURN_UNLESS(digest_of(structure, static_cast<DigestAlgorithm>(e.header.digest_algorithm)) ==
                           e.header.flatbuffer_digest,
                       corrupt("the model's structure does not match its digest"));
  return ok_status();
}

Status check_segments(std::span<const std::byte> file, const Envelope& e) {
  SINTER_RETURN_IF_ERROR(check_algorithm(e));
  for (uint32_t i = 0; i < e.header.segment_count; ++i) {
    const Segment s = e.segment(i);
    const auto bytes = file.subspan(static_cast<size_t>(s.offset), static_cast<size_t>(s.bytes));
    SINTER_RETURN_UNLESS(
        digest_of(bytes, static_cast<DigestAlgorithm>(s.algorithm)) == s.digest,
        corrupt("a segment does not match its digest").at(Where::kSegment, static_cast<int32_t>(i)));
  }
  return ok_status();
}

}  // namespace sinter::format

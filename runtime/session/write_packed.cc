// A model's file with packed weights in it, as stored_packings.h reads them.
#include <cstring>

#include "runtime/session/kept_constants.h"
#include "runtime/session/stored_packings.h"
#include "sinter/packed_weights.h"

namespace sinter {

using format::Segment;

namespace detail {
namespace {

// Returns false if the packing is in the file, or cannot be.
bool describe(const PackedEntry& entry, StoredPacking* record) {
  const PackedKey& key = entry.key;
  *record = {};
  if (entry.stored || !can_be_stored(entry)) return false;
  std::memcpy(record->backend, key.backend, std::strlen(key.backend));
  record->hash = entry.hash;
  record->layouts = entry.layouts;
  record->bytes = key.packing.bytes;
  record->inputs = key.packing.inputs;
  std::memcpy(record->parameters, key.packing.parameters, sizeof(record->parameters));
  std::memcpy(record->constants, key.constants, sizeof(record->constants));
  return true;
}

uint64_t records_end(uint64_t count) { return sizeof(StoredHead) + count * sizeof(StoredPacking); }

uint64_t count_missing(const PackedState& packed, uint64_t* bytes) {
  uint64_t count = 0;
  StoredPacking record;
  for (const PackedEntry& entry : packed.entries)
    if (describe(entry, &record)) ++count, *bytes += record.bytes;
  return count;
}

Status digest_piece(void* digester, std::span<const std::byte> piece) {
  static_cast<format::Digester*>(digester)->update(piece);
  return ok_status();
}

}  // namespace

bool can_be_stored(const PackedEntry& entry) {
  const size_t length = std::strlen(entry.key.backend);
  return entry.layouts != 0 && length > 0 && length < sizeof(StoredPacking::backend);
}

uint64_t segment_bytes(const PackedState& packed) {
  uint64_t bytes = 0;
  const uint64_t count = count_missing(packed, &bytes);
  if (count == 0) return 0;
  return bytes + align_up(records_end(count), format::kAlignment) + format::kSegmentPadding;
}

Status write_segment(const PackedState& packed, Put* put, void* context) {
  uint64_t bytes = 0;
  const uint64_t count = count_missing(packed, &bytes), end = records_end(count);
  uint64_t offset = align_up(end, format::kAlignment);
  StoredPacking record;
  SINTER_RETURN_IF_ERROR(put(context, object_bytes(StoredHead{count, 0})));
  for (const PackedEntry& entry : packed.entries) {
    if (!describe(entry, &record)) continue;
    record.offset = offset;
    offset += record.bytes;
    SINTER_RETURN_IF_ERROR(put(context, object_bytes(record)));
  }
  SINTER_RETURN_IF_ERROR(put(context, zeros_behind(end)));
  for (const PackedEntry& entry : packed.entries)
    if (describe(entry, &record)) SINTER_RETURN_IF_ERROR(put(context, {entry.data, entry.key.packing.bytes}));
  return put(context, zeros());
}

Status write_file(const PackedState& packed, const KeptConstants* kept, Put* put, void* context) {
  const ModelState& model = *packed.model;
  const std::span<const std::byte> file = model.file;
  const uint64_t added = segment_bytes(packed);
  if (added == 0 && kept == nullptr) return put(context, file);
  const Result<format::Header> read = format::read_header(file);
  SINTER_RETURN_IF_ERROR(read.status());
  const Result<format::Envelope> envelope =
      format::read_envelope(file, file.first(static_cast<size_t>(format::head_bytes(*read))));
  SINTER_RETURN_IF_ERROR(envelope.status());
  format::Header header = envelope->header;
  SINTER_RETURN_UNLESS(
      header.signature_bytes == 0,
      unsupported(
          "the file is signed, and its signature covers every byte; pack the unsigned file, then sign"));
  const uint32_t before = header.segment_count;
  constexpr uint32_t kMost = PackedWeights::kMostSegments;
  SINTER_RETURN_UNLESS(before < kMost,
                       unsupported("the file has %a segments already; pack it as it was converted", before));
  Segment segments[kMost] = {};
  // Segment i holds its old bytes, those of the constants that stay, or the packings.
  const auto compacted = [&](uint32_t i) {
    return kept != nullptr && segments[i].kind == static_cast<uint32_t>(format::SegmentKind::kWeights);
  };
  const auto write_part = [&](uint32_t i, Put* to, void* with) {
    if (i == before) return write_segment(packed, to, with);
    if (compacted(i)) return write_weights(*kept, i, to, with);
    const Segment old = envelope->segment(i);
    return to(with, file.subspan(static_cast<size_t>(old.offset), static_cast<size_t>(old.bytes)));
  };
  for (uint32_t i = 0; i < before; ++i) {
    segments[i] = envelope->segment(i);
    if (compacted(i)) segments[i].bytes = weights_bytes(*kept, i);
  }
  uint32_t count = before;
  if (added > 0) {
    segments[count].kind = static_cast<uint32_t>(format::SegmentKind::kPackedWeights);
    segments[count++].bytes = added;
  }
  if (kept != nullptr) SINTER_RETURN_IF_ERROR(structure_bytes(*kept, &header.flatbuffer_bytes));
  const std::span<Segment> all = std::span(segments).first(count);
  SINTER_RETURN_IF_ERROR(format::lay_out(header, all));
  for (uint32_t i = 0; i < count; ++i) {
    if (i < before && !compacted(i)) continue;
    format::Digester digester;
    SINTER_RETURN_IF_ERROR(write_part(i, digest_piece, &digester));
    segments[i].digest = digester.finish();
  }
  if (kept != nullptr) {
    format::Digester digester;
    SINTER_RETURN_IF_ERROR(write_structure(*kept, digest_piece, &digester));
    header.flatbuffer_digest = digester.finish();
  }
  format::seal(header, all);

  SINTER_RETURN_IF_ERROR(put(context, object_bytes(header)));
  SINTER_RETURN_IF_ERROR(put(context, std::as_bytes(all)));
  SINTER_RETURN_IF_ERROR(put(context, zeros_behind(header.header_bytes)));
  SINTER_RETURN_IF_ERROR(kept != nullptr ? write_structure(*kept, put, context)
                                         : put(context, envelope->flatbuffer));
  uint64_t end = header.flatbuffer_offset + header.flatbuffer_bytes;
  for (uint32_t i = 0; i < count; ++i) {
    SINTER_RETURN_IF_ERROR(put(context, zeros_behind(end)));
    SINTER_RETURN_IF_ERROR(write_part(i, put, context));
    end = segments[i].offset + segments[i].bytes;
  }
  return ok_status();
}

}  // namespace detail

bool PackedWeights::in_file(const Model& model) {
  return model.valid() && detail::stores_packings(*model.state());
}

uint32_t PackedWeights::missing() const {
  uint64_t bytes = 0;
  return static_cast<uint32_t>(detail::count_missing(*state_, &bytes));
}

Status PackedWeights::write_file(Status (*put)(void* context, std::span<const std::byte> piece),
                                 void* context) const {
  return detail::write_file(*state_, nullptr, put, context);
}

}  // namespace sinter

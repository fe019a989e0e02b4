// A model's file with packed weights in it, as stored_packings.h reads them.
#include <cstring>

#include "runtime/session/stored_packings.h"
#include "sinter/packed_weights.h"

namespace sinter {

using format::Segment;

namespace detail {
namespace {

// False: the packing is in the file, or cannot be.
bool describe(const PackedEntry& entry, StoredPacking* record) {
  const PackedKey& key = entry.key;
  const size_t length = std::strlen(key.backend);
  *record = {};
  if (entry.stored || entry.layouts == 0 || length == 0 || length >= sizeof(record->backend)) return false;
  std::memcpy(record->backend, key.backend, length);
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

// Zeros up to the next multiple of the alignment, or as many as that.
constexpr std::byte kZeros[format::kAlignment] = {};
static_assert(format::kSegmentPadding == sizeof(kZeros));
std::span<const std::byte> zeros_behind(uint64_t offset) {
  return std::span(kZeros).first(static_cast<size_t>((0 - offset) % format::kAlignment));
}

template <class T>
std::span<const std::byte> object_bytes(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace

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
  return put(context, std::span(kZeros));
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
  const std::span<const std::byte> file = state_->model->file;
  const uint64_t added = detail::segment_bytes(*state_);
  if (added == 0) return put(context, file);
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
  SINTER_RETURN_UNLESS(before < kMostSegments,
                       unsupported("the file has %a segments already; pack it as it was converted", before));
  Segment segments[kMostSegments] = {};
  for (uint32_t i = 0; i < before; ++i) segments[i] = envelope->segment(i);
  Segment& last = segments[before];
  last.kind = static_cast<uint32_t>(format::SegmentKind::kPackedWeights);
  last.bytes = added;
  const std::span<Segment> all = std::span(segments).first(before + 1);
  SINTER_RETURN_IF_ERROR(format::lay_out(header, all));
  format::Digester digester;
  const auto digest = [](void* self, std::span<const std::byte> piece) {
    static_cast<format::Digester*>(self)->update(piece);
    return ok_status();
  };
  SINTER_RETURN_IF_ERROR(detail::write_segment(*state_, digest, &digester));
  last.digest = digester.finish();
  format::seal(header, all);

  SINTER_RETURN_IF_ERROR(put(context, detail::object_bytes(header)));
  SINTER_RETURN_IF_ERROR(put(context, std::as_bytes(all)));
  SINTER_RETURN_IF_ERROR(put(context, detail::zeros_behind(header.header_bytes)));
  SINTER_RETURN_IF_ERROR(put(context, envelope->flatbuffer));
  uint64_t end = header.flatbuffer_offset + header.flatbuffer_bytes;
  for (uint32_t i = 0; i < before; ++i) {
    const Segment old = envelope->segment(i);
    SINTER_RETURN_IF_ERROR(put(context, detail::zeros_behind(end)));
    SINTER_RETURN_IF_ERROR(
        put(context, file.subspan(static_cast<size_t>(old.offset), static_cast<size_t>(old.bytes))));
    end = all[i].offset + all[i].bytes;
  }
  SINTER_RETURN_IF_ERROR(put(context, detail::zeros_behind(end)));
  return detail::write_segment(*state_, put, context);
}

}  // namespace sinter

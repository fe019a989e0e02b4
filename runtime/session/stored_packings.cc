#include "runtime/session/stored_packings.h"

#include <algorithm>
#include <cstring>

namespace sinter::detail {
namespace {

// A record or the head, which may be at any address.
template <class T>
T read(std::span<const std::byte> segment, uint64_t offset) {
  T value;
  std::memcpy(&value, segment.data() + offset, sizeof(T));
  return value;
}

uint64_t record_at(uint64_t i) { return sizeof(StoredHead) + i * sizeof(StoredPacking); }

PackedKey key_of(const StoredPacking& record) {
  PackedKey key;
  key.backend = record.backend;
  key.packing.bytes = static_cast<size_t>(record.bytes);
  key.packing.inputs = record.inputs;
  std::memcpy(key.packing.parameters, record.parameters, sizeof(record.parameters));
  std::memcpy(key.constants, record.constants, sizeof(record.constants));
  return key;
}

std::span<const std::byte> bytes_of(const ModelState& model, const format::Segment& segment) {
  return model.file.subspan(static_cast<size_t>(segment.offset), static_cast<size_t>(segment.bytes));
}

bool is_packed(const format::Segment& segment) {
  return segment.kind == static_cast<uint32_t>(format::SegmentKind::kPackedWeights);
}

Status verify_record(const StoredPacking& record, uint64_t begin, uint64_t end) {
  // A name, then at least one zero, and zeros alone.
  constexpr size_t kName = sizeof(record.backend);
  size_t length = 0;
  while (length < kName && record.backend[length] != 0) ++length;
  bool zeros = length > 0 && length < kName;
  for (size_t i = length; i < kName; ++i) zeros = zeros && record.backend[i] == 0;
  SINTER_RETURN_UNLESS(zeros && record.reserved == 0 && record.layouts != 0 && record.inputs != 0,
                       corrupt("a packing's record is damaged"));
  SINTER_RETURN_UNLESS(record.bytes != 0 && record.bytes % kBufferAlignment == 0 &&
                           record.bytes <= SIZE_MAX && record.offset % format::kAlignment == 0 &&
                           record.offset >= begin && record.offset <= end &&
                           record.bytes <= end - record.offset,
                       corrupt("a packing is not within its segment"));
  SINTER_RETURN_UNLESS(key_of(record).hash() == record.hash, corrupt("a packing's hash is wrong"));
  return ok_status();
}

// The head, and where records end and packings may end.
struct Bounds {
  uint64_t count = 0, records = 0, end = 0;
};

Status bounds_of(std::span<const std::byte> segment, Bounds* bounds) {
  SINTER_RETURN_UNLESS(segment.size() >= sizeof(StoredHead) + format::kSegmentPadding,
                       corrupt("a segment of packed weights ends within its head"));
  const auto head = read<StoredHead>(segment, 0);
  const uint64_t end = segment.size() - format::kSegmentPadding;
  SINTER_RETURN_UNLESS(head.reserved == 0 && head.count <= (end - sizeof(StoredHead)) / sizeof(StoredPacking),
                       corrupt("a segment of packed weights ends within its records"));
  *bounds = {head.count, record_at(head.count), end};
  return ok_status();
}

Status verify_segment(std::span<const std::byte> segment) {
  Bounds bounds;
  SINTER_RETURN_IF_ERROR(bounds_of(segment, &bounds));
  uint64_t last = 0;
  for (uint64_t i = 0; i < bounds.count; ++i) {
    const auto record = read<StoredPacking>(segment, record_at(i));
    SINTER_RETURN_IF_ERROR(verify_record(record, bounds.records, bounds.end));
    SINTER_RETURN_UNLESS(record.hash >= last, corrupt("the packings' records are not in order"));
    last = record.hash;
  }
  return ok_status();
}

// A mapped file can change after it was verified: what is read here is checked again.
const std::byte* find_in(std::span<const std::byte> segment, const PackedKey& key, uint64_t hash,
                         uint64_t layouts) {
  Bounds bounds;
  if (!bounds_of(segment, &bounds).ok()) return nullptr;
  uint64_t first = 0;
  for (uint64_t left = bounds.count; left > 0;) {
    const uint64_t half = left / 2;
    if (read<StoredPacking>(segment, record_at(first + half)).hash < hash)
      first += half + 1, left -= half + 1;
    else
      left = half;
  }
  for (; first < bounds.count; ++first) {
    const auto record = read<StoredPacking>(segment, record_at(first));
    if (record.hash != hash || !verify_record(record, bounds.records, bounds.end).ok()) break;
    if (record.layouts == layouts && key_of(record) == key) return segment.data() + record.offset;
  }
  return nullptr;
}

}  // namespace

bool stores_packings(const ModelState& model) {
  return std::any_of(model.segments.begin(), model.segments.end(), is_packed);
}

Status verify_stored(const ModelState& model) {
  for (size_t i = 0; i < model.segments.size(); ++i) {
    if (!is_packed(model.segments[i])) continue;
    const Status status = verify_segment(bytes_of(model, model.segments[i]));
    if (!status.ok()) return status.at(Where::kSegment, static_cast<int32_t>(i));
  }
  return ok_status();
}

const std::byte* find_stored(const ModelState& model, const PackedKey& key, const Backend& backend) {
  const uint64_t layouts = backend.packed_layouts();
  if (layouts == 0) return nullptr;
  const uint64_t hash = key.hash();
  for (const format::Segment& segment : model.segments) {
    if (!is_packed(segment)) continue;
    const std::byte* found = find_in(bytes_of(model, segment), key, hash, layouts);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace sinter::detail

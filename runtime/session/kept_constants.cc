#include "runtime/session/kept_constants.h"

#include <algorithm>
#include <cstring>

namespace sinter::detail {
namespace {

constexpr std::byte kZeros[format::kAlignment] = {};
static_assert(format::kSegmentPadding == sizeof(kZeros));

const fb::Constant& constant_at(const ModelState& model, uint32_t i) {
  return *model.root->constants()->Get(i);
}
uint64_t old_end(const fb::Constant& c) { return c.offset() + static_cast<uint64_t>(constant_bytes(c)); }

// The parts that are written in front of the old structure, at these offsets:
//
//   root offset, file identifier, the root's vtable, root table, the constants' vtable, the list of
//   constants, their tables, an empty list of dims
class Front {
 public:
  explicit Front(const KeptConstants& kept)
      : kept_(kept),
        old_(kept.model->flatbuffer),
        old_root_(reinterpret_cast<const std::byte*>(kept.model->root)),
        count_(length(kept.model->root->constants())) {
    std::memcpy(&back_, old_root_, sizeof(back_));
    fields_ = (read<uint16_t>(old_root_ - back_) - 4u) / 2;
    root_ = align_up(kVtable + 4 + 2 * fields_, 4);
    vtable_ = root_ + 4 + 4 * fields_;
    list_ = vtable_ + sizeof(kConstantVtable);
    tables_ = align_up(end_of_list(), 8);
    no_dims_ = table_at(count_);
    bytes_ = align_up(no_dims_ + 4, format::kAlignment);
  }
  uint64_t bytes() const { return bytes_; }
  bool fits() const { return fields_ <= kMostFields; }

  Status write(Put* put, void* context) const {
    std::byte head[kVtable + 4 + 6 * kMostFields + 64] = {};
    const auto set = [&](uint64_t at, auto value) { std::memcpy(head + at, &value, sizeof(value)); };
    set(0, static_cast<uint32_t>(root_));
    std::memcpy(head + 4, fb::ModelIdentifier(), 4);
    set(kVtable, static_cast<uint16_t>(4 + 2 * fields_));
    set(kVtable + 2, static_cast<uint16_t>(4 + 4 * fields_));
    set(root_, static_cast<int32_t>(root_ - kVtable));
    for (uint64_t f = 0; f < fields_; ++f) {
      const auto old_at = read<uint16_t>(old_root_ - back_ + 4 + 2 * f);
      if (old_at == 0) continue;
      const uint64_t at = root_ + 4 + 4 * f;
      set(kVtable + 4 + 2 * f, static_cast<uint16_t>(4 + 4 * f));
      const std::byte* reference = old_root_ + old_at;
      set(at,
          static_cast<uint32_t>(
              (4 + 2 * f == fb::Model::VT_CONSTANTS ? list_ : moved(reference + read<uint32_t>(reference))) -
              at));
    }
    std::memcpy(head + vtable_, kConstantVtable, sizeof(kConstantVtable));
    set(list_, count_);
    SINTER_RETURN_IF_ERROR(put(context, std::span(head).first(static_cast<size_t>(list_ + 4))));
    for (uint32_t i = 0; i < count_; ++i) {
      const auto reference = static_cast<uint32_t>(table_at(i) - (list_ + 4 + 4 * uint64_t{i}));
      SINTER_RETURN_IF_ERROR(put(context, object_bytes(reference)));
    }
    SINTER_RETURN_IF_ERROR(put(context, zeros().first(static_cast<size_t>(tables_ - end_of_list()))));
    for (uint32_t i = 0; i < count_; ++i) SINTER_RETURN_IF_ERROR(put(context, object_bytes(table(i))));
    return put(context, zeros().first(static_cast<size_t>(bytes_ - no_dims_)));
  }

 private:
  static constexpr uint64_t kVtable = 8;       // where the root's vtable is
  static constexpr uint64_t kMostFields = 16;  // of the root
  struct Table {
    int32_t vtable;
    uint32_t dims;
    uint64_t offset;
    uint32_t segment;
    uint8_t dtype;
    uint8_t zeros[3];
  };
  static_assert(sizeof(Table) == 24);
  // The size of the vtable, that of a table, and the offsets of the fields, by id.
  static constexpr uint16_t kConstantVtable[] = {12,
                                                 sizeof(Table),
                                                 offsetof(Table, dtype),
                                                 offsetof(Table, dims),
                                                 offsetof(Table, segment),
                                                 offsetof(Table, offset)};

  template <class T>
  static T read(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint64_t moved(const std::byte* old) const { return bytes_ + static_cast<uint64_t>(old - old_); }
  uint64_t end_of_list() const { return list_ + 4 + 4 * uint64_t{count_}; }
  uint64_t table_at(uint32_t i) const { return tables_ + i * sizeof(Table); }
  Table table(uint32_t i) const {
    const fb::Constant& c = constant_at(*kept_.model, i);
    const bool left_out = kept_.places[i] == KeptConstants::kNoPlace;
    const uint64_t at = table_at(i);
    // An absent list and an empty one mean the same.
    const uint64_t dims =
        c.dims() != nullptr ? moved(reinterpret_cast<const std::byte*>(c.dims())) : no_dims_;
    Table table = {};
    table.vtable = static_cast<int32_t>(at - vtable_);
    table.dims = static_cast<uint32_t>(dims - (at + offsetof(Table, dims)));
    table.offset = left_out ? 0 : kept_.places[i];
    table.segment = left_out ? kLeftOut : c.segment();
    table.dtype = c.dtype();
    return table;
  }

  const KeptConstants& kept_;
  const std::byte* old_;
  const std::byte* old_root_;
  int32_t back_ = 0;  // from the old root to its vtable
  uint32_t count_;
  uint64_t fields_ = 0, root_ = 0, vtable_ = 0, list_ = 0, tables_ = 0, no_dims_ = 0, bytes_ = 0;
};

}  // namespace

std::span<const std::byte> zeros() { return kZeros; }

void place_kept(const ModelState& model, std::span<const uint32_t> order, std::span<uint64_t> places) {
  uint32_t segment = kLeftOut;
  uint64_t end = 0, removed = 0;  // of what stays in the segment so far; bytes that do not stay before it
  for (const uint32_t i : order) {
    const fb::Constant& c = constant_at(model, i);
    if (c.segment() != segment) segment = c.segment(), end = removed = 0;
    // Constants can share bytes.
    const uint64_t next = align_up(end, format::kAlignment);
    if (c.offset() > next) removed += c.offset() - next;
    places[i] = c.offset() - removed;
    end = std::max(end, old_end(c));
  }
}

Status structure_bytes(const KeptConstants& kept, uint64_t* bytes) {
  const Front front(kept);
  *bytes = front.bytes() + kept.model->flatbuffer_bytes;
  SINTER_RETURN_UNLESS(front.fits() && *bytes < (uint64_t{1} << 31) - 1,
                       unsupported("the model's structure is too large to leave constants out"));
  return ok_status();
}

Status write_structure(const KeptConstants& kept, Put* put, void* context) {
  SINTER_RETURN_IF_ERROR(Front(kept).write(put, context));
  return put(context, {kept.model->flatbuffer, static_cast<size_t>(kept.model->flatbuffer_bytes)});
}

uint64_t weights_bytes(const KeptConstants& kept, uint32_t segment) {
  uint64_t end = 0;
  for (const uint32_t i : kept.order) {
    const fb::Constant& c = constant_at(*kept.model, i);
    if (c.segment() == segment)
      end = std::max(end, kept.places[i] + static_cast<uint64_t>(constant_bytes(c)));
  }
  return align_up(end, format::kAlignment) + format::kSegmentPadding;
}

Status write_weights(const KeptConstants& kept, uint32_t segment, Put* put, void* context) {
  uint64_t at = 0;
  for (const uint32_t i : kept.order) {
    const fb::Constant& c = constant_at(*kept.model, i);
    const uint64_t begin = kept.places[i], end = begin + static_cast<uint64_t>(constant_bytes(c));
    if (c.segment() != segment || end <= at) continue;
    if (begin > at) SINTER_RETURN_IF_ERROR(put(context, zeros_behind(at)));
    at = std::max(at, begin);
    const std::byte* data = constant_data(*kept.model, c) + (at - begin);
    SINTER_RETURN_IF_ERROR(put(context, {data, static_cast<size_t>(end - at)}));
    at = end;
  }
  SINTER_RETURN_IF_ERROR(put(context, zeros_behind(at)));
  return put(context, zeros());
}

}  // namespace sinter::detail

// Op, the facts of its row, and one attribute struct per op, all generated from schemas/ops.def.
//
//   const ConvAttrs& a = call.attrs<ConvAttrs>();   a.strides[0], a.group, a.act_min
//
// In a file the attributes are three lists (AttrLists) in the row's order: of int64, of float64, of bytes. An
// attribute that is a list, text or bytes is preceded (in the int64 list) by its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>

#include "runtime/core/status.h"

struct sinter_custom_op;  // sinter/custom_op.h

namespace sinter {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr int kMaxAttrList = 24;

// An attribute that is a list of at most kMaxAttrList numbers, held by value.
template <class T>
struct AttrList {
  int32_t count = 0;
  T items[kMaxAttrList] = {};

  AttrList() = default;
  AttrList(std::initializer_list<T> list) : AttrList(std::span<const T>(list.begin(), list.size())) {}
  // The caller checks the length: items beyond the limit are dropped, and `count` is then above it.
  AttrList(std::span<const T> list) {  // NOLINT(google-explicit-constructor)
    for (const T& item : list)
      if (count < kMaxAttrList) items[count++] = item;
  }
  int32_t size() const { return count; }
  bool empty() const { return count == 0; }
  T& operator[](int i) { return items[i]; }
  const T& operator[](int i) const { return items[i]; }
  const T* begin() const { return items; }
  const T* end() const { return items + count; }
  std::span<const T> span() const { return {items, static_cast<size_t>(count)}; }
  bool push(T item) {
    if (count >= kMaxAttrList) return false;
    items[count++] = item;
    return true;
  }
  bool operator==(const AttrList& o) const {
    if (count != o.count) return false;
    for (int i = 0; i < count; ++i)
      if (!(items[i] == o.items[i])) return false;
    return true;
  }
};
using IntList = AttrList<int64_t>;
using FloatList = AttrList<double>;

// Text or bytes of an attribute, in the memory of their owner: a file's are in the model's FlatBuffer. Text
// is not terminated, holds no zero byte, and is UTF-8, which is not verified.
template <class T>
struct AttrView {
  const T* data = nullptr;
  uint32_t size = 0;

  std::span<const T> span() const { return {data, size}; }
  bool operator==(const AttrView& o) const {
    return size == o.size && (size == 0 || std::memcmp(data, o.data, size) == 0);
  }
};
using AttrText = AttrView<char>;
using AttrBytes = AttrView<std::byte>;

// The attributes of an op in a file.
struct AttrLists {
  std::span<const int64_t> ints;
  std::span<const double> floats;
  std::span<const std::byte> bytes;
};

enum class Op : uint16_t {
#define SINTER_OP(name, id, ...) k##name = id,
#include "schemas/ops.def"
#undef SINTER_OP
};

inline constexpr int kOpCount = 0
#define SINTER_OP(name, ...) +1
#include "schemas/ops.def"
#undef SINTER_OP
    ;

// kPixel: operand 0 may be evenly spaced (TensorView::evenly_spaced), the others are dense.
enum class Strides : uint8_t { kAny, kDense, kPixel };

// Bits of OpInfo::traits.
enum Trait : uint32_t {
  kPlain = 0,
  kElementwise = 1,
  kInPlace = 2,
  kMovement = 4,
  kControl = 8,
  kAccumulates = 16,
  kChannelsLast = 32,
  kFloat16Suffices = 64,
  kInPlaceFirst = 128,
  kInPlaceState = 256,
};

// The names by which the column `traits` of ops.def lists the traits.
namespace trait_names {
inline constexpr uint32_t Plain = kPlain, Elementwise = kElementwise, InPlace = kInPlace,
                          Movement = kMovement, Control = kControl, Accumulates = kAccumulates,
                          ChannelsLast = kChannelsLast, Float16 = kFloat16Suffices,
                          InPlaceFirst = kInPlaceFirst, InPlaceState = kInPlaceState;
}  // namespace trait_names

// A row of ops.def. max_inputs / max_outputs of -1 mean any number.
struct OpInfo {
  Op op;
  const char* name;
  uint16_t version;
  int16_t min_inputs, max_inputs, min_outputs, max_outputs;
  Strides in_strides, out_strides;
  uint32_t traits;
};

// Returns the row of an op, or null if there is none. Index: position in ops.def, 0 .. kOpCount - 1, or -1.
const OpInfo* op_info(Op op);
int op_index(Op op);
const OpInfo& op_info_at(int index);
const char* op_name(Op op);

// The attribute structs. `...`: the version of the row that added the attribute.
#define SINTER_ATTRS(...) __VA_ARGS__
#define SINTER_INT(name, default_value, ...) int64_t name = default_value;
#define SINTER_FLOAT(name, default_value, ...) double name = default_value;
#define SINTER_INTS(name, ...) IntList name = {};
#define SINTER_FLOATS(name, ...) FloatList name = {};
#define SINTER_TEXT(name, ...) AttrText name = {};
#define SINTER_BYTES(name, ...) AttrBytes name = {};
// A pointer is in no file: the code that decodes the attributes sets it.
#define SINTER_POINTER(name, Type) const Type* name = nullptr;
#define SINTER_OP(name, id, version, mini, maxi, mino, maxo, ins, outs, traits, work, elements, integers, \
                  attributes)                                                                             \
  struct name##Attrs {                                                                                    \
    static constexpr Op kOp = Op::k##name;                                                                \
    attributes bool operator==(const name##Attrs&) const = default;                                       \
  };
#include "schemas/ops.def"
#undef SINTER_OP
#undef SINTER_INT
#undef SINTER_FLOAT
#undef SINTER_INTS
#undef SINTER_FLOATS
#undef SINTER_TEXT
#undef SINTER_BYTES
#undef SINTER_POINTER

// Calls visitor(name, attribute, since), or visitor(name, attribute) if it takes no version.
template <class Visitor, class T>
void visit_attr(Visitor& visitor, const char* name, T& attribute, int since = 1) {
  if constexpr (std::is_invocable_v<Visitor&, const char*, T&, int>)
    visitor(name, attribute, since);
  else
    visitor(name, attribute);
}

// visit_attrs(attrs, visitor) calls visit_attr for each attribute in order.
#define SINTER_INT(name, ...) SINTER_VISIT(name, __VA_ARGS__)
#define SINTER_FLOAT(name, ...) SINTER_VISIT(name, __VA_ARGS__)
// Numbers have a default in addition.
#define SINTER_VISIT(name, default_value, ...) visit_attr(visitor, #name, a.name __VA_OPT__(, ) __VA_ARGS__);
#define SINTER_INTS(name, ...) visit_attr(visitor, #name, a.name __VA_OPT__(, ) __VA_ARGS__);
#define SINTER_FLOATS(name, ...) SINTER_INTS(name __VA_OPT__(, ) __VA_ARGS__)
#define SINTER_TEXT(name, ...) SINTER_INTS(name __VA_OPT__(, ) __VA_ARGS__)
#define SINTER_BYTES(name, ...) SINTER_INTS(name __VA_OPT__(, ) __VA_ARGS__)
#define SINTER_POINTER(name, Type)
#define SINTER_OP(name, id, version, mini, maxi, mino, maxo, ins, outs, traits, work, elements, integers, \
                  attributes)                                                                             \
  template <class Visitor>                                                                                \
  void visit_attrs([[maybe_unused]] name##Attrs& a, [[maybe_unused]] Visitor&& visitor) {                 \
    attributes                                                                                            \
  }                                                                                                       \
  template <class Visitor>                                                                                \
  void visit_attrs([[maybe_unused]] const name##Attrs& a, [[maybe_unused]] Visitor&& visitor) {           \
    attributes                                                                                            \
  }
#include "schemas/ops.def"
#undef SINTER_OP
#undef SINTER_VISIT
#undef SINTER_INT
#undef SINTER_FLOAT
#undef SINTER_INTS
#undef SINTER_FLOATS
#undef SINTER_TEXT
#undef SINTER_BYTES
#undef SINTER_POINTER
#undef SINTER_ATTRS

// Returns sizeof an op's attribute struct; 0 for an unknown op.
size_t attrs_bytes(Op op);
// Builds the op's attribute struct in `storage` (attrs_bytes(op) bytes, aligned to 8) from the lists of a
// file that was written for this version of the op's row: attributes that are newer have their defaults.
// Fails (kCorrupt) if a list is too short, too long, a length is out of range, or text holds a zero byte.
// Views point into `lists`.
Status decode_attrs(Op op, uint16_t version, const AttrLists& lists, void* storage);

}  // namespace sinter

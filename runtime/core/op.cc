#include "runtime/core/op.h"

#include <cstddef>
#include <new>
#include <type_traits>

namespace sinter {
namespace {

constexpr Strides kStridesAny = Strides::kAny;
constexpr Strides kStridesDense = Strides::kDense, kStridesPixel = Strides::kPixel;
using namespace trait_names;

constexpr OpInfo kRows[] = {
#define SINTER_OP(name, id, version, mini, maxi, mino, maxo, ins, outs, traits, work, elements, integers, \
                  attributes)                                                                             \
  {Op::k##name, #name, version, mini, maxi, mino, maxo, kStrides##ins, kStrides##outs, traits},
#include "schemas/ops.def"
#undef SINTER_OP
};

// Integers that a row was given after files of it had been written.
constexpr size_t appended_ints(Op op) { return op == Op::kAttention ? 1 : 0; }

// Reads a file's two lists in the row's order.
struct Decoder {
  std::span<const int64_t> ints;
  std::span<const double> floats;
  size_t lacking = 0;  // integers at the end that the list may lack: they keep their defaults
  size_t next_int = 0, next_float = 0;
  bool good = true;

  template <class T>
  const std::span<const T>& numbers() const {
    if constexpr (std::is_same_v<T, double>)
      return floats;
    else
      return ints;
  }
  int64_t take_int() {
    if (next_int >= ints.size()) return good = false, 0;
    return ints[next_int++];
  }
  double take_float() {
    if (next_float >= floats.size()) return good = false, 0.0;
    return floats[next_float++];
  }
  void operator()(const char*, int64_t& v) {
    if (next_int == ints.size() && lacking > 0)
      --lacking;
    else
      v = take_int();
  }
  void operator()(const char*, double& v) { v = take_float(); }
  template <class T>
  void operator()(const char*, AttrList<T>& list) {
    const int64_t n = take_int();
    list.count = 0;
    const std::span<const T>& from = numbers<T>();
    size_t& next = std::is_same_v<T, double> ? next_float : next_int;
    if (!good || n < 0 || n > kMaxAttrList || static_cast<size_t>(n) > from.size() - next) {
      good = false;
      return;
    }
    for (int64_t i = 0; i < n; ++i) list.items[i] = from[next + static_cast<size_t>(i)];
    list.count = static_cast<int32_t>(n);
    next += static_cast<size_t>(n);
  }
};

}  // namespace

int op_index(Op op) {
  int lo = 0, hi = kOpCount;
  while (lo < hi) {  // rows are in order of id
    const int mid = (lo + hi) / 2;
    if (kRows[mid].op < op)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < kOpCount && kRows[lo].op == op ? lo : -1;
}

const OpInfo& op_info_at(int index) { return kRows[index]; }

const OpInfo* op_info(Op op) {
  const int i = op_index(op);
  return i < 0 ? nullptr : &kRows[i];
}

const char* op_name(Op op) {
  const OpInfo* info = op_info(op);
  return info ? info->name : "?";
}

size_t attrs_bytes(Op op) {
  switch (op) {
#define SINTER_OP(name, ...) \
  case Op::k##name:          \
    return sizeof(name##Attrs);
#include "schemas/ops.def"
#undef SINTER_OP
  }
  return 0;
}

Status decode_attrs(Op op, std::span<const int64_t> ints, std::span<const double> floats, void* storage) {
  Decoder decoder{ints, floats, appended_ints(op)};
  switch (op) {
#define SINTER_OP(name, ...)                          \
  case Op::k##name:                                   \
    visit_attrs(*new (storage) name##Attrs, decoder); \
    break;
#include "schemas/ops.def"
#undef SINTER_OP
    default:
      return corrupt("operation number %a is unknown to this build", static_cast<int64_t>(op));
  }
  SINTER_CHECK(decoder.good && decoder.next_int == ints.size() && decoder.next_float == floats.size(),
               corrupt("the attribute lists do not fit the operation"));
  return ok_status();
}

}  // namespace sinter

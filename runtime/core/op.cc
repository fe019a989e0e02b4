#include "runtime/core/op.h"

#include <cstddef>
#include <new>

#include "runtime/core/attr_reader.h"
#include "runtime/core/built.h"

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

Status op_not_built(Op op) {
  return unsupported("this program is built without operation %s", name_of(op_name(op)));
}

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
#define SINTER_OP(name, ...)                       \
  case Op::k##name: {                              \
    constexpr bool kBuilt = is_built(Op::k##name); \
    return kBuilt ? sizeof(name##Attrs) : 0;       \
  }
#include "schemas/ops.def"
#undef SINTER_OP
  }
  return 0;
}

Status decode_attrs(Op op, uint16_t version, const AttrLists& lists, void* storage) {
  AttrReader reader(version, lists);
  switch (op) {
#define SINTER_OP(name, ...)                         \
  case Op::k##name: {                                \
    constexpr bool kBuilt = is_built(Op::k##name);   \
    if (!kBuilt) return op_not_built(op);            \
    visit_attrs(*new (storage) name##Attrs, reader); \
    break;                                           \
  }
#include "schemas/ops.def"
#undef SINTER_OP
    default:
      return corrupt("operation number %a is unknown to this build", static_cast<int64_t>(op));
  }
  return reader.finish();
}

}  // namespace sinter

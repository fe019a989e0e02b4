#include "platforms/cuda/call_digest.h"

namespace sinter::cuda {
namespace {

struct AttributeDigest {
  CallDigest& digest;
};

template <class T>
void visit_attr(AttributeDigest& to, const char*, const T& value, int = 1) requires std::is_arithmetic_v<T> {
  to.digest.add(&value, sizeof(value));
}
template <class T>
void visit_attr(AttributeDigest& to, const char*, const AttrList<T>& list, int = 1) {
  to.digest.add(&list.count, sizeof(list.count));
  to.digest.add(list.items, static_cast<size_t>(list.count) * sizeof(T));
}
template <class T>
void visit_attr(AttributeDigest& to, const char*, const AttrView<T>& view, int = 1) {
  to.digest.add(&view.size, sizeof(view.size));
  to.digest.add(view.data, view.size);
}

void add_attributes(CallDigest& digest, const OpCall& call) {
  AttributeDigest visitor{digest};
  switch (call.op) {
#define SINTER_CUDA(name, family)                    \
  case Op::k##name:                                  \
    visit_attrs(call.attrs<name##Attrs>(), visitor); \
    break;
#include "platforms/cuda/operators.def"
#undef SINTER_CUDA
    default:
      break;
  }
}

}  // namespace

CallDigest::CallDigest(const OpCall& call) {
  add(&call.op, sizeof(call.op));
  add_attributes(*this, call);
  for (const TensorView& v : call.inputs) add(v);
  for (const TensorView& v : call.outputs) add(v);
}

void CallDigest::add(const void* data, size_t bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  const auto* at = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) {
    low_ = (low_ ^ at[i]) * kPrime;
    high_ = (high_ ^ at[i]) * kPrime;
    high_ ^= high_ >> 29;
  }
}

void CallDigest::add(const TensorView& v) {
  add(&v.dtype, sizeof(v.dtype));
  add(&v.rank, sizeof(v.rank));
  add(v.dims, v.rank * sizeof(v.dims[0]));
  add(v.strides, v.rank * sizeof(v.strides[0]));
  add(&v.constant, sizeof(v.constant));
}

}  // namespace sinter::cuda

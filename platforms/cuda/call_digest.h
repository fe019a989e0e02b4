// A digest of everything that the packed constants of a call depend on besides the constants themselves: the
// operation, its attributes, and its operands' types, dims and strides.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::cuda {

// The digest has 128 bits: two FNV-1a hashes with different seeds. Collisions among the calls of a model are
// not expected.
class CallDigest {
 public:
  explicit CallDigest(const OpCall& call);
  int64_t low() const { return static_cast<int64_t>(low_); }
  int64_t high() const { return static_cast<int64_t>(high_); }

  void add(const void* data, size_t bytes);

 private:
  void add(const TensorView& view);

  uint64_t low_ = 0xcbf29ce484222325, high_ = 0x6c62272e07bb0142;
};

}  // namespace sinter::cuda

// Sums of integers that only a Cast to float32 reads, as dynamically quantized models have them.
#pragma once

#include "converter/passes/pattern.h"

namespace sinter::convert {

struct CastSum {
  int cast = -1;
  ValueId sum = kAbsent;  // of integers
  int product = -1;       // the node that makes it
  int turn = -1;          // the Transpose between it and the Cast, as behind a convolution; -1: none
};

// Calls convert(sum) for each of them; returns the count of changes.
template <class Convert>
int sweep_cast_sums(Editor& e, Convert convert) {
  Capture sum, turned;
  const Pattern read_once = any_of(once(turned(op<TransposeAttrs>(once(sum)))), once(sum));
  const Pattern cast = op<CastAttrs>(read_once);
  return e.sweep([&](int n) {
    cast.match(e, e.result(n), [&] {
      const int product = e.producer(sum);
      if (product < 0 || e.value(e.result(n)).dtype != DType::kFloat32 || !is_integer(e.value(sum).dtype))
        return false;
      convert(CastSum{n, sum, product, e.producer(turned)});
      return true;
    });
  });
}

// Makes the Cast this operation, whose result is the sum in float32, and enters that into the ledger.
inline void give_float_sum(Editor& e, const CastSum& s, OpAttrs attrs, std::vector<ValueId> inputs) {
  const int n = s.cast;
  e.graph().decide(e.value(e.node(n).inputs[0]), e.node(s.product), DType::kFloat32, TypeRule::kIntExact,
                   TypeEffect::kWidened,
                   "sums of products of 8 bits, which only a Cast to float32 reads, are computed in float32: "
                   "exactly up to 2^24");
  if (s.turn < 0) return e.replace(n, std::move(attrs), std::move(inputs));
  const ValueId made = e.insert(n, std::move(attrs), std::move(inputs));
  if (made == kAbsent) return;
  e.graph().value(made).bounded_dims = e.value(s.sum).bounded_dims;
  e.replace(n, e.node(s.turn).attrs, {made});
}

}  // namespace sinter::convert

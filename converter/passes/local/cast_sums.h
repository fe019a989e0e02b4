// Sums of integers that only a Cast to float32 reads.
#pragma once

#include <optional>

#include "converter/passes/editor.h"

namespace sinter::convert {

struct CastSum {
  ValueId sum = kAbsent;  // of integers
  int product = -1;       // the node that makes it
  int turn = -1;          // the Transpose between it and the Cast, as behind a convolution; -1: none
};
// That of node n; nullopt: it is something else.
inline std::optional<CastSum> cast_sum(Editor& e, int n) {
  if (e.node(n).as<CastAttrs>() == nullptr || e.value(e.node(n).outputs[0]).dtype != DType::kFloat32)
    return std::nullopt;
  CastSum s{e.node(n).inputs[0]};
  s.turn = e.made_by<TransposeAttrs>(s.sum);
  if (s.turn >= 0 && !e.single_read(s.sum)) return std::nullopt;
  if (s.turn >= 0) s.sum = e.node(s.turn).inputs[0];
  s.product = e.producer(s.sum);
  const bool found = s.product >= 0 && e.single_read(s.sum) && is_integer(e.value(s.sum).dtype);
  return found ? std::optional(s) : std::nullopt;
}

// Enters into the ledger that the sum which the Cast n reads is computed in float32.
inline void enter_float_sum(Editor& e, int n, const Node& product) {
  e.graph().decide(e.value(e.node(n).inputs[0]), product, DType::kFloat32, TypeRule::kIntExact,
                   TypeEffect::kWidened,
                   "sums of products of 8 bits, which only a Cast to float32 reads, are computed in float32: "
                   "exactly up to 2^24");
}

}  // namespace sinter::convert

// Sums of integers that only a Cast to float32 reads, as dynamically quantized models have them.
#pragma once

#include "converter/ir/integer_range.h"
#include "converter/passes/pattern.h"

namespace sinter::convert {

constexpr int64_t kExactInFloat = int64_t{1} << 24;

struct CastSum {
  int cast = -1;
  ValueId sum = kAbsent;   // of integers
  int product = -1;        // the node that makes it
  int turn = -1;           // the Transpose or View between it and the Cast, as behind a convolution; -1: none
  ValueId bias = kAbsent;  // what is added to the sum before the Cast; kAbsent: nothing
};

inline bool is_product(const Node& node) {
  return node.as<ConvAttrs>() != nullptr || node.as<DepthwiseConvAttrs>() != nullptr ||
         node.as<FullyConnectedAttrs>() != nullptr || node.as<MatMulAttrs>() != nullptr;
}

// Whether float32 holds every one of these integers: they are few, or were float32 before a Cast.
inline bool float_holds(Editor& e, ValueId id) {
  const auto range = integer_range(e.graph(), id);
  if (range && range->low >= -kExactInFloat && range->high <= kExactInFloat) return true;
  int n = e.producer(id);
  while (n >= 0 && (e.node(n).as<ViewAttrs>() != nullptr || e.node(n).as<TransposeAttrs>() != nullptr))
    n = e.producer(e.node(n).inputs[0]);
  return n >= 0 && e.node(n).as<CastAttrs>() != nullptr &&
         e.value(e.node(n).inputs[0]).dtype == DType::kFloat32;
}

// Calls convert(sum) for each of them; returns the count of changes.
template <class Convert>
int sweep_cast_sums(Editor& e, Convert convert) {
  Capture sum, turned, bias;
  const auto read_once = [&] {
    return any_of(once(turned(any_of(op<TransposeAttrs>(once(sum)), op<ViewAttrs>(once(sum))))), once(sum));
  };
  const Pattern cast =
      op<CastAttrs>(any_of(once(commuted<AddAttrs>(read_once(), bias)), Pattern(read_once())));
  return e.sweep([&](int n) {
    cast.match(e, e.result(n), [&] {
      const int product = e.producer(sum);
      if (product < 0 || !is_product(e.node(product)) || e.value(e.result(n)).dtype != DType::kFloat32 ||
          !is_integer(e.value(sum).dtype) || (bias != kAbsent && !float_holds(e, bias)))
        return false;
      convert(CastSum{n, sum, product, e.producer(turned), bias});
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
  if (s.turn < 0 && s.bias == kAbsent) return e.replace(n, std::move(attrs), std::move(inputs));
  const auto insert_like = [&](ValueId like, OpAttrs attrs, std::vector<ValueId> inputs) {
    const ValueId made = e.insert(n, std::move(attrs), std::move(inputs));
    if (made != kAbsent) e.graph().value(made).bounded_dims = e.value(like).bounded_dims;
    return made;
  };
  ValueId made = insert_like(s.sum, std::move(attrs), std::move(inputs));
  if (made == kAbsent) return;
  if (s.bias == kAbsent) return e.replace(n, e.node(s.turn).attrs, {made});
  if (s.turn >= 0) made = insert_like(e.result(s.turn), e.node(s.turn).attrs, {made});
  const ValueId bias = insert_like(s.bias, CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {s.bias});
  if (made != kAbsent && bias != kAbsent) e.replace(n, AddAttrs{}, {made, bias});
}

}  // namespace sinter::convert

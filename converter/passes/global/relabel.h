// Operations rewritten for values that are held with the channels at the other end.
#pragma once

#include <optional>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Frame is an order in which values of any rank may be held beside their own: [N, C, spatial...] as [N,
// spatial..., C], or back.
struct Frame {
  bool to_last = true;

  IntList perm(int rank) const;
  IntList inverse(int rank) const;
  // Returns where axis `a` is in this order.
  int64_t axis(int rank, int64_t a) const;
  template <class T>
  AttrList<T> list(const AttrList<T>& own) const {
    AttrList<T> out = own;
    const IntList p = perm(own.size());
    for (int i = 0; i < own.size(); ++i) out[i] = own[static_cast<int>(p[i])];
    return out;
  }
  Dims dims(const Dims& own) const;
};

struct Relabelled {
  OpAttrs attrs;
  std::vector<bool> tied;  // operands that take the order, the others stay as they are
  bool output = true;      // the outputs take it too
};

// Returns the operation on operands held in the frame's order; nullopt where it needs its order.
std::optional<Relabelled> relabel(const Graph& graph, const Node& node, const Frame& frame);

// Shuffle is View, Transpose, View, where the first splits axes and the last joins them (channel shuffle,
// depth to space): dims and permutation of the same three on values held in the frame's order.
struct Shuffle {
  IntList split, perm, joined;
};
std::optional<Shuffle> relabel_shuffle(const Dims& in, const Dims& split, const IntList& perm,
                                       const Dims& out, const Frame& frame);

}  // namespace sinter::convert

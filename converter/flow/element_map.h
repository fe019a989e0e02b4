// The origin of the elements of a result. One function gives, for the operations that move elements or work
// on them one by one, the element of an operand that each element of the result reads; ReverseSequence and
// Resize have no map. Places are those in row-major order.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// AxisSource tells which index along one axis of an operand an element of the result reads.
struct AxisSource {
  static constexpr int kFixed = -1;  // entry 0, for all elements
  static constexpr int kGiven = -2;  // the index that an element of operand 1 names, as Gather's indices do
  static constexpr int kOther = -3;  // another function of the element's place

  int axis = kFixed;  // the axis of the result along which the index grows
  int64_t first = 0,
          step = 1;  // index i of the result reads first + i * step; step 0: the operand has one, broadcast
  bool repeats = false;   // modulo the operand's length
  int64_t component = 0;  // with kGiven: the number's place in the tuple of GatherNd's indices

  // Returns the operand's entry for entry i along `axis`. Where the operand has no such entry, Concat reads
  // another operand and Pad the fill.
  int64_t entry(int64_t i, int64_t length) const {
    const int64_t at = first + i * step;
    return repeats && length > 0 ? at % length : at;
  }
  // Returns whether index i of the result reads index i of the operand.
  bool is_in_place() const { return axis >= 0 && first == 0 && step == 1 && !repeats; }
};

// ElementMap is where all elements of a result come from in one operand.
struct ElementMap {
  bool is_flat = false;          // the result has the operand's elements in the same order, under other dims
  std::vector<AxisSource> axes;  // one for each axis of the operand; empty where it is flat

  // Returns the operand's axis that follows an axis of the result (or has the source kGiven or kOther); -1:
  // none does.
  int following(int axis) const;
};

// OperandDims are the dims of an operation's operands; null for absent ones.
using OperandDims = std::vector<const Dims*>;
OperandDims operand_dims(const Graph& graph, const Node& node);

// Returns the map of one operand; nullopt: the operation has none, or the operand is absent.
std::optional<ElementMap> element_map(const OpAttrs& attrs, const OperandDims& operands, const Dims& result,
                                      size_t operand);
std::optional<ElementMap> element_map(const Graph& graph, const Node& node, size_t operand);

// ElementSources answers for single elements of an operation's output 0, as long as the operands' dims exist.
class ElementSources {
 public:
  struct Source {
    size_t operand = 0;
    int64_t place = 0;
  };
  // Returns the number that operand 1 has at a place; nullopt: it is not known.
  using Index = std::function<std::optional<int64_t>(int64_t place)>;

  ElementSources(const OpAttrs& attrs, OperandDims operands, const Dims& result);
  ElementSources(const Graph& graph, const Node& node)
      : ElementSources(node.attrs, operand_dims(graph, node), graph.value(node.outputs[0]).dims) {}

  // Returns the element that element i is moved from; nullopt: it is computed, or `index` does not know its
  // place.
  std::optional<Source> of(int64_t i, const Index& index = nullptr) const;
  // Returns the place in one operand of the element that element i is moved or computed from; nullopt: it has
  // none.
  std::optional<int64_t> place_in(size_t operand, int64_t i, const Index& index = nullptr) const;

 private:
  OperandDims operands_;
  Dims result_;
  std::vector<std::optional<ElementMap>> maps_;  // by operand
  size_t moved_ = 0;                             // the first operands, which elements are moved from
};

}  // namespace sinter::convert

// Steps that move nothing: View and Copy are their operand; a Slice, or the parts of a Concat, lie inside the
// other where they are contiguous.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/plan/blocks.h"

namespace sinter::convert {

// What a program's values are to its memory, whatever the order of its steps is.
class Storage {
 public:
  // The first `own_inputs` of the graph's inputs have memory here, the others are captured. Joins the
  // operands of every step that can be elided.
  Storage(const Graph& graph, size_t own_inputs);

  const Blocks& blocks() const { return blocks_; }
  const std::vector<bool>& elided() const { return elided_; }
  // Neither a constant nor captured.
  bool placed(ValueId id) const { return placed_[static_cast<size_t>(id)]; }
  uint64_t bytes(ValueId id) const { return bytes_[static_cast<size_t>(id)]; }
  // Bytes from a block's start to its end.
  uint64_t reach(ValueId root) const;
  bool caller_writes(ValueId root) const;
  bool caller_reads(ValueId root) const;
  // A public input and a public output never share memory; nor do two public outputs, or values of different
  // memories.
  bool may_join(ValueId a, ValueId b) const;
  void join(ValueId v, ValueId onto, uint64_t distance) { blocks_.join(v, onto, distance); }

 private:
  void elide(size_t n);
  void elide_concat(size_t n);

  const Graph& graph_;
  size_t own_inputs_;
  Blocks blocks_;
  std::vector<bool> elided_, placed_;
  std::vector<uint64_t> bytes_;
};

// Whether the slice's elements lie side by side in its operand, and how many bytes from its start.
bool contiguous(const SliceAttrs& slice, const Value& in, uint64_t* distance);

// Whether output 0 of `node` may lie where `operand` does, if that dies there: the op allows it, and dims and
// element sizes agree.
bool fits_in_place(const Graph& graph, const Node& node, ValueId operand);

}  // namespace sinter::convert

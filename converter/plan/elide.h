// Steps that move nothing: View and Copy are their operand; a Slice, or the parts of a Concat, are placed
// inside the other: where they are contiguous; elsewhere with strides, if the steps that write or read them
// take that as well as dense operands.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "converter/plan/blocks.h"

namespace sinter::convert {

// A Concat that is not elided, or a Pad, although operands could be placed in its result.
struct PartialJoin {
  size_t node;
  std::vector<bool> fits;  // by operand, some of them
  uint64_t bytes;          // of those
};

// The memory relations of a program's values, for any order of its steps.
class Storage {
 public:
  // Whether step n takes its operands with the strides that the storage gives them.
  using Takes = std::function<bool(size_t n, const Storage& storage)>;

  // The first `own_inputs` of the graph's inputs have memory here, the others are captured. Joins the
  // operands of every step that can be elided; with strides if `takes` is given, and not in steps `moved`.
  Storage(const Graph& graph, size_t own_inputs, const Takes& takes = {},
          const std::vector<bool>& moved = {});

  const Blocks& blocks() const { return blocks_; }
  const std::vector<bool>& elided() const { return elided_; }
  // Neither a constant nor captured.
  bool placed(ValueId id) const { return placed_[static_cast<size_t>(id)]; }
  // From the value's first byte to behind its last.
  uint64_t bytes(ValueId id) const { return bytes_[static_cast<size_t>(id)]; }
  // In bytes; empty: dense.
  const std::vector<int64_t>& strides(ValueId id) const { return strides_[static_cast<size_t>(id)]; }
  // Steps that are elided with strides.
  const std::vector<size_t>& strided() const { return strided_; }
  const std::vector<PartialJoin>& partial() const { return partial_; }
  // The result of `node` that may be placed on `operand`, if that dies there: the op allows it, and dims,
  // strides and element sizes agree. kAbsent: none.
  ValueId fits_in_place(const Node& node, ValueId operand) const;
  // Bytes from a block's start to its end.
  uint64_t reach(ValueId root) const;
  bool caller_writes(ValueId root) const { return caller_writes_[static_cast<size_t>(root)]; }
  bool caller_reads(ValueId root) const { return caller_reads_[static_cast<size_t>(root)]; }
  // Whether the caller may bind the value, which is then the root of its block and contains all of that.
  bool bindable(ValueId id) const { return bindable_[static_cast<size_t>(id)]; }
  // Whether the block has a state's input in it.
  bool keeps_state(ValueId root) const;
  // A public input and a public output never share memory; nor do two public outputs, or values of different
  // memories, or a state and a public output or what another state becomes.
  bool may_join(ValueId a, ValueId b) const;
  // Whether v may begin `distance` bytes behind the start of `onto`: a bindable value contains all that
  // shares its memory.
  bool fits_bindable(ValueId v, ValueId onto, uint64_t distance) const;
  // v is the root of its block, or `onto` is and v is bindable and at its start.
  void join(ValueId v, ValueId onto, uint64_t distance);

 private:
  void elide(size_t n);
  void elide_concat(size_t n);
  void place_parts(size_t n);
  void find_fitting(size_t n);
  bool may_lie_inside(ValueId part, ValueId whole) const;
  void place_window(size_t n);
  bool alone(ValueId id) const { return blocks_.members(blocks_.root(id)).size() == 1; }
  std::vector<int64_t> laid_out(ValueId id) const;
  // Gives the values these strides, if all steps but n that touch them agree.
  bool give_strides(size_t n, const std::vector<ValueId>& values, const std::vector<int64_t>& strides);
  void drop_strides(const std::vector<ValueId>& values);

  const Graph& graph_;
  Blocks blocks_;
  std::vector<bool> elided_, placed_;
  std::vector<bool> caller_writes_,
      caller_reads_;            // some value of the block, by root; a state counts as an input
  std::vector<bool> bindable_;  // by value; each is the root of its block
  std::vector<uint64_t> bytes_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<size_t> strided_;
  std::vector<PartialJoin> partial_;
  Takes takes_;
  std::vector<std::vector<size_t>> touching_;  // steps with the value among their operands
};

// The result that may share memory with this operand by the op's row (runtime/core/in_place.h), or kAbsent:
// shapes are not compared.
ValueId works_in_place(const Node& node, ValueId operand);

// Whether the slice's elements are contiguous in its operand, and how many bytes from its start.
bool contiguous(const SliceAttrs& slice, const Value& in, uint64_t* distance);

}  // namespace sinter::convert

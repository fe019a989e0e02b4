// The parts of the rules of emit_bounded.cc: an operation's operands with their lengths, and results that
// have the lengths which follow.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "converter/import/lengths/bounded.h"

namespace sinter::convert {

class BoundedOperands {
 public:
  using Ids = std::vector<ValueId>;
  using LengthList = std::vector<LengthId>;

  BoundedOperands(NodeLowering& n, const OpAttrs& attrs, Ids inputs, const std::vector<bool>& wanted);

 protected:
  size_t rank(size_t input) const { return of_[input].size(); }
  // Rules run before the operation's own inference. An axis that an operand does not have counts as one of
  // size 1, and the results are refused in the end (as_given).
  bool has(size_t input, int64_t axis) const {
    const bool is_there = axis >= 0 && axis < static_cast<int64_t>(rank(input));
    axis_missing_ |= !is_there;
    return is_there;
  }
  // Returns whether the length is not known. Absent operands have none.
  bool open(size_t input, int64_t axis) const {
    return in_[input] >= 0 && has(input, axis) && !lengths_.known(of_[input][static_cast<size_t>(axis)]);
  }
  bool bounded(size_t input) const { return input < in_.size() && b_.is_bounded(in_[input]); }
  LengthId length(size_t input, int64_t axis) const {
    return has(input, axis) ? of_[input][static_cast<size_t>(axis)] : lengths_.constant(1);
  }
  int64_t dim(size_t input, int64_t axis) const {
    return has(input, axis) ? n_.dims(in_[input])[static_cast<size_t>(axis)] : 1;
  }

  // Returns the results of an operation that cannot follow its operands' lengths. Where these are expected to
  // have a fixed size, it is emitted for that; else it is refused.
  Ids refuse();
  // Returns the results of an operation whose operands lack axes: its inference refuses it.
  Ids as_given();
  // Returns the results, each with the same lengths.
  Ids give(const LengthList& all);
  // Returns whether only the listed axes of operand 0 are bounded, and no other operand.
  bool only(const std::set<int64_t>& axes) const;
  // Returns results with operand 0's lengths along these axes, and their own dims along the others.
  Ids keeping(const std::set<int64_t>& axes);
  // Returns operand 0's axes without these.
  std::set<int64_t> axes_but(std::set<int64_t> left_out) const;
  void fill(size_t input, const std::vector<int64_t>& axes, double number);
  // Fixes those of operands' axes that meet which are expected to be as long as a fixed one.
  void fix_beside_fixed(const std::vector<std::pair<size_t, int64_t>>& axes);
  // Returns the common length of operands' axes that are one axis of the result. Axes are cut to the
  // shortest.
  LengthId joined(const std::vector<std::pair<size_t, int64_t>>& axes);
  // Returns the lengths of all axes before the last `inner` ones, broadcast.
  LengthList broadcast(const std::vector<size_t>& inputs, size_t inner);

  NodeLowering& n_;
  Bounded b_;
  Lengths& lengths_;
  const OpAttrs attrs_;
  const Ids given_;
  Ids in_;  // as they are emitted
  const std::vector<bool> wanted_;
  std::vector<LengthList> of_;  // the operands' lengths
  mutable bool axis_missing_ = false;
};

// These rules, of Lstm, Gru and Rnn and of Unique, have files of their own; they return what emit_bounded
// does.
std::vector<ValueId> emit_bounded_recurrent(NodeLowering& n, const OpAttrs& attrs,
                                            std::vector<ValueId> inputs, const std::vector<bool>& wanted);
std::vector<ValueId> emit_bounded_unique(NodeLowering& n, const OpAttrs& attrs, std::vector<ValueId> inputs,
                                         const std::vector<bool>& wanted);

}  // namespace sinter::convert

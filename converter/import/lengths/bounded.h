// Operations on bounded values. A bounded value is computed at its maximum; the elements beyond a length are
// padding, whose numbers mean nothing. Operations of the graph ignore lengths, so what is emitted here keeps
// padding out of the used elements: it is filled with what changes no result, or pushed behind them.
#pragma once

#include <string>
#include <vector>

#include "converter/import/lengths/lengths.h"
#include "converter/import/lowering.h"

namespace sinter::convert {

class Bounded {
 public:
  explicit Bounded(NodeLowering& n);

  Lengths& lengths() { return lengths_; }
  bool is_bounded(ValueId v) const;
  // Returns the one output of NodeLowering::emit_padded.
  ValueId emit(OpAttrs attrs, std::vector<ValueId> inputs);
  std::vector<LengthId> of_axes(ValueId v);

  // Returns `v`, which nothing else reads yet, with these lengths, one for each axis; cut where a maximum is
  // less than the axis.
  ValueId with_lengths(ValueId v, std::vector<LengthId> all);
  // Returns [dim] of bool, true for the first `length`.
  ValueId used(LengthId length, int64_t dim);
  // Returns `v` with padding along the listed axes replaced by `number` (infinities: the ends of an integer
  // type).
  ValueId filled(ValueId v, const std::vector<int64_t>& axes, double number);
  ValueId filled(ValueId v, double number);  // along all axes
  // Returns the first `size` elements of an axis, padding or not.
  ValueId cut(ValueId v, int64_t axis, int64_t size);
  // Returns [size] of int64, start + i * step, held within an axis of `dim` elements.
  ValueId positions(LengthId start, int64_t step, int64_t size, int64_t dim);
  // Returns elements start, start + step, ... of an axis.
  ValueId section(ValueId v, int64_t axis, LengthId start, int64_t step, LengthId count);
  // Returns indices into an axis as they are into the padded one: those from the end count from the length,
  // those beyond the length become `invalid`, and padding of the indices becomes 0.
  ValueId indices(ValueId v, LengthId length, int64_t dim, int64_t invalid);

  // ---- run-time checks (CheckLength). Each gives a length that fails the run unless the check holds:
  // whoever reads it is held to it. Refused where it never holds.

  // Returns `length`, which is within `range` if `found` keeps `rule` with `limit`.
  LengthId check(LengthRule rule, LengthId length, LengthId found, LengthId limit, IntegerRange range);
  // Return a length that is 0 to `most`; at most another; equal to another, which it meets in an axis.
  LengthId at_most(LengthId length, int64_t most, LengthRule rule);
  LengthId not_above(LengthId a, LengthId b);
  LengthId equal(LengthId a, LengthId b);
  // Returns `length`, where its maximum over the run is at most `most`, which is planned.
  LengthId held_to_plan(LengthId length, LengthId longest, int64_t most);
  // Returns `length` with a maximum: its own, or that of --bound; refused (nullopt) where there is none.
  std::optional<LengthId> with_maximum(LengthId length);
  // Returns `v` with a fixed size along each bounded axis, or the one given, whose length is expected to have
  // one (Lengths::expected); a run where it has another fails.
  ValueId fixed(ValueId v, std::optional<int64_t> only = {});
  // Does the same for values that meet in an axis of each, beside one whose length is that size. `repeats`: a
  // length of 1 repeats.
  void fix_beside_fixed(const std::vector<std::pair<ValueId*, int64_t>>& met, bool repeats);

  // Returns `v` with its used elements in the same order under other lengths of the same product.
  ValueId reshaped(ValueId v, std::vector<LengthId> to);
  // Returns the same where the padded dims are given: each run of axes that becomes one, or stays.
  ValueId viewed(ValueId v, const Dims& to);
  ValueId concatenated(std::vector<ValueId> parts, int64_t axis);

 private:
  LengthId held_within(LengthRule rule, LengthId length, LengthId found, LengthId limit, IntegerRange range);
  ValueId gathered(ValueId v, std::vector<LengthId> to);
  Dims maxima(const std::vector<LengthId>& all);

  NodeLowering& n_;
  Lengths& lengths_;
};

// Returns the results of an operation on bounded operands, with the lengths that follow from theirs. Refuses
// what would mix elements with padding.
std::vector<ValueId> emit_bounded(NodeLowering& n, const OpAttrs& attrs, std::vector<ValueId> inputs,
                                  const std::vector<bool>& wanted);

}  // namespace sinter::convert

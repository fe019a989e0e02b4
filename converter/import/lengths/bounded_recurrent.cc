// Recurrent layers over a number of steps, or of sequences, that depends on data.
#include <algorithm>

#include "converter/import/lengths/bounded_operands.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

class BoundedRecurrent : private BoundedOperands {
 public:
  using BoundedOperands::BoundedOperands;

  // X, W, R, B?, sequence_lens?, initial_h?, ...: padding along the time axis is what is beyond a sequence's
  // length; along the batch it is a sequence of its own.
  template <class A>
  Ids run(const A& a) {
    const int64_t time = a.layout != 0 ? 1 : 0, batch = 1 - time;
    in_.resize(std::max<size_t>(in_.size(), 5), kAbsent), of_.resize(in_.size());
    for (size_t i = 0; i < in_.size(); ++i)
      for (int64_t axis = 0; axis < static_cast<int64_t>(rank(i)); ++axis)
        if (open(i, axis) && (i == 1 || i == 2 || i == 3 || i > 6 || (i == 0 && axis == 2))) return refuse();
    std::vector<std::pair<size_t, int64_t>> samples{{0, batch}};
    if (in_[4] >= 0) samples.emplace_back(4, 0);
    for (size_t i = 5; i < std::min<size_t>(in_.size(), 7); ++i)
      if (in_[i] >= 0) samples.emplace_back(i, a.layout != 0 ? 0 : 1);
    if (n_.rank(in_[0]) != 3) return refuse();
    const LengthId count = joined(samples);
    LengthId steps = length(0, time);
    if (open(0, time)) {
      if (in_[4] >= 0) {
        in_[4] = b_.filled(in_[4], 0);
        const ReduceAttrs longest{static_cast<int64_t>(ReduceFn::kMax), IntList{0}, 0};
        const ValueId most = b_.emit(longest, {n_.cast(in_[4], DType::kInt64)});
        steps = b_.check(LengthRule::kWithin, steps, lengths_.symbol(most, {INT32_MIN, INT32_MAX}), steps,
                         lengths_.range(steps));
        // Results without a time axis read the check by way of the lengths.
        in_[4] = b_.emit(MinAttrs{}, {in_[4], n_.cast(lengths_.value(steps), DType::kInt32)});
      } else {
        const ValueId all = n_.cast(lengths_.value(steps), DType::kInt32);
        in_[4] = b_.emit(BroadcastAttrs{IntList{n_.dims(in_[0])[static_cast<size_t>(batch)]}}, {all});
      }
    }
    // Padding of the lengths would be out of range.
    if (in_[4] >= 0 && b_.is_bounded(in_[4])) in_[4] = b_.filled(in_[4], 0);
    Ids results = n_.emit_padded(attrs_, in_, wanted_);
    const LengthId directions =
        lengths_.constant(a.direction == static_cast<int64_t>(RnnDirection::kBidirectional) ? 2 : 1);
    const LengthId hidden = lengths_.constant(a.hidden_size);
    for (size_t i = 0; i < results.size(); ++i) {
      LengthList all =
          a.layout != 0 ? LengthList{count, directions, hidden} : LengthList{directions, count, hidden};
      if (i == 0)
        all = a.layout != 0 ? LengthList{count, steps, directions, hidden}
                            : LengthList{steps, directions, count, hidden};
      if (results[i] >= 0) results[i] = b_.with_lengths(results[i], all);
    }
    return results;
  }
};

}  // namespace

std::vector<ValueId> emit_bounded_recurrent(NodeLowering& n, const OpAttrs& attrs,
                                            std::vector<ValueId> inputs, const std::vector<bool>& wanted) {
  BoundedRecurrent layer(n, attrs, std::move(inputs), wanted);
  if (const auto* lstm = std::get_if<LstmAttrs>(&attrs)) return layer.run(*lstm);
  if (const auto* gru = std::get_if<GruAttrs>(&attrs)) return layer.run(*gru);
  return layer.run(std::get<RnnAttrs>(attrs));
}

}  // namespace sinter::convert

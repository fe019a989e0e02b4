#include "converter/import/lower/resize_bounded.h"

#include <algorithm>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Arithmetic on padded float32 values of one axis.
class AxisMath {
 public:
  explicit AxisMath(NodeLowering& n) : n_(n), b_(n) {}
  ValueId number(double x) { return n_.scalar(DType::kFloat32, x); }
  ValueId add(ValueId a, ValueId b) { return b_.emit(AddAttrs{}, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return b_.emit(SubAttrs{}, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return b_.emit(MulAttrs{}, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return b_.emit(DivAttrs{}, {a, b}); }
  ValueId round(RoundFn fn, ValueId a) { return b_.emit(RoundAttrs{static_cast<int64_t>(fn)}, {a}); }
  ValueId within(ValueId a, ValueId low, ValueId high) {
    return b_.emit(MaxAttrs{}, {b_.emit(MinAttrs{}, {a, high}), low});
  }

 private:
  NodeLowering& n_;
  Bounded b_;
};

// The position of each element of the result on the operand's axis.
std::optional<ValueId> places(NodeLowering& n, AxisMath& m, ResizeCoordinates rule, ValueId at, ValueId from,
                              ValueId to) {
  const ValueId scale = m.div(to, from), half = m.number(0.5), one = m.number(1);
  switch (rule) {
    case ResizeCoordinates::kHalfPixel:
      return m.sub(m.div(m.add(at, half), scale), half);
    case ResizeCoordinates::kPytorchHalfPixel: {
      const ValueId many = n.compare(CompareFn::kGreater, {to, one});
      return n.where({many, m.sub(m.div(m.add(at, half), scale), half), m.number(0)});
    }
    case ResizeCoordinates::kAsymmetric:
      return m.div(at, scale);
    case ResizeCoordinates::kAlignCorners: {
      const ValueId steps = n.emit(MaxAttrs{}, {m.sub(to, one), one});
      return m.div(m.mul(at, m.sub(from, one)), steps);
    }
    default:
      return std::nullopt;
  }
}

// (weight, offset from the floor) of cubic interpolation at a fraction f.
std::vector<ValueId> cubic_weights(AxisMath& m, ValueId f, double a) {
  const auto number = [&](double x) { return m.number(x); };
  const ValueId one = number(1), g = m.sub(one, f);
  // ((a d - 5a) d + 8a) d - 4a for 1 < d < 2, ((a + 2) d - (a + 3)) d d + 1 for d <= 1.
  const auto far = [&](ValueId d) {
    return m.sub(m.mul(m.add(m.mul(m.sub(m.mul(number(a), d), number(5 * a)), d), number(8 * a)), d),
                 number(4 * a));
  };
  const auto near = [&](ValueId d) {
    return m.add(m.mul(m.mul(m.sub(m.mul(number(a + 2), d), number(a + 3)), d), d), one);
  };
  return {far(m.add(f, one)), near(f), near(g), far(m.add(g, one))};
}

}  // namespace

ValueId resize_axis_to(NodeLowering& n, ValueId x, int64_t axis, LengthId size, const ResizeAttrs& a) {
  if (x < 0) return x;
  Bounded b(n);
  AxisMath m(n);
  Lengths& lengths = b.lengths();
  if (a.antialias != 0 || a.exclude_outside != 0)
    return n.refuse("resizes axis {} to a size that depends on data, with antialias or exclude_outside",
                    axis);
  if (!is_float(n.dtype(x)))
    return n.refuse("resizes axis {} of {} to a size that depends on data", axis, dtype_name(n.dtype(x)));
  const auto most = b.with_maximum(size);
  if (!most) return kUnknown;
  const int64_t dim = n.dims(x)[static_cast<size_t>(axis)];
  const LengthId length = lengths.of_axis(x, axis);
  const auto whole = [&](LengthId id) { return n.cast(lengths.value(id), DType::kFloat32); };
  const ValueId to = whole(*most), from = whole(length), zero = m.number(0), last = m.sub(from, m.number(1));
  const ValueId at = n.cast(index_row(n, lengths.high(*most)), DType::kFloat32);
  const auto place = places(n, m, static_cast<ResizeCoordinates>(a.coordinates), at, from, to);
  if (!place) return n.refuse("resizes axis {} to a size that depends on data by a rule that crops", axis);

  std::vector<LengthId> all = b.of_axes(x);
  all[static_cast<size_t>(axis)] = *most;
  // Padding may be anywhere; it is clamped to the axis as the others are.
  const auto taken = [&](ValueId where) {
    ValueId index = n.cast(m.within(where, zero, last), DType::kInt64);
    const ValueId end = n.int64(std::max<int64_t>(dim - 1, 0));
    const ValueId start = n.int64(0);
    index = b.emit(MaxAttrs{}, {b.emit(MinAttrs{}, {index, end}), start});
    return b.emit(GatherAttrs{axis}, {x, index});
  };
  if (static_cast<ResizeMode>(a.mode) == ResizeMode::kNearest) {
    const ValueId half = m.number(0.5);
    ValueId where = *place;
    switch (static_cast<NearestMode>(a.nearest_mode)) {
      case NearestMode::kFloor:
        where = m.round(RoundFn::kFloor, where);
        break;
      case NearestMode::kCeil:
        where = m.round(RoundFn::kCeil, where);
        break;
      case NearestMode::kRoundPreferCeil:
        where = m.round(RoundFn::kFloor, m.add(where, half));
        break;
      case NearestMode::kRoundPreferFloor:
        where = m.round(RoundFn::kCeil, m.sub(where, half));
        break;
    }
    return b.with_lengths(taken(where), all);
  }
  const bool cubic = static_cast<ResizeMode>(a.mode) == ResizeMode::kCubic;
  const ValueId where = cubic ? *place : m.within(*place, zero, last);
  const ValueId low = m.round(RoundFn::kFloor, where), f = m.sub(where, low);
  const std::vector<ValueId> weights =
      cubic ? cubic_weights(m, f, a.cubic_coeff_a) : std::vector<ValueId>{m.sub(m.number(1), f), f};
  ValueId sum = kAbsent;
  Dims shape(n.dims(x).size(), 1);
  for (size_t k = 0; k < weights.size(); ++k) {
    const double offset = static_cast<double>(k) - (cubic ? 1 : 0);
    const ValueId tap = n.cast(taken(m.add(low, m.number(offset))), DType::kFloat32);
    shape[static_cast<size_t>(axis)] = lengths.high(*most);
    const ValueId weight = b.emit(ViewAttrs{IntList(std::span<const int64_t>(shape)), -1}, {weights[k]});
    const ValueId part = m.mul(tap, weight);
    sum = sum == kAbsent ? part : m.add(sum, part);
  }
  return b.with_lengths(n.cast(sum, n.dtype(x)), all);
}

}  // namespace sinter::convert

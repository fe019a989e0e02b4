#include "converter/ir/computed_parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "converter/flow/element_map.h"
#include "converter/flow/slice_along.h"
#include "converter/ir/builder.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/known_results.h"
#include "converter/ir/large_bytes.h"
#include "converter/ir/op_traits.h"

namespace sinter::convert {
namespace {

// A piece has this many elements: those of a few operands fit a second-level cache together.
constexpr int64_t kPieceElements = 1 << 16;
// Pieces begin at multiples of this many rows, so that they end between the words that hold several numbers.
constexpr int64_t kPieceRows = 32;
// Operands that every piece reads whole are computed once if they take no more than this, at once.
constexpr size_t kWholeBytes = 8 << 20;

// AxisRange is a range of indices of one axis of a constant; or, `joined`, of all axes up to this one as if
// they were one.
struct AxisRange {
  int axis = 0;
  int64_t first = 0, count = 0;
  bool joined = false;
  auto operator<=>(const AxisRange&) const = default;

  int first_axis() const { return joined ? 0 : axis; }
  // Returns the dims of such a part of a constant of these dims.
  Dims of(Dims dims) const {
    std::fill(dims.begin() + first_axis(), dims.begin() + axis, 1);
    dims[static_cast<size_t>(axis)] = count;
    return dims;
  }
};

int64_t product(const Dims& dims, size_t first, size_t end) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(first),
                         dims.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1}, std::multiplies<>());
}

// Returns the range of `from` that holds the same elements as a range of its view `to`. The map of elements
// has no axes for a View.
std::optional<AxisRange> viewed(const Dims& from, const Dims& to, const AxisRange& range) {
  const auto axis = static_cast<size_t>(range.axis);
  const int64_t before = product(to, 0, static_cast<size_t>(range.first_axis())),
                after = product(to, axis + 1, to.size());
  for (size_t k = 0; k < from.size(); ++k) {
    const bool joined = before == 1 && product(from, 0, k) != 1;
    if (from[k] == 1 || (!joined && product(from, 0, k) != before)) continue;
    const int64_t own = product(from, k + 1, from.size());
    // These count elements.
    const int64_t first = range.first * after, count = range.count * after;
    if (own > 0 && first % own == 0 && count % own == 0)
      return AxisRange{static_cast<int>(k), first / own, count / own, joined};
  }
  return std::nullopt;
}

// OperandRange is a range of an operand, or all of it.
struct OperandRange {
  std::optional<AxisRange> some;
};
// Returns what a range of the result needs of an operand; nullopt: no range of one axis.
std::optional<OperandRange> operand_range(const ElementMap& map, const Dims& own, const Dims& dims,
                                          const AxisRange& range) {
  int next = 0;
  bool all = true, none = true;
  for (int i = range.first_axis(); i <= range.axis; ++i) {
    const int b = map.following(i);
    const bool follows = b >= 0 && map.axes[static_cast<size_t>(b)].step != 0;
    if (dims[static_cast<size_t>(i)] == 1 && !(follows && i == range.axis)) continue;
    none &= !follows;
    all &= follows && map.axes[static_cast<size_t>(b)].is_in_place() &&
           own[static_cast<size_t>(b)] == dims[static_cast<size_t>(i)];
    // Joined axes are the operand's first ones.
    all &= !range.joined || (b >= next && product(own, static_cast<size_t>(next),
                                                  static_cast<size_t>(std::max(b, next))) == 1);
    next = b + 1;
  }
  if (none) return OperandRange{};
  if (!all) return std::nullopt;
  return OperandRange{AxisRange{next - 1, range.first, range.count, range.joined && next > 1}};
}

class Parts {
 public:
  // Returns a part of a constant that is computed; null: it cannot be computed in parts.
  ConstantPtr computed(const Recipe& recipe, const Dims& dims, const AxisRange& range) {
    std::vector<ConstantPtr> inputs = recipe.inputs;
    OpAttrs attrs = recipe.attrs;
    if (std::holds_alternative<CastAttrs>(attrs) && inputs[0]) {
      inputs[0] = same_numbers(inputs[0]);
      if (inputs[0]->dtype() == static_cast<DType>(std::get<CastAttrs>(attrs).to))
        return part(inputs[0], range);
    }
    const auto* concat = std::get_if<ConcatAttrs>(&attrs);
    if (const auto* view = std::get_if<ViewAttrs>(&attrs)) {
      const auto of = view->dtype < 0 ? viewed(inputs[0]->dims(), dims, range) : std::nullopt;
      const ConstantPtr some = of ? part(inputs[0], *of) : nullptr;
      return some ? some->reshaped(range.of(dims)) : nullptr;
    }
    if (concat != nullptr && concat->axis == range.axis && !range.joined)
      return evaluated(attrs, overlapping(inputs, range), false);
    if (!is_elementwise(op_of(attrs)) && !std::holds_alternative<BroadcastAttrs>(attrs) &&
        concat == nullptr && !std::holds_alternative<TransposeAttrs>(attrs) && !reads_indices(op_of(attrs)))
      return nullptr;
    OperandDims given;
    for (const ConstantPtr& c : inputs) given.push_back(c ? &c->dims() : nullptr);
    std::vector<ConstantPtr> parts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto map = element_map(attrs, given, dims, i);
      const auto of = map ? operand_range(*map, *given[i], dims, range) : std::nullopt;
      if (!of) return nullptr;
      parts.push_back(of->some ? part(inputs[i], *of->some) : whole(inputs[i]));
      if (!parts.back()) return nullptr;
    }
    if (auto* broadcast = std::get_if<BroadcastAttrs>(&attrs)) {
      const Dims some = range.of(dims);
      broadcast->dims = IntList(some);
    }
    return evaluated(attrs, parts, false);
  }

  ConstantPtr whole(const ConstantPtr& c) {
    const auto [at, fresh] = whole_.emplace(c.get(), nullptr);
    if (!fresh) return at->second;
    ConstantPtr result;
    if (const Recipe* r = c->computed_by().get(); r != nullptr && c->byte_size() <= kWholeBytes) {
      std::vector<ConstantPtr> inputs = r->inputs;
      for (ConstantPtr& input : inputs)
        if (input) input = whole(input);
      result = evaluated(r->attrs, inputs, false);
    }
    if (!result) {
      const LoadedBytes loaded = c->load();
      result = Constant::mapped(c->dtype(), c->dims(), loaded.owner, loaded.bytes);
    }
    return whole_[c.get()] = result;
  }

  // Returns some rows of a constant, from a multiple of kPieceRows on.
  LoadedBytes rows(const ConstantPtr& c, int64_t first, int64_t count) {
    if (const ConstantPtr some = part(c, {0, first, count})) return some->load();
    const LoadedBytes all = whole(c)->load();
    const auto at = [&](int64_t row) {  // rows end at whole bytes, but for the last one
      const int64_t bits = row * product(c->dims(), 1, c->dims().size()) * bit_width(c->dtype());
      return static_cast<size_t>((bits + 7) / 8);
    };
    return {all.owner, all.bytes.subspan(at(first), at(first + count) - at(first))};
  }

  // Drops the parts that were made for one piece: they are of no use for the next one.
  void forget_parts() { parts_.clear(); }

 private:
  // Returns those parts of constants, which are side by side along the axis, that are in the range.
  std::vector<ConstantPtr> overlapping(const std::vector<ConstantPtr>& joined, const AxisRange& range) {
    std::vector<ConstantPtr> parts;
    int64_t begin = 0;
    for (const ConstantPtr& c : joined) {
      const int64_t length = c->dims()[static_cast<size_t>(range.axis)];
      const int64_t first = std::max(range.first - begin, int64_t{0}),
                    end = std::min(range.first + range.count - begin, length);
      if (first < end) parts.push_back(part(c, {range.axis, first, end - first}));
      begin += length;
    }
    return parts;
  }

  // Returns the constant that integers were cast from without changing any, such as one packed in 4 bits.
  ConstantPtr same_numbers(const ConstantPtr& c) {
    const auto [at, fresh] = uncast_.emplace(c.get(), c);
    const Recipe* by = c->computed_by().get();
    if (!fresh || by == nullptr || !std::holds_alternative<CastAttrs>(by->attrs)) return at->second;
    const ConstantPtr& from = by->inputs[0];
    const auto range = integer_range(*from), all = range_of_integers(c->dtype());
    if (!range || !all || range->low < all->low || range->high > all->high) return at->second;
    return uncast_[c.get()] = same_numbers(from);
  }

  ConstantPtr part(const ConstantPtr& c, const AxisRange& range) {
    if (range.first == 0 && !range.joined && range.count == c->dims()[static_cast<size_t>(range.axis)] &&
        !c->computed_by())
      return whole(c);
    const auto [at, fresh] = parts_.emplace(std::pair(c.get(), range), nullptr);
    if (!fresh) return at->second;
    ConstantPtr result = c->computed_by() ? computed(*c->computed_by(), c->dims(), range) : nullptr;
    if (!result && c->progression() && c->dims().size() == 1)
      result =
          Constant::evenly_spaced(c->dtype(), {range.count}, every_from(*c->progression(), 1, range.first));
    if (!result) result = slice(whole(c), range);
    return parts_[std::pair(c.get(), range)] = result;
  }

  static ConstantPtr slice(const ConstantPtr& c, const AxisRange& range) {
    if (!c) return nullptr;
    const auto axis = static_cast<size_t>(range.axis);
    Dims dims = c->dims();
    const int64_t run = product(dims, axis + 1, dims.size());
    const bool together = range.joined || product(dims, 0, axis) == 1;
    const int width = bit_width(c->dtype());
    if (together && run * width % 8 == 0) {
      dims = range.of(std::move(dims));
      const auto each = static_cast<size_t>(run * width / 8);
      const LoadedBytes loaded = c->load();
      return Constant::mapped(c->dtype(), std::move(dims), loaded.owner,
                              loaded.bytes.subspan(static_cast<size_t>(range.first) * each,
                                                   static_cast<size_t>(range.count) * each));
    }
    if (range.joined) return nullptr;
    return evaluated(slice_along(dims, axis, range.first, range.count), {c}, false);
  }

  std::map<const Constant*, ConstantPtr> whole_, uncast_;
  std::map<std::pair<const Constant*, AxisRange>, ConstantPtr> parts_;
};

}  // namespace

namespace {

// Returns how many rows a piece has: all of them where a constant is small, or has few.
int64_t rows_of_piece(int64_t rows, int64_t elements) {
  if (elements <= kPieceElements || rows <= kPieceRows) return rows;
  return std::max<int64_t>(1, kPieceElements / (elements / rows) / kPieceRows) * kPieceRows;
}

// Returns the first piece of a constant. Where the first axes are short, as those of experts and heads are,
// they are joined to rows.
AxisRange first_piece(const Dims& dims) {
  AxisRange piece{0, 0, dims.empty() ? 1 : dims[0]};
  const int64_t elements = element_count(dims);
  int64_t rows = piece.count;
  while (rows <= kPieceRows && elements > kPieceElements && piece.axis + 1 < static_cast<int>(dims.size())) {
    piece.joined |= rows > 1;
    rows *= dims[static_cast<size_t>(++piece.axis)];
  }
  piece.count = rows_of_piece(rows, elements);
  return piece;
}

}  // namespace

bool in_pieces(const std::vector<ConstantPtr>& constants,
               const std::function<bool(int64_t, std::span<const LoadedBytes>)>& use) {
  const InMemoryScope scope;
  const Dims& dims = constants.at(0)->dims();
  const int64_t rows = dims[0], step = rows_of_piece(rows, element_count(dims));
  Parts parts;
  for (int64_t row = 0; row < rows; row += step, parts.forget_parts()) {
    std::vector<LoadedBytes> pieces;
    for (const ConstantPtr& c : constants) pieces.push_back(parts.rows(c, row, std::min(step, rows - row)));
    if (!use(row, pieces)) return false;
  }
  return true;
}

LoadedBytes computed_bytes(const Recipe& recipe, DType dtype, const Dims& dims) {
  const InMemoryScope scope;
  const size_t bytes = dense_bytes(dtype, dims);
  AxisRange piece = first_piece(dims);
  const int64_t rows = dims.empty() ? 1 : product(dims, 0, static_cast<size_t>(piece.axis) + 1),
                step = piece.count;
  Parts parts;
  if (step < rows) {
    ResultBytes result(bytes);
    std::span<std::byte> left = result.span();
    for (; piece.first < rows; piece.first += step, parts.forget_parts()) {
      piece.count = std::min(step, rows - piece.first);
      const ConstantPtr part = parts.computed(recipe, dims, piece);
      if (!part) break;
      const LoadedBytes loaded = part->load();  // a piece has whole bytes, but for the last one
      if (loaded.bytes.size() > left.size()) break;
      std::copy(loaded.bytes.begin(), loaded.bytes.end(), left.begin());
      left = left.subspan(loaded.bytes.size());
    }
    if (left.empty()) {
      HeldBytes lent = std::move(result).lend();
      return {std::move(lent.owner), lent.bytes};
    }
  }
  std::vector<ConstantPtr> inputs = recipe.inputs;
  for (ConstantPtr& c : inputs)
    if (c) c = parts.whole(c);
  const ConstantPtr result = evaluated(recipe.attrs, inputs, false);
  if (!result) throw std::logic_error("a constant that can be computed cannot be computed");
  return result->load();
}

namespace {

// Returns whether all indices are proven to be within an axis.
bool holds_indices(const Constant& indices, int64_t length) {
  // More indices are not looked at: that would take as long as the operation.
  constexpr int64_t kMostLookedAt = 1 << 20;
  const auto inside = [&](int64_t low, int64_t high) { return low >= -length && high < length; };
  if (const auto range = integer_range(indices); range && inside(range->low, range->high)) return true;
  if (indices.size() > kMostLookedAt) return false;
  const std::vector<int64_t> items = indices.as_int64s();
  const auto [low, high] = std::minmax_element(items.begin(), items.end());
  return inside(*low, *high);
}

}  // namespace

bool can_wait(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType result) {
  const Op op = op_of(attrs);
  if (is_sub_byte(result) || std::any_of(inputs.begin(), inputs.end(), [](const ConstantPtr& c) {
        return !c || is_sub_byte(c->dtype()) || c->wide();
      }))
    return false;
  if (op == Op::kGather || op == Op::kGatherNd) {
    const auto* nd = std::get_if<GatherNdAttrs>(&attrs);
    const Dims &table = inputs[0]->dims(), &index = inputs[1]->dims();
    if (inputs[1]->size() == 0 || (nd != nullptr && (nd->batch_dims != 0 || index.back() != 1))) return false;
    return holds_indices(*inputs[1],
                         table[nd != nullptr ? 0 : static_cast<size_t>(std::get<GatherAttrs>(attrs).axis)]);
  }
  return is_elementwise(op) || op == Op::kBroadcast || op == Op::kConcat ||
         (op == Op::kView && std::get<ViewAttrs>(attrs).dtype < 0) || op == Op::kTranspose;
}

}  // namespace sinter::convert

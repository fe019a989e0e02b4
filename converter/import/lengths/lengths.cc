#include "converter/import/lengths/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "converter/import/lower.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// Ends beyond int64 are held at its ends.
int64_t saturated(__int128 x) { return static_cast<int64_t>(std::clamp<__int128>(x, kLowest, kHighest)); }

IntegerRange corners(IntegerRange a, IntegerRange b, int64_t (*f)(int64_t, int64_t)) {
  const std::array<int64_t, 4> all = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, *high};
}

int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : saturated(static_cast<__int128>(a) / b); }

IntegerRange range_of(LengthFn fn, IntegerRange a, IntegerRange b) {
  switch (fn) {
    case LengthFn::kAdd:
      return {saturated(static_cast<__int128>(a.low) + b.low),
              saturated(static_cast<__int128>(a.high) + b.high)};
    case LengthFn::kSub:
      return {saturated(static_cast<__int128>(a.low) - b.high),
              saturated(static_cast<__int128>(a.high) - b.low)};
    case LengthFn::kMul:
      return corners(a, b, [](int64_t x, int64_t y) { return saturated(static_cast<__int128>(x) * y); });
    case LengthFn::kDiv:
      if (b.low >= 1) return corners(a, b, quotient);
      if (a.low >= 0) return {b.low >= 0 ? 0 : saturated(-static_cast<__int128>(a.high)), a.high};
      return {kLowest, kHighest};
    case LengthFn::kMod:
      if (a.low >= 0 && b.low >= 1) return {0, std::min(a.high, b.high - 1)};
      return {kLowest, kHighest};
    case LengthFn::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case LengthFn::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case LengthFn::kEqual:
      if (a.low > b.high || b.low > a.high) return {0, 0};
      return {a.low == a.high && b.low == b.high ? 1 : 0, 1};
    case LengthFn::kLess:
      return {a.high < b.low ? 1 : 0, a.low < b.high ? 1 : 0};
    default:
      return {kLowest, kHighest};
  }
}

bool commutes(LengthFn fn) {
  return fn == LengthFn::kAdd || fn == LengthFn::kMul || fn == LengthFn::kMin || fn == LengthFn::kMax ||
         fn == LengthFn::kEqual;
}

// The operations that compute each function of two lengths.
const std::pair<LengthFn, OpAttrs> kArithmetic[] = {
    {LengthFn::kAdd, AddAttrs{}}, {LengthFn::kSub, SubAttrs{}}, {LengthFn::kMul, MulAttrs{}},
    {LengthFn::kDiv, DivAttrs{}}, {LengthFn::kMod, ModAttrs{}}, {LengthFn::kMin, MinAttrs{}},
    {LengthFn::kMax, MaxAttrs{}}};

const OpAttrs& arithmetic_of(LengthFn fn) {
  return std::find_if(std::begin(kArithmetic), std::end(kArithmetic),
                      [&](const auto& row) { return row.first == fn; })
      ->second;
}

}  // namespace

std::optional<LengthFn> length_function(Op op) {
  for (const auto& [fn, attrs] : kArithmetic)
    if (op_of(attrs) == op) return fn;
  return std::nullopt;
}

LengthId Lengths::add_term(Term term) {
  const auto key = std::make_tuple(term.fn, term.a, term.b, term.number);
  const auto [it, fresh] = known_terms_.emplace(key, static_cast<LengthId>(terms_.size()));
  if (fresh) terms_.push_back(term);
  return it->second;
}

LengthId Lengths::constant(int64_t number) {
  return add_term({LengthFn::kConstant, -1, -1, number, {number, number}});
}

LengthId Lengths::symbol(ValueId scalar, IntegerRange range) {
  // A scalar whose operation was refused is a length without a value: what reads it is refused in turn.
  if (scalar >= 0)
    if (const ConstantPtr& c = owner_.graph().value(scalar).constant) return constant(c->as_int64s()[0]);
  const LengthId id = add_term({LengthFn::kSymbol, -1, -1, scalar, range});
  values_[id] = scalar;
  items_[scalar] = {id};
  return id;
}

LengthId Lengths::given(ValueId scalar, IntegerRange range, const std::string& name) {
  const LengthId id = symbol(scalar, range);
  inherit_names(id, {name});
  return id;
}

std::set<std::string> Lengths::given_names(LengthId id) const {
  std::set<std::string> names;
  std::vector<LengthId> open{id};
  std::set<LengthId> seen{id};
  while (!open.empty()) {
    const LengthId now = open.back();
    open.pop_back();
    if (const auto own = names_.find(now); own != names_.end())
      names.insert(own->second.begin(), own->second.end());
    const Term& t = terms_[static_cast<size_t>(now)];
    if (t.fn == LengthFn::kConstant || t.fn == LengthFn::kSymbol) continue;
    for (const LengthId part : {t.a, t.b})
      if (seen.insert(part).second) open.push_back(part);
  }
  return names;
}

std::string Lengths::fixing_advice(LengthId id) const {
  const std::set<std::string> names = given_names(id);
  if (names.empty()) return "compute it after the model, or export the model so that the length is fixed";
  return fmt::format("give one size with --dim {}=N, or several with --shapes",
                     fmt::join(names, "=N --dim "));
}

void Lengths::inherit_names(LengthId symbol, const std::set<std::string>& names) {
  if (!names.empty()) names_[symbol].insert(names.begin(), names.end());
}

std::optional<int64_t> Lengths::known(LengthId id) const {
  const IntegerRange r = range(id);
  return r.low == r.high ? std::optional(r.low) : std::nullopt;
}

// Returns a length as the sum of `base` and a constant.
Lengths::Shifted Lengths::shifted(LengthId id) const {
  const Term& t = terms_[static_cast<size_t>(id)];
  const auto more = t.fn == LengthFn::kAdd ? known(t.b) : std::nullopt;
  return more ? Shifted{t.a, *more} : Shifted{id, 0};
}

bool Lengths::never_above(LengthId a, LengthId b) const {
  if (a == b || range(a).high <= range(b).low) return true;
  if (const Shifted x = shifted(a), y = shifted(b); x.base == y.base) return x.more <= y.more;
  const Term& t = terms_[static_cast<size_t>(a)];
  return t.fn == LengthFn::kMin && (never_above(t.a, b) || never_above(t.b, b));
}

std::optional<int64_t> Lengths::expected(LengthId id) const {
  if (const auto number = known(id)) return number;
  if (const auto it = expected_.find(id); it != expected_.end()) return it->second;
  const Term& t = terms_[static_cast<size_t>(id)];
  if (t.fn == LengthFn::kSymbol) return std::nullopt;
  const auto a = expected(t.a), b = expected(t.b);
  if (!a || !b) return std::nullopt;
  const IntegerRange range = range_of(t.fn, {*a, *a}, {*b, *b});
  return range.low == range.high ? std::optional(range.low) : std::nullopt;
}

std::optional<int64_t> Lengths::uniform(ValueId bounded) const {
  const auto found = uniform_.find(bounded);
  return found == uniform_.end() ? std::nullopt : std::optional(found->second);
}

ValueId Lengths::fixed_form(ValueId bounded) const {
  const auto it = fixed_.find(bounded);
  return it == fixed_.end() ? kAbsent : it->second;
}

// A constant is on the right, and constants of a chain of sums or products are joined.
std::optional<LengthId> Lengths::simplified(LengthFn fn, LengthId a, LengthId b) {
  const Term x = terms_[static_cast<size_t>(a)], y = terms_[static_cast<size_t>(b)];
  const auto number = known(b);
  const auto factor = [&](const Term& t) { return t.fn == LengthFn::kMul ? known(t.b) : std::nullopt; };
  switch (fn) {
    case LengthFn::kAdd:
      if (number == 0) return a;
      if (number && x.fn == LengthFn::kAdd && known(x.b))
        return add(x.a, constant(saturated(static_cast<__int128>(*known(x.b)) + *number)));
      if (x.fn == LengthFn::kSub && x.b == b) return x.a;
      return std::nullopt;
    case LengthFn::kSub:
      if (a == b) return constant(0);
      if (number && *number != kLowest) return add(a, constant(-*number));
      if (x.fn == LengthFn::kAdd && x.a == b) return x.b;
      if (x.fn == LengthFn::kAdd && x.b == b) return x.a;
      return std::nullopt;
    case LengthFn::kMul:
      if (number == 1) return a;
      if (number == 0) return b;
      if (number && factor(x))
        return mul(x.a, constant(saturated(static_cast<__int128>(*factor(x)) * *number)));
      // Constants go outwards: (p * 4) * q is (p * q) * 4.
      if (!number && factor(x)) return mul(mul(x.a, b), x.b);
      if (!number && factor(y)) return mul(mul(a, y.a), y.b);
      return std::nullopt;
    case LengthFn::kDiv:
      if (number == 1) return a;
      if (number && *number > 0 && factor(x) && *factor(x) % *number == 0)
        return mul(x.a, constant(*factor(x) / *number));
      // (p * c) / p: the quotient of an empty whole is free.
      if (factor(x) && x.a == b) return x.b;
      if (factor(x) && factor(y) && x.a == y.a && *factor(y) > 0 && *factor(x) % *factor(y) == 0)
        return constant(*factor(x) / *factor(y));
      if (x.fn == LengthFn::kMul && x.a == b) return x.b;
      if (x.fn == LengthFn::kMul && x.b == b) return x.a;
      if (a == b) return constant(1);
      return std::nullopt;
    case LengthFn::kMod:
      if (number && *number > 0 && factor(x) && *factor(x) % *number == 0) return constant(0);
      if (a == b) return constant(0);
      return std::nullopt;
    case LengthFn::kMin:
      if (never_above(a, b)) return a;
      if (never_above(b, a)) return b;
      if (number && x.fn == LengthFn::kMin && known(x.b))
        return min(x.a, constant(std::min(*known(x.b), *number)));
      return std::nullopt;
    case LengthFn::kMax:
      if (never_above(b, a)) return a;
      if (never_above(a, b)) return b;
      return std::nullopt;
    case LengthFn::kEqual:
      return a == b ? std::optional(constant(1)) : std::nullopt;
    case LengthFn::kLess:
      return a == b ? std::optional(constant(0)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

LengthId Lengths::combine(LengthFn fn, LengthId a, LengthId b) {
  if (commutes(fn) && (known(a) || (!known(b) && b < a))) std::swap(a, b);
  const IntegerRange range = range_of(fn, this->range(a), this->range(b));
  if (range.low == range.high) return constant(range.low);
  if (const auto simple = simplified(fn, a, b)) return *simple;
  return add_term({fn, a, b, 0, range});
}

ValueId Lengths::emit(OpAttrs attrs, std::vector<ValueId> inputs) {
  std::vector<ValueId> out;
  const Status status = owner_.builder().emit(std::move(attrs), std::move(inputs), 1, &out);
  return status.ok() ? out[0] : kUnknown;
}

ValueId Lengths::value(LengthId id) {
  if (const auto it = values_.find(id); it != values_.end()) return it->second;
  const Term t = terms_[static_cast<size_t>(id)];
  ValueId v = kUnknown;
  if (const auto number = known(id)) {
    v = owner_.graph().add_constant(Constant::scalar_int(DType::kInt64, *number));
  } else {
    const ValueId a = value(t.a), b = value(t.b);
    const bool is_truth = t.fn == LengthFn::kEqual || t.fn == LengthFn::kLess;
    const CompareFn fn = t.fn == LengthFn::kEqual ? CompareFn::kEqual : CompareFn::kLess;
    v = is_truth ? emit(WhereAttrs{}, {emit(CompareAttrs{static_cast<int64_t>(fn)}, {a, b}),
                                       value(constant(1)), value(constant(0))})
                 : emit(arithmetic_of(t.fn), {a, b});
  }
  values_[id] = v;
  items_[v] = {id};
  return v;
}

ValueId Lengths::vector(const std::vector<LengthId>& lengths) {
  std::vector<int64_t> numbers;
  for (const LengthId id : lengths)
    if (const auto number = known(id)) numbers.push_back(*number);
  if (numbers.size() == lengths.size()) return owner_.graph().add_constant(Constant::int64s(numbers));
  std::vector<ValueId> parts;
  for (const LengthId id : lengths) parts.push_back(emit(ViewAttrs{IntList{1}, -1}, {value(id)}));
  const ValueId v = parts.size() == 1 ? parts[0] : emit(ConcatAttrs{0}, parts);
  define(v, lengths);
  return v;
}

LengthId Lengths::of_axis(ValueId v, int64_t axis) {
  const Value& value = owner_.graph().value(v);
  for (const auto& [at, count] : value.bounded_dims)
    if (at == axis) {
      const auto it = items_.find(count);
      return it != items_.end() ? it->second[0] : symbol(count, {0, value.dims[static_cast<size_t>(axis)]});
    }
  return constant(value.dims[static_cast<size_t>(axis)]);
}

std::vector<LengthId> Lengths::of_axes(ValueId v) {
  std::vector<LengthId> all;
  const auto rank = static_cast<int64_t>(owner_.graph().value(v).dims.size());
  for (int64_t i = 0; i < rank; ++i) all.push_back(of_axis(v, i));
  return all;
}

}  // namespace sinter::convert

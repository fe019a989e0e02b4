#include "converter/types/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "converter/types/doubts.h"
#include "converter/types/power.h"
#include "converter/types/promote.h"
#include "converter/types/representable.h"
#include "converter/types/room.h"

namespace sinter::convert {
namespace {

bool narrow_float(DType t) { return is_float(t) && !is_wide_float(t); }

std::string name(DType t) { return dtype_name(t); }

class Solver {
 public:
  Solver(const OperandRules& rules, const std::vector<OperandFact>& operands, const ResultFact& wanted)
      : rules_(rules), facts_(operands), wanted_(wanted) {
    result_.operands.resize(operands.size());
  }

  Settlement run() {
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (facts_[i].dtype == DType::kNone) continue;
      switch (const char word = operand_word(rules_, i)) {
        case 'i':
          index(i);
          break;
        case 'b':
          truth(i);
          break;
        case 'N':
        case 'F':
        case 'I':
        case 'A':
          lead(i, word);
          break;
        case 'n':
        case 'f':
        case 'a':
          followers_.push_back(i);
          break;
        case 'm':
          if (facts_[i].dtype != DType::kBool) followers_.push_back(i);
          break;
        case 'q':
          if (facts_[i].dtype != DType::kInt8 && facts_[i].dtype != DType::kUint8 &&
              facts_[i].dtype != DType::kFloat8E4M3FN)
            lead(i, 'F');
          break;
        case 'p':
          parameters_.push_back(i);
          break;
        case 'e':
          exponent_ = i;
          break;
        default:
          break;
      }
    }
    if (!leaders_.empty()) meet();
    if (!leaders_.empty() && exponent_) settle_power(facts_, leaders_[0], *exponent_, wanted_, &result_);
    return std::move(result_);
  }

 private:
  void decide(size_t i, DType to, TypeRule rule, std::string reason, std::string advice = {}) {
    if (facts_[i].dtype == to) return;
    result_.operands[i] = {to, rule, std::move(reason), std::move(advice)};
  }
  void refuse(std::string why, std::string advice) {
    if (result_.refusal.empty()) result_.refusal = std::move(why), result_.advice = std::move(advice);
  }

  void index(size_t i) {
    const OperandFact& f = facts_[i];
    if (f.dtype == DType::kInt32 || f.dtype == DType::kInt64) return;
    if (is_float(f.dtype)) {
      if (!f.constant)
        return decide(i, DType::kInt64, TypeRule::kInputTable,
                      fmt::format("{} is an index or a count but has type {}; fractions are cut off", f.name,
                                  name(f.dtype)),
                      "round it and cast it to int64 in the model");
      for (const double v : f.constant->as_doubles())
        // Whole numbers beyond int64 end up at its ends: "as far as there is".
        if (v != std::trunc(v) || std::isinf(v))
          return refuse(fmt::format("{} must hold integers but is {} and holds {}", f.name, name(f.dtype), v),
                        "round it in the model, and store it as int64");
    }
    if (f.dtype == DType::kUint64 && f.constant && !survives(*f.constant, DType::kInt64, true))
      return refuse(fmt::format("{} is uint64 and holds numbers beyond int64, as which it is read", f.name),
                    "store it as int64");
    decide(i, DType::kInt64, TypeRule::kInputTable, "an index, an axis or a count");
  }

  void truth(size_t i) {
    const OperandFact& f = facts_[i];
    if (f.dtype == DType::kBool) return;
    const auto fraction = f.constant ? fraction_as_truth(*f.constant) : std::nullopt;
    std::string found;
    if (fraction) found = fmt::format("holds {}", *fraction);
    if (is_float(f.dtype) && !f.constant && !f.whole) found = fmt::format("has type {}", name(f.dtype));
    if (found.empty())
      return decide(i, DType::kBool, TypeRule::kInputTable,
                    "a truth value is required: every number but zero is true");
    decide(i, DType::kBool, TypeRule::kInputTable,
           fmt::format("{} is a truth value and {}; every number but zero is true, fractions too", f.name,
                       found),
           "compare it with a threshold, or cast it to bool, in the model");
  }

  void lead(size_t i, char word) {
    const DType t = facts_[i].dtype;
    if (word == 'I' && is_float(t)) {
      if (!facts_[i].constant || !survives(*facts_[i].constant, DType::kInt64, true))
        return refuse(fmt::format("{} is {}, and the bits of a floating-point number have no meaning here",
                                  facts_[i].name, name(t)),
                      "cast it to an integer type in the model");
    }
    wants_float_ |= word == 'F';
    wants_integer_ |= word == 'I';
    wants_number_ |= word != 'A';
    leaders_.push_back(i);
  }

  // An empty array has no more influence than a single number.
  bool literal(size_t i) const { return facts_[i].constant != nullptr && facts_[i].constant->size() <= 1; }

  // The type that the operands which are not constant meet in; nullopt where there is none.
  std::optional<DType> common_of(const std::vector<size_t>& items) const {
    std::optional<DType> type = facts_[items[0]].dtype;
    for (size_t k = 1; k < items.size() && type; ++k) type = together(*type, facts_[items[k]]);
    return type;
  }

  // promote(), but an integer that float32 cannot hold takes the sum of both to float64 (promote.int-float).
  std::optional<DType> together(DType a, const OperandFact& f) const {
    const DType b = f.dtype;
    const bool mixed = is_float(a) != is_float(b) && a != DType::kBool && b != DType::kBool;
    if (!mixed) return promote(a, b);
    const DType integer = is_float(a) ? b : a;
    if (bit_width(integer) <= 16 || (!is_float(b) && f.exact_in_float)) {
      const auto t = promote(a, b);
      return t && narrow_float(*t) && bit_width(integer) > 8 ? DType::kFloat32 : t;
    }
    return DType::kFloat64;
  }

  void meet() {
    std::vector<size_t> active, constants;
    for (const size_t i : leaders_) (facts_[i].constant ? constants : active).push_back(i);
    // Floating-point operands first: an integer whose range is proven counts in either order.
    std::sort(active.begin(), active.end(), [&](size_t a, size_t b) {
      const bool real_a = is_float(facts_[a].dtype), real_b = is_float(facts_[b].dtype);
      return real_a != real_b ? real_a : a < b;
    });
    std::optional<DType> type;
    if (active.empty()) {
      type = constants_alone(constants);
    } else {
      type = common_of(active);
      if (type) type = drop_needless_double(active, *type);
      if (type) type = admit(constants, *type);
    }
    if (!type) {
      std::string types;
      for (const size_t i : leaders_)
        types += fmt::format("{}{} is {}", types.empty() ? "" : ", ", facts_[i].name, name(facts_[i].dtype));
      return refuse(fmt::format("its operands have no common type: {}", types), common_type_advice());
    }
    if (index_of_truths_and_fractions()) return;
    if (wants_float_ && !is_float(*type)) type = DType::kFloat32;
    if (wants_number_) type = computable(*type);
    if (wants_number_ && *type == DType::kBool) type = leaders_.size() == 1 ? DType::kInt64 : DType::kInt32;
    // No such operator takes integers of few bits, so its result is not meant to wrap in them, unless
    // declared.
    if (rules_.grows && is_integer(*type) && bit_width(*type) <= 16 && wanted_.declared != *type)
      type = bit_width(wanted_.declared) == 32 ? wanted_.declared : DType::kInt64;
    if (rules_.int32_sums && leaders_.size() > 1 && is_integer(*type) && bit_width(*type) < 32)
      type = DType::kInt32;
    if (rules_.fractions && wanted_.fractions && is_integer(*type)) return give_fractions(*type);
    if (auto doubt = doubt_about(rules_, facts_, leaders_, *type, wanted_))
      result_.warning = std::move(doubt->what), result_.advice = std::move(doubt->advice);
    for (const size_t i : leaders_) explain(i, *type);
    for (const size_t i : followers_) follow(i, *type);
    result_.inner = *type;
    for (const size_t i : parameters_)
      if (const auto wider = promote(result_.inner, facts_[i].dtype)) result_.inner = *wider;
  }

  // Truth values and fractions that take each other's place make no index. True: refused.
  bool index_of_truths_and_fractions() {
    if (wanted_.index.empty() || wants_number_) return false;
    const auto first = [&](auto is) {
      return std::find_if(leaders_.begin(), leaders_.end(), [&](size_t i) { return is(facts_[i].dtype); });
    };
    const auto truth = first([](DType t) { return t == DType::kBool; }), real = first(is_float);
    if (truth == leaders_.end() || real == leaders_.end()) return false;
    refuse(fmt::format("{} is bool and {} is {}, and {} reads the result as an index", facts_[*truth].name,
                       facts_[*real].name, name(facts_[*real].dtype), wanted_.index),
           "cast both to int64 in the model");
    return true;
  }

  // The operand of a mean, a root or a logarithm of integers whose result is meant to hold fractions. The
  // standard's whole numbers are never intended for pictures and truth values; for counts and sums they may
  // be.
  void give_fractions(DType type) {
    const OperandFact& f = facts_[leaders_[0]];
    // Integers of more than 16 bits are not all float32 numbers.
    const DType wide = bit_width(type) > 16 ? DType::kFloat64 : DType::kFloat32;
    if (f.dtype == DType::kBool)
      decide(leaders_[0], wide, TypeRule::kPromoteBool,
             "0 and 1 as numbers; the result is meant to hold fractions");
    else
      decide(leaders_[0], wide, f.dtype == DType::kUint8 ? TypeRule::kImageU8 : TypeRule::kPromoteIntFloat,
             fmt::format("{} is {}, for which {} gives integers; the result is read or declared as "
                         "floating point, and is computed in floating point",
                         f.name, name(f.dtype), rules_.op),
             wide == DType::kFloat64 ? "cast it to a floating-point type in the model" : "");
    result_.inner = wide;
    result_.result = {DType::kFloat32, TypeRule::kPromoteIntFloat, "fractions of integers are float32"};
  }

  // An operand without influence on the type; an integer cannot hold fractions.
  void follow(size_t i, DType to) {
    const OperandFact& f = facts_[i];
    if (!is_float(f.dtype) || is_float(to)) return explain(i, to);
    if (f.constant && !survives(*f.constant, to, true))
      return refuse(fmt::format("{} is {} and must become {}, which does not hold all of its values ({})",
                                f.name, name(f.dtype), name(to), stray(*f.constant, to)),
                    "round it in the model, or cast the other operands to a floating-point type");
    if (f.constant) return explain(i, to);
    decide(i, to, TypeRule::kInputTable,
           fmt::format("{} has type {}; fractions are cut off", f.name, name(f.dtype)),
           "round it in the model, or cast the other operands to a floating-point type");
  }

  // Returns the first value that is lost.
  static double stray(const Constant& c, DType to) {
    for (const double v : c.as_doubles())
      if (!survives(*Constant::scalar(c.dtype(), v), to, true)) return v;
    return 0;
  }

  std::string common_type_advice() const {
    const bool real =
        std::any_of(leaders_.begin(), leaders_.end(), [&](size_t i) { return is_float(facts_[i].dtype); });
    if (wants_integer_ && real) return "cast the floating-point operands to an integer type in the model";
    return "if the values of one fit the other's type, cast it there (--keep TENSOR=TYPE, or a Cast in the "
           "model)";
  }

  std::optional<DType> constants_alone(const std::vector<size_t>& constants) const {
    // Literals bend to arrays, else all are equal.
    std::vector<size_t> arrays;
    for (const size_t i : constants)
      if (!literal(i)) arrays.push_back(i);
    if (arrays.empty() || arrays.size() == constants.size()) return common_of(constants);
    const std::optional<DType> type = common_of(arrays);
    if (!type) return type;
    std::vector<size_t> literals;
    for (const size_t i : constants)
      if (literal(i)) literals.push_back(i);
    return admit(literals, *type);
  }

  // Double operands that lose nothing as float32 do not make the others double (narrow.f64).
  DType drop_needless_double(const std::vector<size_t>& active, DType type) const {
    if (type != DType::kFloat64 || wanted_.angle) return type;
    bool narrower = false, droppable = true;
    for (const size_t i : active) {
      const OperandFact& f = facts_[i];
      if (f.dtype == DType::kFloat64)
        droppable &= f.bounded || f.long_sum;
      else
        narrower |= is_float(f.dtype), droppable &= is_float(f.dtype) || f.dtype == DType::kBool;
    }
    return narrower && droppable ? DType::kFloat32 : type;
  }

  // The type after constants have bent to it or, where their values do not survive, widened it.
  std::optional<DType> admit(const std::vector<size_t>& constants, DType type) const {
    std::optional<DType> result = type;
    for (const size_t i : constants) {
      const OperandFact& f = facts_[i];
      if (f.dtype == *result || f.dtype == DType::kBool) continue;
      if (is_float(*result)) {
        // A wider array beside a narrow activation: both are computed in float32 anyway.
        if (is_float(f.dtype) && !literal(i) && narrow_float(*result) &&
            bit_width(f.dtype) > bit_width(*result))
          result = DType::kFloat32;
        if (narrow_float(*result) && !narrow_float(f.dtype) && !survives(*f.constant, *result, true))
          result = DType::kFloat32;
        if (narrow_float(*result) && narrow_float(f.dtype) && f.dtype != *result)
          result = promote(*result, f.dtype);
        if (!result) return result;
        const bool rounds = wanted_.angle && f.dtype == DType::kFloat64 && !literal(i) &&
                            !survives(*f.constant, DType::kFloat32, true);
        if (rounds || !survives(*f.constant, *result, false)) result = DType::kFloat64;
      } else if (is_float(f.dtype)) {
        // A whole literal beside an integer is an integer; anything else makes the sum a floating-point one,
        // and so does a result of few bits that is declared or read as such.
        if (literal(i) && !wants_float_ && !wanted_.fractions && !rules_.divides && *result != DType::kBool &&
            survives(*f.constant, *result, true))
          continue;
        bool exact = true;
        for (const size_t k : leaders_)
          if (!facts_[k].constant && is_integer(facts_[k].dtype))
            exact &= bit_width(facts_[k].dtype) <= 16 || facts_[k].exact_in_float;
        result = exact && *promote(f.dtype, DType::kFloat32) == DType::kFloat32 ? DType::kFloat32
                                                                                : DType::kFloat64;
        if (wants_integer_) return std::nullopt;
      } else if (*result == DType::kBool || !literal(i) || !survives(*f.constant, *result, true)) {
        // uint64 meets a signed type only where the values fit.
        const auto wider = promote(*result, f.dtype);
        if (!wider && *result != DType::kBool && survives(*f.constant, *result, true)) continue;
        result = wider;
        if (!result) return result;
      } else {
        result = room_for_result(rules_, wanted_, *result, *f.constant, !facts_.empty() && &f == &facts_[0]);
      }
    }
    return result;
  }

  void explain(size_t i, DType to) {
    const OperandFact& f = facts_[i];
    if (f.dtype == to) return;
    const std::string what = fmt::format("the operands meet in {}", name(to));
    if (f.dtype == DType::kBool) return decide(i, to, TypeRule::kPromoteBool, "0 and 1 as numbers; " + what);
    // An integer that not even float64 holds.
    const bool lossy =
        f.constant && is_integer(f.dtype) && is_float(to) && !survives(*f.constant, DType::kFloat64, true);
    if (lossy)
      return decide(i, to, literal(i) ? TypeRule::kLiteralWeak : TypeRule::kConstRetype,
                    fmt::format("{} is {} and holds integers of more than 53 bits, which {} rounds", f.name,
                                name(f.dtype), name(to)),
                    "store numbers that the type holds");
    if (f.constant && literal(i))
      return decide(i, to, TypeRule::kLiteralWeak, "a single number takes the type of the other operand");
    if (f.constant)
      return decide(i, to, TypeRule::kConstRetype, "rounded once from the stored type for this node only");
    if (f.dtype == DType::kFloat64 && is_float(to))
      return decide(i, to, TypeRule::kNarrowF64,
                    f.bounded ? "its size is bounded and the other operands are no more precise"
                              : "it enters a long sum with operands that are no more precise");
    if (is_float(f.dtype) && is_float(to)) return decide(i, to, TypeRule::kPromoteFloat, what);
    if (!is_float(f.dtype) && is_float(to)) {
      if (wants_float_ && leaders_.size() == 1)
        return decide(i, to, f.dtype == DType::kUint8 ? TypeRule::kImageU8 : TypeRule::kPromoteIntFloat,
                      "the operator takes floating-point numbers");
      if (f.dtype == DType::kUint8 && rules_.sums) return decide(i, to, TypeRule::kImageU8, what);
      return decide(
          i, to, TypeRule::kPromoteIntFloat,
          to == DType::kFloat64 ? "integers of this width are not all float32 numbers; " + what : what);
    }
    if (is_float(f.dtype)) return decide(i, to, TypeRule::kConstRetype, what);
    if (rules_.grows || (rules_.int32_sums && bit_width(f.dtype) < 32))
      return decide(i, to, TypeRule::kPromoteInt,
                    fmt::format("results of many {} need more bits", name(f.dtype)));
    decide(i, to, TypeRule::kPromoteInt, what);
  }

  const OperandRules& rules_;
  const std::vector<OperandFact>& facts_;
  const ResultFact& wanted_;
  std::vector<size_t> leaders_, followers_, parameters_;
  std::optional<size_t> exponent_;
  bool wants_float_ = false, wants_integer_ = false, wants_number_ = false;
  Settlement result_;
};

}  // namespace

Settlement settle(const OperandRules& rules, const std::vector<OperandFact>& operands,
                  const ResultFact& result) {
  return Solver(rules, operands, result).run();
}

}  // namespace sinter::convert

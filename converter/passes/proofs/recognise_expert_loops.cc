// Mixtures of experts that are written as a loop over the experts (part of recognise-experts):
//
//   choice, token = NonZero(chosen == e)              of each expert e, in either order
//   y = y + Scatter(zeros, token, expert_e(x[token]) * weight[token, choice])
//
// Each expert's rows have a bound of all choices, so that every expert is computed for that many rows. Here
// one row for each choice of a token is multiplied by the weights of its expert, and a token's rows are added
// in the order of its choices.
//
// Which choice row i of NonZero's operand stands for is found by following its elements to the TopK; what
// rows the indices name, by following these to NonZero's results.
#include <algorithm>
#include <array>

#include "converter/passes/passes.h"
#include "converter/passes/proofs/chosen_experts.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int kFollowed = 24;
constexpr int64_t kMostFollowed = int64_t{1} << 24;  // that are followed, of all experts

// The rows that an expert is computed for: those of a NonZero.
struct ExpertRows {
  int found = -1;  // the NonZero
  int64_t expert = 0;
  std::vector<int64_t> choice;  // of each place of its operand: which place of the TopK
  Routes routes;
  ValueId updates = kAbsent;
};

class LoopRecogniser {
 public:
  explicit LoopRecogniser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = e_.size(); n-- > 0;)
      if (unclamped(e_.node(n).as<AddAttrs>()) && e_.reads(e_.node(n).outputs[0]) > 0) match(n);
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }

  // The one number of a constant.
  std::optional<double> number(ValueId id) {
    if (id < 0 || !e_.value(id).constant || e_.value(id).constant->size() < 1 ||
        e_.value(id).constant->size() > kMostFollowed)
      return std::nullopt;
    const std::vector<double> all = e_.value(id).constant->as_doubles();
    return std::all_of(all.begin(), all.end(), [&](double d) { return d == all[0]; }) ? std::optional(all[0])
                                                                                      : std::nullopt;
  }
  // Where(x < 0, x + length, x), of a value that is never negative; kAbsent: something else.
  ValueId never_below(const Node& choice) {
    const int less = e_.made_by<CompareAttrs>(choice.inputs[0]);
    const bool below = less >= 0 &&
                       e_.node(less).as<CompareAttrs>()->fn == static_cast<int64_t>(CompareFn::kLess) &&
                       e_.node(less).inputs[0] == choice.inputs[2] && number(e_.node(less).inputs[1]) == 0.0;
    return below ? choice.inputs[2] : kAbsent;
  }

  // ---- elements

  struct Element {
    ValueId of = kAbsent;
    int64_t at = 0;  // in row-major order
  };
  static Dims coordinates(int64_t at, const Dims& dims) {
    Dims c(dims.size());
    for (size_t i = dims.size(); i-- > 0; at /= dims[i]) c[i] = at % dims[i];
    return c;
  }
  static int64_t place(const Dims& c, const Dims& dims) {
    int64_t at = 0;
    for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + c[i];
    return at;
  }
  // The element of an operand that broadcasts to `dims`.
  int64_t broadcast(int64_t at, const Dims& dims, const Dims& from) {
    Dims c = coordinates(at, dims);
    c.erase(c.begin(), c.begin() + static_cast<ptrdiff_t>(dims.size() - from.size()));
    for (size_t i = 0; i < from.size(); ++i) c[i] = from[i] == 1 ? 0 : c[i];
    return place(c, from);
  }
  static bool is_wide(DType t) { return t == DType::kInt32 || t == DType::kInt64; }
  // Where an integer or truth value comes from by operations that move it.
  Element source(Element x) {
    for (int steps = 0; steps < kFollowed; ++steps) {
      const int n = e_.producer(x.of);
      if (n < 0 || e_.node(n).inputs.empty()) return x;
      const Node& node = e_.node(n);
      const ValueId from = node.inputs[0];
      if (const auto* v = node.as<ViewAttrs>(); v != nullptr && v->dtype < 0) {
        x.of = from;
      } else if (node.op() == Op::kCopy) {
        x.of = from;
      } else if (node.op() == Op::kCast && is_wide(e_.value(x.of).dtype) && is_wide(e_.value(from).dtype)) {
        x.of = from;
      } else if (const auto* t = node.as<TransposeAttrs>()) {
        const Dims c = coordinates(x.at, dims(x.of));
        Dims was(c.size());
        for (int i = 0; i < t->perm.size(); ++i)
          was[static_cast<size_t>(t->perm[i])] = c[static_cast<size_t>(i)];
        x = {from, place(was, dims(from))};
      } else if (const auto* s = node.as<SliceAttrs>()) {
        Dims c = coordinates(x.at, dims(x.of));
        for (int i = 0; i < s->starts.size(); ++i)
          c[static_cast<size_t>(i)] = s->starts[i] + c[static_cast<size_t>(i)] * s->steps[i];
        x = {from, place(c, dims(from))};
      } else if (node.op() == Op::kBroadcast) {
        x = {from, broadcast(x.at, dims(x.of), dims(from))};
      } else if (node.op() == Op::kWhere) {
        const ValueId same = never_below(node);
        if (same < 0 || dims(same) != dims(x.of) || !is_place(e_, same)) return x;
        x.of = same;
      } else {
        return x;
      }
    }
    return x;
  }

  // Which place of a TopK an element of NonZero's operand compares with which number; nullopt: something
  // else.
  struct Test {
    Element place;
    int64_t number = 0;
  };
  std::optional<Test> test(Element x) {
    x = source(x);
    if (const int cast = e_.made_by<CastAttrs>(x.of); cast >= 0 && e_.value(x.of).dtype == DType::kBool &&
                                                      e_.value(e_.node(cast).inputs[0]).dtype != DType::kBool)
      x = source({e_.node(cast).inputs[0], x.at});
    if (const int hot = e_.made_by<WhereAttrs>(x.of); hot >= 0) {
      const Node& node = e_.node(hot);
      const auto on = number(node.inputs[1]), off = number(node.inputs[2]);
      if (!on || !off || *on == 0 || *off != 0) return std::nullopt;
      x = source({node.inputs[0], broadcast(x.at, dims(x.of), dims(node.inputs[0]))});
    }
    const int equal = e_.made_by<CompareAttrs>(x.of);
    if (equal < 0 || e_.node(equal).as<CompareAttrs>()->fn != static_cast<int64_t>(CompareFn::kEqual))
      return std::nullopt;
    const Node& node = e_.node(equal);
    const auto operand = [&](size_t i) {
      return source({node.inputs[i], broadcast(x.at, dims(x.of), dims(node.inputs[i]))});
    };
    for (size_t side = 0; side < 2; ++side) {
      const ConstantPtr& c = e_.value(operand(1 - side).of).constant;
      if (c && is_integer(c->dtype()) && c->size() <= kMostFollowed)
        return Test{operand(side), numbers(operand(1 - side).of)[static_cast<size_t>(operand(1 - side).at)]};
    }
    return std::nullopt;
  }
  const std::vector<int64_t>& numbers(ValueId constant) {
    const auto [at, fresh] = numbers_.emplace(constant, std::vector<int64_t>{});
    if (fresh) at->second = e_.value(constant).constant->as_int64s();
    return at->second;
  }

  // ---- indices

  // a * row + b * column + c, of the places that a NonZero of two axes has found.
  struct Linear {
    int found = -1;
    std::array<int64_t, 2> factors{};
    int64_t offset = 0;
  };
  // Is a truth value that of the rows of `rows` which a NonZero has found?
  bool is_used(ValueId id, int found, const Dims& rows) {
    if (rows.empty()) return false;
    Dims own = rows;
    std::fill(own.begin() + 1, own.end(), 1);
    if (dims(id) != own) return false;
    for (int n; (n = e_.made_by<ViewAttrs>(id)) >= 0;) id = e_.node(n).inputs[0];
    const int less = e_.made_by<CompareAttrs>(id);
    if (less < 0 || e_.node(less).as<CompareAttrs>()->fn != static_cast<int64_t>(CompareFn::kLess) ||
        e_.node(less).inputs[1] != e_.node(found).outputs[1])
      return false;
    const ConstantPtr& count = e_.value(e_.node(less).inputs[0]).constant;
    if (!count || !is_integer(count->dtype()) || count->size() != rows[0] || rows[0] > kMostFollowed)
      return false;
    const std::vector<int64_t>& all = numbers(e_.node(less).inputs[0]);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] != static_cast<int64_t>(i)) return false;
    return true;
  }
  std::optional<Linear> linear(ValueId id, int depth = kFollowed) {
    const int n = e_.producer(id);
    if (n < 0 || depth == 0 || !is_integer(e_.value(id).dtype)) return std::nullopt;
    const Node& node = e_.node(n);
    const auto deeper = [&](size_t i) { return linear(node.inputs[i], depth - 1); };
    switch (node.op()) {
      case Op::kView:
      case Op::kCopy:
      case Op::kCast:
        return deeper(0);
      case Op::kBroadcast: {
        // Of rows, along columns.
        const Dims &from = dims(node.inputs[0]), &to = dims(id);
        return from.size() == to.size() && from.size() == 2 && from[0] == to[0] && from[1] == 1
                   ? deeper(0)
                   : std::nullopt;
      }
      case Op::kSlice: {
        // One row of NonZero's result, or one column of it transposed.
        const SliceAttrs& a = *node.as<SliceAttrs>();
        int found = e_.producer(node.inputs[0]);
        int axis = 0;
        if (found >= 0 && e_.node(found).op() == Op::kTranspose)
          axis = 1, found = e_.producer(e_.node(found).inputs[0]);
        if (found < 0 || e_.node(found).op() != Op::kNonZero || dims(e_.node(found).outputs[0])[0] != 2 ||
            a.starts.size() != 2 || a.sizes[axis] != 1 || a.starts[1 - axis] != 0 || a.steps[1 - axis] != 1 ||
            a.sizes[1 - axis] != dims(node.inputs[0])[static_cast<size_t>(1 - axis)])
          return std::nullopt;
        Linear r;
        r.found = found;
        r.factors[static_cast<size_t>(a.starts[axis])] = 1;
        return r;
      }
      case Op::kMul:
      case Op::kAdd: {
        if (!unclamped(node.as<MulAttrs>()) && !unclamped(node.as<AddAttrs>())) return std::nullopt;
        for (size_t side = 0; side < 2; ++side) {
          const auto c = number(node.inputs[side]);
          auto r = c ? deeper(1 - side) : std::nullopt;
          if (!c) continue;
          const auto i = static_cast<int64_t>(*c);
          if (r && node.op() == Op::kAdd) r->offset += i;
          if (r && node.op() == Op::kMul) r->offset *= i, r->factors[0] *= i, r->factors[1] *= i;
          return r;
        }
        if (node.op() == Op::kMul || dims(node.inputs[0]) != dims(node.inputs[1])) return std::nullopt;
        auto a = deeper(0);
        const auto b = a ? deeper(1) : std::nullopt;
        if (!b || a->found != b->found) return std::nullopt;
        for (size_t i = 0; i < 2; ++i) a->factors[i] += b->factors[i];
        a->offset += b->offset;
        return a;
      }
      case Op::kWhere: {
        // Padding is filled; an index from the end is one that is negative.
        if (const ValueId same = never_below(node); same >= 0) {
          const auto r = linear(same, depth - 1);
          const bool positive = r && r->factors[0] >= 0 && r->factors[1] >= 0 && r->offset >= 0;
          return positive && dims(same) == dims(id) ? r : std::nullopt;
        }
        const auto r = deeper(1);
        return r && number(node.inputs[2]) && dims(node.inputs[1]) == dims(id) &&
                       is_used(node.inputs[0], r->found, dims(id))
                   ? r
                   : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }
  // What an index is at place i of NonZero's operand.
  int64_t value_at(const Linear& r, int64_t i) {
    const int64_t width = dims(e_.node(r.found).inputs[0])[1];
    return r.factors[0] * (i / width) + r.factors[1] * (i % width) + r.offset;
  }
  enum class Names : uint8_t { kNothing, kTokens, kChoices };
  Names names(const Linear& r, const ExpertRows& rows) {
    bool tokens = true, choices = true;
    for (size_t i = 0; i < rows.choice.size(); ++i) {
      const int64_t at = value_at(r, static_cast<int64_t>(i));
      tokens &= at == rows.choice[i] / rows.routes.choices;
      choices &= at == rows.choice[i];
    }
    return tokens ? Names::kTokens : choices ? Names::kChoices : Names::kNothing;
  }

  // ---- experts

  std::optional<ExpertRows> rows_of(int found) {
    ExpertRows r;
    r.found = found;
    const ValueId mask = e_.node(found).inputs[0];
    if (dims(mask).size() != 2 || !e_.value(mask).bounded_dims.empty()) return std::nullopt;
    const int64_t count = element_count(dims(mask));
    followed_ += count;
    if (count == 0 || followed_ > kMostFollowed) return std::nullopt;
    std::vector<bool> taken(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const auto t = test({mask, i});
      if (!t) return std::nullopt;
      if (i == 0) {
        const auto routes = routes_of(e_, t->place.of);
        if (!routes || routes->rows() != count) return std::nullopt;
        r.routes = *routes, r.expert = t->number;
      }
      if (t->place.of != r.routes.index || t->number != r.expert || taken[static_cast<size_t>(t->place.at)])
        return std::nullopt;
      taken[static_cast<size_t>(t->place.at)] = true;
      r.choice.push_back(t->place.at);
    }
    return r.expert >= 0 && r.expert < r.routes.experts ? std::optional(r) : std::nullopt;
  }

  // Slice(ScatterElements(zeros, tokens, updates)): what one expert adds. nullopt: something else.
  std::optional<ExpertRows> addend(ValueId id) {
    const int cut = e_.made_by<SliceAttrs>(id);
    if (cut < 0 || dims(id).size() != 2) return std::nullopt;
    const SliceAttrs& a = *e_.node(cut).as<SliceAttrs>();
    const ValueId whole = e_.node(cut).inputs[0];
    const int scatter = e_.made_by<ScatterElementsAttrs>(whole);
    if (scatter < 0 || e_.node(scatter).as<ScatterElementsAttrs>()->axis != 0 ||
        number(e_.node(scatter).inputs[0]) != 0.0 || a.starts != IntList{0, 0} || a.steps != IntList{1, 1} ||
        dims(whole) != Dims{dims(id)[0] + 1, dims(id)[1]})
      return std::nullopt;
    const auto reduction =
        static_cast<ScatterReduction>(e_.node(scatter).as<ScatterElementsAttrs>()->reduction);
    if (reduction != ScatterReduction::kNone && reduction != ScatterReduction::kAdd) return std::nullopt;
    // Padding goes to the row that is cut off.
    const ValueId tokens = e_.node(scatter).inputs[1];
    const int fill = e_.made_by<WhereAttrs>(tokens);
    if (fill < 0 || number(e_.node(fill).inputs[2]) != static_cast<double>(dims(id)[0])) return std::nullopt;
    const auto at = linear(tokens);
    if (!at || !is_used(e_.node(fill).inputs[0], at->found, dims(tokens))) return std::nullopt;
    auto rows = rows_of(at->found);
    if (!rows || rows->routes.tokens != dims(id)[0] || names(*at, *rows) != Names::kTokens ||
        dims(tokens) != Dims{rows->routes.rows(), dims(id)[1]})
      return std::nullopt;
    rows->updates = e_.node(scatter).inputs[2];
    return rows;
  }

  void match(int n) {
    std::vector<ExpertRows> all;
    ValueId id = e_.node(n).outputs[0];
    if (dims(id).size() != 2 || e_.value(id).dtype != DType::kFloat32 || !e_.value(id).bounded_dims.empty())
      return;
    for (int add = n; add >= 0 && unclamped(e_.node(add).as<AddAttrs>());) {
      if (add != n && !e_.single_read(id)) return;
      std::optional<ExpertRows> one;
      size_t side = 0;
      for (; side < 2 && !one; ++side) one = addend(e_.node(add).inputs[side]);
      if (!one) return;
      all.push_back(std::move(*one));
      id = e_.node(add).inputs[2 - side];
      if (dims(id) != dims(e_.node(n).outputs[0])) return;
      add = e_.producer(id);
    }
    if (number(id) != 0.0) return;
    const Routes routes = all.empty() ? Routes{} : all[0].routes;
    std::sort(all.begin(), all.end(),
              [](const ExpertRows& a, const ExpertRows& b) { return a.expert < b.expert; });
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].routes.index != routes.index || (i > 0 && all[i].expert == all[i - 1].expert)) return;
    if (all.empty() || routes.choices >= routes.experts) return;
    write(n, routes, all);
  }

  // One number for each expert, and for each row that of its expert.
  template <class T>
  ValueId of_rows(int n, const Routes& routes, DType type, const std::vector<T>& numbers) {
    const ValueId table = e_.constant(Constant::of<T>(type, {routes.experts}, numbers));
    return e_.insert(n, GatherAttrs{0}, {table, routes.index});
  }

  void write(int n, Routes routes, const std::vector<ExpertRows>& all) {
    // Experts that no row of an exporter's example had chosen are left out: they add nothing.
    ValueId kept = kAbsent;
    if (const auto count = static_cast<int64_t>(all.size()); count < routes.experts) {
      std::vector<int64_t> place(static_cast<size_t>(routes.experts));
      std::vector<uint8_t> is_there(place.size());
      for (size_t i = 0; i < all.size(); ++i) {
        place[static_cast<size_t>(all[i].expert)] = static_cast<int64_t>(i);
        is_there[static_cast<size_t>(all[i].expert)] = 1;
      }
      kept = of_rows(n, routes, DType::kBool, is_there);
      routes.index = of_rows(n, routes, DType::kInt64, place);
      routes.experts = count;
      if (kept < 0 || routes.index < 0) return;
    }
    ChosenExperts* experts = nullptr;
    const auto leaf = [&](const ChosenExperts::Values& values) -> ValueId {
      ValueId from = kAbsent;
      auto what = Names::kNothing;
      for (size_t i = 0; i < values.size(); ++i) {
        const int gather = e_.made_by<GatherAttrs>(values[i]);
        const auto at = gather < 0 ? std::nullopt : linear(e_.node(gather).inputs[1]);
        if (!at || at->found != all[i].found ||
            element_count(dims(e_.node(gather).inputs[1])) != routes.rows())
          return kAbsent;
        const Names here = names(*at, all[i]);
        if (i > 0 && (here != what || e_.node(gather).inputs[0] != from)) return kAbsent;
        from = e_.node(gather).inputs[0], what = here;
        const auto axis = static_cast<size_t>(e_.node(gather).as<GatherAttrs>()->axis);
        const int64_t rows = what == Names::kTokens ? routes.tokens : routes.rows();
        if (dims(from)[axis] != rows ||
            element_count(Dims(dims(from).begin(), dims(from).begin() + static_cast<ptrdiff_t>(axis))) != 1)
          return kAbsent;
      }
      if (what == Names::kNothing || !e_.value(from).bounded_dims.empty()) return kAbsent;
      const int64_t columns =
          element_count(dims(from)) / (what == Names::kTokens ? routes.tokens : routes.rows());
      return what == Names::kTokens ? experts->repeated(from, columns)
                                    : experts->view(from, {routes.rows(), columns});
    };
    ChosenExperts of(e_, n, routes, false, leaf);
    experts = &of;
    ChosenExperts::Values updates;
    for (const ExpertRows& r : all) updates.push_back(r.updates);
    ValueId rows = of.rows(updates);
    if (kept != kAbsent && rows >= 0)
      rows = e_.insert(
          n, WhereAttrs{},
          {of.view(kept, {routes.rows(), 1}), rows, e_.constant(Constant::scalar(DType::kFloat32, 0))});
    const ValueId y = of.sum(rows);
    if (y < 0) return;
    e_.replace(n, ViewAttrs{IntList(std::span<const int64_t>(dims(e_.node(n).outputs[0]))), -1}, {y});
  }

  Editor e_;
  int64_t followed_ = 0;
  std::map<ValueId, std::vector<int64_t>> numbers_;
};

}  // namespace

int recognise_expert_loops(Graph& graph) { return LoopRecogniser(graph).run(); }

}  // namespace sinter::convert

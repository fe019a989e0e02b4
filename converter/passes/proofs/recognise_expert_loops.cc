// Mixtures of experts that are written as a loop over the experts (part of recognise-experts):
//
//   choice, token = NonZero(chosen == e)              of each expert e, in either order
//   y = y + Scatter(zeros, token, expert_e(x[token]) * weight[token, choice])
//
// Each expert's rows have a bound of all choices, so that every expert is computed for that many rows. Here
// one row for each choice of a token is multiplied by the weights of its expert, and a token's rows are added
// in the order of its choices. The proof that the indices name these rows is in expert_rows.h.
#include <algorithm>

#include "converter/passes/passes.h"
#include "converter/passes/proofs/expert_rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

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

  // Returns the rows that one expert adds by Slice(ScatterElements(zeros, tokens, updates)); nullopt:
  // something else.
  std::optional<ExpertRows> addend(ValueId id) {
    const int cut = e_.made_by<SliceAttrs>(id);
    if (cut < 0 || dims(id).size() != 2) return std::nullopt;
    const SliceAttrs& a = *e_.node(cut).as<SliceAttrs>();
    const ValueId whole = e_.node(cut).inputs[0];
    const int scatter = e_.made_by<ScatterElementsAttrs>(whole);
    if (scatter < 0 || e_.node(scatter).as<ScatterElementsAttrs>()->axis != 0 ||
        number_of(e_, e_.node(scatter).inputs[0]) != 0.0 || a.starts != IntList{0, 0} ||
        a.steps != IntList{1, 1} || dims(whole) != Dims{dims(id)[0] + 1, dims(id)[1]})
      return std::nullopt;
    const auto reduction =
        static_cast<ScatterReduction>(e_.node(scatter).as<ScatterElementsAttrs>()->reduction);
    if (reduction != ScatterReduction::kNone && reduction != ScatterReduction::kAdd) return std::nullopt;
    // Padding goes to the row that is cut off.
    const ValueId tokens = e_.node(scatter).inputs[1];
    const int fill = e_.made_by<WhereAttrs>(tokens);
    if (fill < 0 || number_of(e_, e_.node(fill).inputs[2]) != static_cast<double>(dims(id)[0]))
      return std::nullopt;
    auto rows = rows_of_tokens(e_, tokens);
    if (!rows || rows->routes.tokens != dims(id)[0] || dims(tokens) != Dims{rows->routes.rows(), dims(id)[1]})
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
    if (number_of(e_, id) != 0.0) return;
    const Routes routes = all.empty() ? Routes{} : all[0].routes;
    std::sort(all.begin(), all.end(),
              [](const ExpertRows& a, const ExpertRows& b) { return a.expert < b.expert; });
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].routes.index != routes.index || (i > 0 && all[i].expert == all[i - 1].expert)) return;
    if (all.empty() || routes.choices >= routes.experts) return;
    write(n, routes, all);
  }

  // Returns the number of each row's expert, of one number for each expert.
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
        if (gather < 0 || element_count(dims(e_.node(gather).inputs[1])) != routes.rows()) return kAbsent;
        const Names here = named_by(e_, e_.node(gather).inputs[1], all[i]);
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
    e_.replace(n, ViewAttrs{IntList(dims(e_.node(n).outputs[0])), -1}, {y});
  }

  Editor e_;
};

}  // namespace

int recognise_expert_loops(Graph& graph) { return LoopRecogniser(graph).run(); }

}  // namespace sinter::convert

// Rows of a cache, written where the position is. torch writes x[:, :, places] = rows as
//
//   Transpose(ScatterNd(Transpose(x), places [S, 1], Transpose(rows)))
//
// with the axis in front, which moves the whole cache twice. Places start, start + 1, .. are those of a
// CacheUpdate. A negative place counts from the end. Places that are partly negative, which no cache has,
// fail the run.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

class RowWrites {
 public:
  explicit RowWrites(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) match(n);
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }

  // Start is the beginning of places scalar + first, + 1, ...
  struct Start {
    ValueId scalar = kAbsent;
    int64_t first = 0;
  };
  std::optional<Start> start_of(ValueId id, int64_t count) {
    for (int n = e_.producer(id); n >= 0; n = e_.producer(id)) {
      const Node& node = e_.node(n);
      const auto* view = node.as<ViewAttrs>();
      const bool moves = (view != nullptr && view->dtype < 0) || node.as<CastAttrs>() != nullptr;
      if (!moves || !is_integer(e_.value(node.inputs[0]).dtype)) break;
      id = node.inputs[0];
    }
    if (count == 1) return Start{id, 0};
    const int sum = e_.made_by<AddAttrs>(id);
    if (sum < 0) return std::nullopt;
    const auto& in = e_.node(sum).inputs;
    const size_t side = e_.value(in[0]).constant ? 0 : 1;
    const ConstantPtr& steps = e_.value(in[side]).constant;
    if (!steps || steps->size() != count || element_count(dims(in[1 - side])) != 1) return std::nullopt;
    const std::vector<int64_t> items = steps->as_int64s();
    for (size_t i = 1; i < items.size(); ++i)
      if (items[i] != items[0] + static_cast<int64_t>(i)) return std::nullopt;
    return Start{in[1 - side], items[0]};
  }

  void match(int n) {
    const auto* back = e_.node(n).as<TransposeAttrs>();
    const int write = back != nullptr ? e_.made_by<ScatterNdAttrs>(e_.node(n).inputs[0]) : -1;
    if (write < 0 || !e_.single_read(e_.node(n).inputs[0])) return;
    const Node& scatter = e_.node(write);
    if (scatter.as<ScatterNdAttrs>()->reduction != static_cast<int64_t>(ScatterReduction::kNone)) return;
    const int front = e_.made_by<TransposeAttrs>(scatter.inputs[0]);
    if (front < 0) return;
    const IntList& to = e_.node(front).as<TransposeAttrs>()->perm;
    const ValueId cache = e_.node(front).inputs[0], places = scatter.inputs[1], rows = scatter.inputs[2];
    const Dims &whole = dims(cache), &index = dims(places), &written = dims(rows);
    const int64_t axis = to[0];
    for (int i = 0; i < to.size(); ++i)
      if (back->perm[static_cast<int>(to[i])] != i) return;
    for (const ValueId id : {cache, places, rows, e_.node(n).outputs[0]})
      if (!e_.value(id).bounded_dims.empty()) return;
    if (axis < 1 || index.size() != 2 || index[1] != 1 || written.size() != whole.size() || index[0] < 1 ||
        written[0] != index[0] || index[0] > whole[static_cast<size_t>(axis)] || e_.value(places).constant ||
        e_.value(cache).constant)
      return;
    const auto start = start_of(places, index[0]);
    if (!start) return;
    const ValueId at = first_places(n, *start, whole[static_cast<size_t>(axis)], whole[0]),
                  there = at < 0 ? kAbsent : e_.insert(n, TransposeAttrs{back->perm}, {rows});
    if (there >= 0) e_.replace(n, CacheUpdateAttrs{axis, 0}, {cache, there, at});
  }

  // Returns the first places, [B] of int64.
  ValueId first_places(int n, const Start& start, int64_t room, int64_t batch) {
    const auto number = [&](int64_t i) { return e_.constant(Constant::scalar_int(DType::kInt64, i)); };
    const auto insert = [&](OpAttrs attrs, std::vector<ValueId> inputs) {
      return std::count(inputs.begin(), inputs.end(), kAbsent) > 0
                 ? kAbsent
                 : e_.insert(n, std::move(attrs), std::move(inputs));
    };
    ValueId at = start.scalar;
    if (e_.value(at).dtype != DType::kInt64)
      at = insert(CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {at});
    at = insert(ViewAttrs{IntList{1}, -1}, {at});
    if (start.first != 0) at = insert(AddAttrs{}, {at, number(start.first)});
    const ValueId below = insert(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {at, number(0)});
    at = insert(WhereAttrs{}, {below, insert(AddAttrs{}, {at, number(room)}), at});
    return batch == 1 ? at : insert(BroadcastAttrs{IntList{batch}}, {at});
  }

  Editor e_;
};

}  // namespace

int recognise_row_writes(Graph& graph) { return RowWrites(graph).run(); }

}  // namespace sinter::convert

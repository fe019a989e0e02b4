#include "converter/ir/op_traits.h"

#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

struct Facts {
  WorkKind work;
  Elements elements;
  IntegerRow integers;
};

// The values of the column `integers`: the name of a row, or one of these.
namespace forms {
constexpr IntegerRow kNone{IntegerRow::kNone}, kSame{IntegerRow::kSame}, kTable{IntegerRow::kTable};
#define SINTER_OP(name, ...) constexpr IntegerRow k##name{IntegerRow::kRow, Op::k##name};
#include "schemas/ops.def"
#undef SINTER_OP
}  // namespace forms

constexpr Facts kFacts[] = {
#define SINTER_OP(name, id, version, mini, maxi, mino, maxo, ins, outs, traits, work, elements, integers, \
                  attributes)                                                                             \
  {WorkKind::k##work, Elements::k##elements, forms::k##integers},
#include "schemas/ops.def"
#undef SINTER_OP
};

// The facts for a number that does not name an operation.
constexpr Facts kNothingKnown{WorkKind::kNothing, Elements::kComputed, forms::kNone};

const Facts& facts_of(Op op) {
  const int row = op_index(op);
  return row < 0 ? kNothingKnown : kFacts[row];
}

bool is_nearest(const OpAttrs& attrs) {
  const auto* resize = std::get_if<ResizeAttrs>(&attrs);
  return resize != nullptr && static_cast<ResizeMode>(resize->mode) == ResizeMode::kNearest &&
         static_cast<ResizeCoordinates>(resize->coordinates) != ResizeCoordinates::kTfCropAndResize;
}

bool changes_type(const OpAttrs& attrs) {
  const auto* view = std::get_if<ViewAttrs>(&attrs);
  return view != nullptr && view->dtype >= 0;
}

}  // namespace

WorkKind work_kind(Op op) { return facts_of(op).work; }
Elements elements_of(Op op) { return facts_of(op).elements; }
IntegerRow integer_row(Op op) { return facts_of(op).integers; }

bool has_traits(Op op, uint32_t traits) {
  const OpInfo* info = op_info(op);
  return info != nullptr && (info->traits & traits) == traits;
}

bool moves(Op op) {
  const Elements e = elements_of(op);
  return e == Elements::kMoved || e == Elements::kPicked || e == Elements::kJoined || e == Elements::kPadded;
}

bool moves(const OpAttrs& attrs) {
  return (moves(op_of(attrs)) && !changes_type(attrs)) || is_nearest(attrs);
}

bool moves_one(const OpAttrs& attrs) {
  const Elements e = elements_of(op_of(attrs));
  return (e == Elements::kMoved || e == Elements::kPicked) && !changes_type(attrs);
}

bool moves_whole(const OpAttrs& attrs) {
  return elements_of(op_of(attrs)) == Elements::kMoved && !changes_type(attrs) &&
         !std::holds_alternative<SliceAttrs>(attrs);
}

bool moves_each_once(const OpAttrs& attrs) {
  return moves_whole(attrs) && !std::holds_alternative<TileAttrs>(attrs) &&
         !std::holds_alternative<BroadcastAttrs>(attrs);
}

bool moves_by_attributes(const OpAttrs& attrs) {
  return moves(attrs) && elements_of(op_of(attrs)) != Elements::kPicked;
}

bool reads_indices(Op op) {
  const Elements e = elements_of(op);
  return (e == Elements::kPicked && op != Op::kReverseSequence) ||
         (e == Elements::kWritten && op != Op::kCacheUpdate);
}

size_t selected_operands(const Node& node) {
  if (moves(node.attrs)) return elements_of(node.op()) == Elements::kJoined ? node.inputs.size() : 1;
  if (const auto* reduce = node.as<ReduceAttrs>()) {
    const auto fn = static_cast<ReduceFn>(reduce->fn);
    return fn == ReduceFn::kMax || fn == ReduceFn::kMin ? 1 : 0;
  }
  if (node.as<MaxPoolAttrs>() != nullptr) return 1;
  return node.as<MinAttrs>() != nullptr || node.as<MaxAttrs>() != nullptr ? 2 : 0;
}

bool is_weighted_product(Op op) {
  const WorkKind work = work_kind(op);
  return integer_row(op).kind == IntegerRow::kRow &&
         (work == WorkKind::kProduct || work == WorkKind::kDepthwiseProduct ||
          work == WorkKind::kTransposedProduct);
}

bool is_product(Op op) { return is_weighted_product(op) || op == Op::kMatMul; }

bool is_recurrent(Op op) {
  return work_kind(op) == WorkKind::kRecurrent && integer_row(op).kind != IntegerRow::kSame;
}

bool may_be_weights(Op op, size_t i) {
  if (is_weighted_product(op)) return i == 1;
  if (is_recurrent(op)) return i == 1 || i == 2;
  return op == Op::kMatMul || (op == Op::kGather && i == 0);
}

bool is_within_one(const OpAttrs& attrs) {
  const auto* softmax = std::get_if<SoftmaxAttrs>(&attrs);
  return elements_of(op_of(attrs)) == Elements::kWithinOne && (softmax == nullptr || softmax->log == 0);
}

}  // namespace sinter::convert

#include "converter/ir/builder.h"

#include <algorithm>

#include "converter/ir/computed_parts.h"
#include "converter/ir/dims.h"
#include "converter/ir/known_results.h"
#include "converter/ir/large_bytes.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/recipe.h"
#include "runtime/kernels/reference.h"

namespace sinter::convert {
namespace {

TensorView view_of(DType dtype, const Dims& dims) {
  TensorView v;
  v.dtype = dtype;
  if (dims.size() <= kMaxRank) v.set_shape(dims);
  return v;
}

// Gives the view the constant's bytes, which `loaded` holds. An unaligned mapping (raw bytes inside a
// protobuf) is copied: kernels read whole elements.
void load_aligned(const Constant& constant, std::vector<LoadedBytes>* loaded, TensorView* view) {
  loaded->push_back(constant.load());
  view->data = const_cast<std::byte*>(loaded->back().bytes.data());
  view->constant = true;
  if (reinterpret_cast<uintptr_t>(view->data) % 8 == 0) return;
  auto copy = std::make_shared<Bytes>(loaded->back().bytes.begin(), loaded->back().bytes.end());
  view->data = copy->data();
  loaded->back() = {copy, *copy};
}

constexpr size_t kLargeBytes = 1 << 20;

bool narrow_float(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

// Runs the kernel on given views; outputs are allocated here.
Status run_kernel(const OpAttrs& attrs, std::vector<TensorView> inputs, const std::vector<ValueFact>& facts,
                  std::vector<ResultBytes>* results) {
  std::vector<TensorView> outputs;
  results->clear();
  for (const ValueFact& fact : facts) {
    results->emplace_back(dense_bytes(fact.dtype, fact.dims));
    outputs.push_back(view_of(fact.dtype, fact.dims));
    outputs.back().data = results->back().span().data();
  }
  OpCall call{op_of(attrs), attrs_pointer(attrs), inputs, outputs};
  const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(call.op))];
  if (kernel->run == nullptr) return unsupported("the operation cannot be folded");
  size_t scratch = 0;
  if (kernel->workspace != nullptr) SINTER_RETURN_IF_ERROR(kernel->workspace(call, 1, &scratch));
  Bytes workspace(scratch + kBufferAlignment);
  RunContext context;
  auto base = reinterpret_cast<uintptr_t>(workspace.data());
  context.workspace = {workspace.data() + (align_up(base, kBufferAlignment) - base), scratch};
  return kernel->run(call, context);
}

// Whether an operation widens weights. These are folded however large they become: a step would repeat it in
// every run, and the file holds the operands.
bool widens_alone(const OpAttrs& attrs) {
  return op_of(attrs) == Op::kCast || op_of(attrs) == Op::kDequantize;
}

// Whether an operation moves a widened constant and cannot fail: the narrow one moves in its place, or both
// are done when the result is read. A constant with wider numbers is excluded, because these must move, too.
bool moves_widened(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs) {
  const Op op = op_of(attrs);
  return (op == Op::kTranspose || op == Op::kView || op == Op::kSlice) && inputs[0]->recipe() &&
         !inputs[0]->wide();
}

// Whether a large result is computed when it is read: shifted words, and joins of these, are many bytes.
bool computed_again(const OpAttrs& attrs, const ConstantPtr& result) {
  const Op op = op_of(attrs);
  return (op == Op::kBitwise || op == Op::kDiv || op == Op::kMod || op == Op::kSub || op == Op::kConcat) &&
         is_integer(result->dtype()) && !result->recipe() && result->byte_size() >= kLargeBytes;
}

// Gives constants of narrow floating-point types in float32.
Status widened(const std::vector<ConstantPtr>& inputs, std::vector<ConstantPtr>* result, bool recipes) {
  for (const ConstantPtr& c : inputs) {
    std::vector<ConstantPtr> cast{c};
    if (c && narrow_float(c->dtype()))
      SINTER_RETURN_IF_ERROR(
          evaluate(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c}, 1, &cast, recipes));
    result->push_back(cast[0]);
  }
  return ok_status();
}

ConstantPtr written_cast(const ConstantPtr& c) {
  if (!c->recipe() || !std::holds_alternative<CastAttrs>(c->recipe()->attrs)) return c;
  Recipe recipe = *c->recipe();
  recipe.written = true;
  return Constant::made(c, std::make_shared<const Recipe>(std::move(recipe)));
}

}  // namespace

Status infer_outputs(const OpAttrs& attrs, const std::vector<ValueFact>& inputs, size_t output_count,
                     const std::vector<bool>& want, std::vector<ValueFact>* outputs) {
  std::vector<TensorView> in, out(output_count);
  std::vector<LoadedBytes> loaded;
  for (const ValueFact& fact : inputs) {
    if (fact.dims.size() > kMaxRank)
      return unsupported("a value of rank %a; at most 8 axes are supported",
                         static_cast<int64_t>(fact.dims.size()));
    if (!plausible_dims(fact.dtype, fact.dims)) return unsupported("a value has too many elements");
    in.push_back(view_of(fact.dtype, fact.dims));
    if (op_of(attrs) == Op::kCustom && fact.constant) load_aligned(*fact.constant, &loaded, &in.back());
  }
  for (size_t i = 0; i < output_count; ++i)
    if (i < want.size() && !want[i]) out[i].rank = kUnwantedRank;
  OpCall call{op_of(attrs), attrs_pointer(attrs), in, out};
  SINTER_RETURN_IF_ERROR(infer(call, reference_kernels()));
  outputs->clear();
  for (const TensorView& v : out) {
    outputs->push_back(v.rank == kUnwantedRank ? ValueFact{}
                                               : ValueFact{v.dtype, Dims(v.dims, v.dims + v.rank)});
    if (v.rank != kUnwantedRank && !plausible_dims(v.dtype, v.shape()))
      return unsupported("a result has too many elements");
  }
  return ok_status();
}

Status evaluate(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, size_t output_count,
                std::vector<ConstantPtr>* outputs, bool recipes) {
  std::vector<ValueFact> in_facts, out_facts;
  for (const ConstantPtr& c : inputs)
    in_facts.push_back(c ? ValueFact{c->dtype(), c->dims(), c} : ValueFact{});
  SINTER_RETURN_IF_ERROR(infer_outputs(attrs, in_facts, output_count, {}, &out_facts));

  // Narrow floats are computed in float32, except where elements are only moved or converted.
  const Op op = op_of(attrs);
  const bool moves =
      has_traits(op, kMovement) || elements_of(op) == Elements::kConverted || op == Op::kCustom;
  bool widen = false;
  if (!moves)
    for (const ConstantPtr& c : inputs) widen |= c && narrow_float(c->dtype());
  // A cast of a result that an operator rounded takes the numbers before the rounding (rule accumulate.wide).
  if (op == Op::kCast && inputs[0]->wide() && is_wide_float(out_facts[0].dtype)) {
    if (inputs[0]->wide()->dtype() == out_facts[0].dtype) return *outputs = {inputs[0]->wide()}, ok_status();
    return evaluate(attrs, {inputs[0]->wide()}, 1, outputs, recipes);
  }
  const auto* dequantize = std::get_if<DequantizeAttrs>(&attrs);
  widen |= dequantize != nullptr && narrow_float(out_facts[0].dtype);
  if (widen) {
    std::vector<ConstantPtr> wide_inputs, wide_outputs;
    OpAttrs wide_attrs = attrs;
    if (dequantize != nullptr) {
      std::get<DequantizeAttrs>(wide_attrs).to = static_cast<int64_t>(DType::kFloat32);
      wide_inputs = inputs;
    } else {
      SINTER_RETURN_IF_ERROR(widened(inputs, &wide_inputs, recipes));
    }
    SINTER_RETURN_IF_ERROR(evaluate(wide_attrs, wide_inputs, output_count, &wide_outputs, recipes));
    outputs->clear();
    for (size_t i = 0; i < output_count; ++i) {
      std::vector<ConstantPtr> cast{wide_outputs[i]};
      if (wide_outputs[i]->dtype() != out_facts[i].dtype)
        SINTER_RETURN_IF_ERROR(evaluate(CastAttrs{static_cast<int64_t>(out_facts[i].dtype), 1},
                                        {wide_outputs[i]}, 1, &cast, recipes));
      outputs->push_back(narrow_float(out_facts[i].dtype) ? Constant::rounded(cast[0], wide_outputs[i])
                                                          : cast[0]);
    }
    return ok_status();
  }

  if (recipes && output_count == 1)
    if (ConstantPtr c = known_result(attrs, inputs, out_facts[0].dtype, out_facts[0].dims))
      return *outputs = {std::move(c)}, ok_status();

  // Large weights that are widened or unpacked are computed when they are read.
  const size_t bytes = output_count == 1 ? dense_bytes(out_facts[0].dtype, out_facts[0].dims) : 0;
  const bool free = widens_alone(attrs) || moves_widened(attrs, inputs);
  if (recipes && bytes >= kLazyResultBytes && (free || can_wait(attrs, inputs, out_facts[0].dtype))) {
    const ConstantPtr later =
        with_recipe(attrs, inputs, computed_later(out_facts[0].dtype, out_facts[0].dims, attrs, inputs));
    if (later->recipe() && !free) count_as_computed(bytes);
    if (later->recipe()) return *outputs = {later}, ok_status();
  }

  std::vector<LoadedBytes> loaded;
  std::vector<TensorView> views;
  for (const ConstantPtr& c : inputs) {
    views.push_back(c ? view_of(c->dtype(), c->dims()) : TensorView{});
    if (c) load_aligned(*c, &loaded, &views.back());
  }
  std::vector<ResultBytes> results;
  SINTER_RETURN_IF_ERROR(run_kernel(attrs, std::move(views), out_facts, &results));
  outputs->clear();
  for (size_t i = 0; i < output_count; ++i)
    outputs->push_back(Constant::held(out_facts[i].dtype, out_facts[i].dims, std::move(results[i]).hold()));
  if (recipes && output_count == 1) {
    ConstantPtr& result = (*outputs)[0];
    result = with_recipe(attrs, inputs, result);
    if (computed_again(attrs, result))
      result = computed_later(result->dtype(), result->dims(), attrs, inputs);
  }
  const bool moved = has_traits(op, kMovement) && output_count == 1 && narrow_float(out_facts[0].dtype);
  if (moved && std::any_of(inputs.begin(), inputs.end(), [](const auto& c) { return c && c->wide(); })) {
    std::vector<ConstantPtr> wide_inputs, wide_outputs;
    SINTER_RETURN_IF_ERROR(widened(inputs, &wide_inputs, recipes));
    SINTER_RETURN_IF_ERROR(evaluate(attrs, wide_inputs, 1, &wide_outputs, recipes));
    if (wide_outputs[0]->dtype() == DType::kFloat32)
      (*outputs)[0] = Constant::rounded((*outputs)[0], wide_outputs[0]);
  }
  return ok_status();
}

ConstantPtr evaluated(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, bool recipes) {
  std::vector<ConstantPtr> results;
  return evaluate(attrs, inputs, 1, &results, recipes).ok() ? results[0] : nullptr;
}

Status Builder::emit(OpAttrs attrs, std::vector<ValueId> inputs, size_t output_count,
                     std::vector<ValueId>* results) {
  return emit(std::move(attrs), std::move(inputs), std::vector<bool>(output_count, true), results);
}

Status Builder::emit(OpAttrs attrs, std::vector<ValueId> inputs, const std::vector<bool>& wanted_outputs,
                     std::vector<ValueId>* results) {
  std::vector<ValueFact> in_facts, out_facts;
  std::vector<ConstantPtr> constants;
  bool all_constant = true;
  size_t in_bytes = 0;
  for (const ValueId id : inputs) {
    if (id == kAbsent) {
      in_facts.emplace_back();
      constants.emplace_back();
      continue;
    }
    const Value& v = graph_->value(id);
    in_facts.push_back({v.dtype, v.dims, v.constant});
    constants.push_back(v.constant);
    all_constant &= v.constant != nullptr;
    if (v.constant) in_bytes += v.constant->byte_size();
  }
  SINTER_RETURN_IF_ERROR(infer_outputs(attrs, in_facts, wanted_outputs.size(), wanted_outputs, &out_facts));
  size_t out_bytes = 0;
  for (const ValueFact& f : out_facts)
    out_bytes += f.dtype == DType::kNone ? 0 : dense_bytes(f.dtype, f.dims);

  results->clear();
  const bool small = out_bytes <= 2 * in_bytes + kFoldSlack;
  const bool repeats = op_of(attrs) == Op::kBroadcast || op_of(attrs) == Op::kTile;
  const bool unpacked =
      !small && out_facts.size() == 1 && unpacks(attrs, out_facts[0].dtype) &&
      out_bytes <= (repeats ? std::min(kMostRepeatedBytes, in_bytes << 16) : kMostUnpackedBytes);
  if (all_constant && (small || widens_alone(attrs) || unpacked)) {
    std::vector<ConstantPtr> folded;
    const bool all_wanted =
        std::all_of(wanted_outputs.begin(), wanted_outputs.end(), [](bool w) { return w; });
    const Status status = all_wanted ? evaluate(attrs, constants, wanted_outputs.size(), &folded)
                                     : unsupported("partial results");
    if (status.ok() && !(unpacked && folded[0]->recipe() == nullptr)) {
      // A weight keeps its name through operations on it.
      const bool weight = folded.size() == 1 && !inputs.empty() && inputs[0] >= 0 &&
                          folded[0]->byte_size() >= kRecipeBytes &&
                          (widens_alone(attrs) || has_traits(op_of(attrs), kMovement));
      const std::string name = weight ? graph_->value(inputs[0]).name : std::string();
      if (origin_.op_type == "Cast" || origin_.op_type == "CastLike") folded[0] = written_cast(folded[0]);
      for (ConstantPtr& c : folded) results->push_back(graph_->add_constant(std::move(c), name));
      return ok_status();
    }
    // A kernel may be unable to compute in this type; other failures (an index out of range) are the model's.
    if (!status.ok() && status.code != Code::kUnsupported) return status;
  }
  Node node{std::move(attrs), std::move(inputs), {}, origin_.name, origin_.op_type, {}};
  for (size_t i = 0; i < out_facts.size(); ++i) {
    results->push_back(!wanted_outputs[i] ? kAbsent
                                          : graph_->add_value({}, out_facts[i].dtype, out_facts[i].dims));
  }
  node.outputs = *results;
  (target_ != nullptr ? *target_ : graph_->nodes).push_back(std::move(node));
  return ok_status();
}

}  // namespace sinter::convert

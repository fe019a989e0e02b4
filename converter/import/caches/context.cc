#include "converter/import/caches/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/core/op_enums.h"

namespace sinter::convert {

bool Context::computes(const ImportedValueInfo& input) const {
  const InputRole role = roles_.of(input);
  return role == InputRole::kMask || role == InputRole::kRoomMask || role == InputRole::kPositions;
}

ValueId Context::emit(GraphLowering& lowering, OpAttrs attrs, std::vector<ValueId> inputs) const {
  std::vector<ValueId> results;
  if (!lowering.builder().emit(std::move(attrs), std::move(inputs), 1, &results).ok()) return kUnknown;
  return results[0];
}

void Context::define_inputs(GraphLowering& lowering,
                            const std::function<std::optional<Dims>(const ImportedValueInfo&)>& shape_of) {
  if (!roles_.any()) return;
  int64_t tokens = 0;  // of a run
  if (const ImportedValueInfo* input = roles_.tokens()) {
    const ValueId value = lowering.lookup(input->name);
    if (value < 0) return;  // refused
    if (!lowering.graph().value(value).bounded_dims.empty())
      return diagnostics_.refuse(
          "", "", fmt::format("--max-context: a dimension of input '{}' has a range of sizes", input->name),
          "give the numbers of tokens as sets, such as --shapes \"sequence_length=64; sequence_length=1\"");
    tokens = lowering.graph().value(value).dims[1];
  }
  if (tokens < 1 || tokens > roles_.options().max_context)
    return diagnostics_.refuse(
        "", "", fmt::format("--max-context {}: a run has {} tokens", roles_.options().max_context, tokens),
        "give a context of at least the tokens of one run");
  Graph& graph = lowering.graph();
  lowering.builder().set_origin({ContextRoles::kPosition, "--max-context"});
  const auto number = [&](int64_t n) { return graph.add_constant(Constant::scalar_int(DType::kInt64, n)); };
  const ValueId before = graph.add_value(ContextRoles::kPosition, DType::kInt64, {});
  graph.inputs.push_back(before);
  // The application may move the position.
  const auto checked = [&](ValueId value, ValueId length) {
    return emit(lowering, CheckLengthAttrs{static_cast<int64_t>(LengthRule::kPlanned)},
                {value, length, number(roles_.options().max_context)});
  };
  const ValueId valid = checked(before, before);
  position_ = checked(valid, emit(lowering, AddAttrs{}, {valid, number(tokens)}));
  const LengthId position = lowering.lengths().symbol(position_, {0, roles_.options().max_context - tokens});
  total_ = lowering.lengths().add(position, lowering.lengths().constant(tokens));
  next_ = lowering.lengths().value(total_);
  ContextValues context{{}, position_, next_, tokens};
  for (const std::string& cache : roles_.grown()) {
    const ValueId value = lowering.lookup(cache);
    if (value < 0 || roles_.has_room_for_more(cache)) continue;
    graph.value(value).bounded_dims = {{static_cast<int>(ContextRoles::kLengthAxis), position_}};
    context.caches.insert(value);
  }
  lowering.set_context(std::move(context));
  for (const auto& [input, output] : roles_.counts())
    if (const ValueId value = lowering.lookup(input); value >= 0)
      lowering.define(input, in_type(lowering, position_, graph.value(value).dtype));
  for (const ImportedValueInfo& input : graph_.inputs) {
    if (!computes(input)) continue;
    const std::optional<Dims> dims = shape_of(input);
    ValueId id = kUnknown;
    const InputRole r = roles_.of(input);
    if (dims && checked_elements(input, *dims))
      id = r == InputRole::kMask       ? mask(lowering, input, *dims)
           : r == InputRole::kRoomMask ? room_mask(lowering, input, *dims)
                                       : positions(lowering, input, *dims);
    lowering.define(input.name, id);
    diagnostics_.note("", "",
                      fmt::format("--max-context: input '{}' is computed: {}", input.name,
                                  r == InputRole::kPositions ? "counted from the position"
                                  : input.dims.size() == 4   ? "true for each token and those before it"
                                                             : "1 for every token so far"));
  }
}

// Returns whether an input that is computed has a size that one can compute.
bool Context::checked_elements(const ImportedValueInfo& input, const Dims& dims) const {
  constexpr int64_t kMostElements = int64_t{1} << 28;
  int64_t count = 1;
  for (const int64_t d : dims)
    if (d < 1 || !checked_mul(count, d, &count) || count > kMostElements) {
      diagnostics_.refuse(
          "", "",
          fmt::format("input '{}' ({}) is too large, or empty", input.name, to_string(input.dtype, dims)),
          "give a smaller batch with --dim, or a smaller --max-context");
      return false;
    }
  return true;
}

// [0, 1, ...] of these dims.
ValueId Context::counted(GraphLowering& lowering, const Dims& dims) const {
  std::vector<int64_t> items(static_cast<size_t>(element_count(dims)));
  std::iota(items.begin(), items.end(), 0);
  return lowering.graph().add_constant(Constant::of<int64_t>(DType::kInt64, dims, items));
}

ValueId Context::in_type(GraphLowering& lowering, ValueId value, DType type) const {
  if (value < 0 || lowering.graph().value(value).dtype == type) return value;
  return emit(lowering, CastAttrs{static_cast<int64_t>(type), 0}, {value});
}

// A one for every token so far; its length is the number of these.
ValueId Context::mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const {
  const std::vector<int64_t> ones(static_cast<size_t>(element_count(dims)), 1);
  Graph& graph = lowering.graph();
  const ValueId all = graph.add_constant(Constant::of<int64_t>(DType::kInt64, dims, ones), input.name);
  const ValueId mask = in_type(lowering, all, input.dtype);
  if (mask >= 0) graph.value(mask).bounded_dims = {{1, next_}};
  return mask;
}

// [B, N] or [B, H, S, N]: a one for every place of a cache of a fixed size that holds a token so far; of rank
// 4, up to the row's own.
ValueId Context::room_mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const {
  const size_t rank = dims.size();
  Dims along(rank, 1), down(rank, 1);
  along[rank - 1] = dims[rank - 1], down[rank - 2] = dims[rank - 2];
  const bool rows = rank == 4;
  const ValueId places = counted(lowering, along);
  const ValueId end = rows ? emit(lowering, AddAttrs{}, {position_, counted(lowering, down)}) : next_;
  const auto fn = rows ? CompareFn::kLessOrEqual : CompareFn::kLess;
  ValueId id = emit(lowering, CompareAttrs{static_cast<int64_t>(fn)}, {places, end});
  if (id >= 0 && lowering.graph().value(id).dims != dims)
    id = emit(lowering, BroadcastAttrs{IntList(dims)}, {id});
  return in_type(lowering, id, input.dtype);
}

ValueId Context::positions(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const {
  ValueId id = position_;
  if (!dims.empty()) id = emit(lowering, AddAttrs{}, {position_, counted(lowering, {dims.back()})});
  if (dims.size() >= 2 && id >= 0) id = emit(lowering, BroadcastAttrs{IntList(dims)}, {id});
  return in_type(lowering, id, input.dtype);
}

void Context::add_output(GraphLowering& lowering) const {
  if (next_ < 0) return;
  lowering.graph().outputs.push_back(next_);
  for (const auto& [input, output] : roles_.counts()) {
    const auto items = lowering.lengths().items(lowering.lookup(output));
    if (!items || items->size() != 1 || (*items)[0] != total_)
      diagnostics_.refuse(
          "", "",
          fmt::format("--max-context: '{}' is not proven to be '{}' and the tokens of a run", output, input),
          fmt::format("give --state {}={}, and reset the session instead of moving the position", output,
                      input));
  }
}

void Context::forget_lengths(Graph& graph) const {
  const auto forget = [&](const std::vector<ValueId>& ports, const std::vector<std::string>& names) {
    for (const ValueId id : ports)
      if (std::find(names.begin(), names.end(), graph.value(id).name) != names.end())
        graph.value(id).bounded_dims.clear();
  };
  forget(graph.inputs, roles_.grown());
  forget(graph.outputs, roles_.presents());
}

}  // namespace sinter::convert

#include "converter/import/caches/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/import/caches/cache_kinds.h"
#include "converter/import/caches/states.h"
#include "converter/import/check_options.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool has_word(const std::string& name, std::string_view word) {
  const std::vector<std::string> words = words_of_name(name);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return w == word || w == std::string(word) + "s"; });
}

// What an encoder has computed is not of the tokens so far.
bool is_of_encoder(const ImportedValueInfo& input) { return has_word(input.name, "encoder"); }

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_tokens(const ImportedValueInfo& input) {
  return is_integer(input.dtype) && input.dims.size() == 2 && !has_word(input.name, "mask") &&
         !has_word(input.name, "position");
}

}  // namespace

Context::Context(const ImportedModel& model, const LoweringOptions& given, Diagnostics& diagnostics)
    : model_(model), diagnostics_(diagnostics), options_(given) {
  if (options_.max_context == 0) return;
  find_caches();
  if (caches_.empty() && rooms_.empty()) {
    refuse_without_caches();
    return;
  }
  for (const ImportedValueInfo& input : model_.graph.inputs)
    if (role(input) == Role::kMask) fix(input, 1);
  choose_branch();
}

void Context::refuse_without_caches() const {
  if (other_rooms_.empty()) {
    const std::vector<ImportedValueInfo>& inputs = model_.graph.inputs;
    const bool has_states = std::any_of(inputs.begin(), inputs.end(),
                                        [&](const auto& input) { return output_of(input) != nullptr; });
    return diagnostics_.refuse(
        "", "",
        "--max-context: the model has no input of rank 4 with an open axis 2 and an output of the same "
        "name but for \"past\" and \"present\"",
        has_states ? "leave the option out, and keep the model's states with --state auto"
                   : "leave the option out, or export the model with past keys and values as inputs");
  }
  const int64_t rows = other_rooms_.front();
  diagnostics_.refuse(
      "", "", fmt::format("--max-context {}: the model's caches have {} rows", options_.max_context, rows),
      fmt::format("give --max-context {}, or leave the option out and name each cache by --state", rows));
}

Context::Role Context::role(const ImportedValueInfo& input) const {
  if (options_.max_context == 0) return Role::kGiven;
  if (is_one_of(caches_, input.name) || is_one_of(rooms_, input.name)) return Role::kCache;
  if (options_.constants.count(input.name) != 0 || options_.shapes.count(input.name) != 0)
    return Role::kGiven;
  if (is_of_encoder(input)) return Role::kGiven;
  const bool whole = is_integer(input.dtype) || input.dtype == DType::kBool;
  if (whole && has_word(input.name, "mask") && !input.dims.empty()) {
    const ImportedDim& keys = input.dims.back();
    const bool of_room =
        room_sizes_.count(keys.symbol) != 0 || (!rooms_.empty() && keys.value == options_.max_context);
    const bool local = has_word(input.name, "sliding") || has_word(input.name, "local") ||
                       has_word(input.name, "window") || has_word(input.name, "chunked");
    if (other_sizes_.count(keys.symbol) != 0 || passed_rooms_.count(keys.value) != 0) return Role::kGiven;
    if (of_room)
      return !local && (input.dims.size() == 2 || input.dims.size() == 4) ? Role::kRoomMask : Role::kGiven;
    if (input.dims.size() == 2) return Role::kMask;
  }
  // Of rank 3, for several axes of pictures: in a text they count alike. Embeddings may be of pictures.
  const size_t rank = input.dims.size();
  if (is_integer(input.dtype) && (has_word(input.name, "position") || has_word(input.name, "pos")) &&
      (rank == 1 || rank == 2 || (rank == 0 && !rooms_.empty()) || (rank == 3 && reads_tokens())))
    return Role::kPositions;
  return Role::kGiven;
}

bool Context::reads_tokens() const {
  return std::any_of(model_.graph.inputs.begin(), model_.graph.inputs.end(), is_tokens);
}

// Numbers of tokens [B, S], or else what the caller gives as [B, S, ..]: embeddings, but no positions of
// several axes and nothing that is kept. Null: none.
const ImportedValueInfo* Context::first_of_run() const {
  const ImportedValueInfo* found = nullptr;
  for (const ImportedValueInfo& input : model_.graph.inputs) {
    const auto kept = [&](const auto& state) { return state.second == input.name; };
    if (role(input) != Role::kGiven || is_of_encoder(input) || input.dims.size() < 2 ||
        options_.constants.count(input.name) != 0 ||
        (input.dims.size() > 2 && has_word(input.name, "position")) ||
        std::any_of(options_.states.begin(), options_.states.end(), kept))
      continue;
    if (is_tokens(input)) return &input;
    if (found == nullptr) found = &input;
  }
  return found;
}

std::set<std::string> Context::batches() const {
  std::set<std::string> names;
  for (const ImportedValueInfo& input : model_.graph.inputs)
    if (role(input) == Role::kCache) names.insert(input.dims[0].symbol);
  names.erase("");
  return names;
}

bool Context::computes(const ImportedValueInfo& input) const {
  const Role r = role(input);
  return r == Role::kMask || r == Role::kRoomMask || r == Role::kPositions;
}

void Context::find_caches() {
  for (const ImportedValueInfo& input : model_.graph.inputs) {
    const bool quantized = input.dtype == DType::kInt8 || input.dtype == DType::kUint8;
    if (input.dims.size() != 4 || !(is_float(input.dtype) || quantized) ||
        options_.constants.count(input.name) != 0)
      continue;
    const int64_t size = input.dims[kLengthAxis].value;
    const ImportedValueInfo* pair = is_of_encoder(input) ? nullptr : output_of(input);
    if (pair == nullptr) continue;
    if (size < 0)
      add_cache(input, *pair);
    else if (const CacheKind kind = cache_kind(model_.graph, input, *pair); kind == CacheKind::kPassed)
      passed_rooms_.insert(size);
    else if (is_float(input.dtype) && kind == CacheKind::kFixed)
      size == options_.max_context ? add_cache(input, *pair) : other_rooms_.push_back(size);
  }
  if (caches_.empty() && rooms_.empty()) return;
  find_other_states();
  options_.states.emplace_back(kNextPosition, kPosition);
}

void Context::add_cache(const ImportedValueInfo& input, const ImportedValueInfo& output) {
  const std::string& size = input.dims[kLengthAxis].symbol;
  const CacheKind kind = cache_kind(model_.graph, input, output);
  if (kind == CacheKind::kPassed) {
    other_sizes_.insert(size), other_sizes_.erase("");
    return diagnostics_.note(
        "", "",
        fmt::format("--max-context: input '{}' stays one: the model gives it back as it is", input.name));
  }
  keep(input, output);
  if (is_float(input.dtype) && is_float(output.dtype) && bit_width(input.dtype) < bit_width(output.dtype))
    wider_[input.name] = output.dtype;
  if (kind == CacheKind::kFixed) {
    rooms_.push_back(input.name), room_sizes_.insert(size), room_sizes_.erase("");
  } else {
    caches_.push_back(input.name), presents_.push_back(output.name);
  }
  fix(input, kLengthAxis);
}

// Of a model whose first run is a branch of its own: the one that reads the caches, which may be empty.
void Context::choose_branch() {
  if (caches_.empty()) return;
  const auto found = cache_switch(model_.graph, caches_);
  if (!found || options_.constants.count(found->input) != 0) return;
  const auto input = std::find_if(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                                  [&](const ImportedValueInfo& i) { return i.name == found->input; });
  options_.constants[found->input] =
      Constant::scalar_int(input->dtype, found->reads ? 1 : 0)->reshaped(Dims(input->dims.size(), 1));
  diagnostics_.note("", "",
                    fmt::format("--max-context: input '{}' is {}, so that the caches are read", found->input,
                                found->reads));
}

DType Context::type_of(const ImportedValueInfo& input) const {
  const auto wider = wider_.find(input.name);
  return wider == wider_.end() ? input.dtype : wider->second;
}

std::map<DType, std::vector<std::string>> Context::wider() const {
  std::map<DType, std::vector<std::string>> all;
  for (const ImportedValueInfo& input : model_.graph.inputs)
    if (wider_.count(input.name) != 0) all[input.dtype].push_back(input.name);
  return all;
}

// The output of the same name but for "past" and "present"; null: none.
const ImportedValueInfo* Context::output_of(const ImportedValueInfo& input) const {
  const std::vector<std::string> stem = state_stem(input.name, true);
  const ImportedValueInfo* pair = nullptr;
  for (const ImportedValueInfo& output : model_.graph.outputs)
    if (!stem.empty() && state_stem(output.name, false) == stem) pair = &output;
  return pair;
}

// Makes the two a state, unless --state names one of them; whether it did.
bool Context::keep(const ImportedValueInfo& input, const ImportedValueInfo& output) {
  const auto named = [&](const auto& s) { return s.first == output.name || s.second == input.name; };
  if (std::any_of(options_.states.begin(), options_.states.end(), named)) return false;
  options_.states.emplace_back(output.name, input.name);
  return true;
}

// What convolutions and recurrent layers between those of attention keep.
void Context::find_other_states() {
  const auto same = [](const ImportedDim& a, const ImportedDim& b) {
    return a.value == b.value && a.symbol == b.symbol;
  };
  for (const ImportedValueInfo& input : model_.graph.inputs) {
    // Beside caches of a fixed size, how many tokens they hold, for each of them.
    const bool counts = !rooms_.empty() && is_integer(input.dtype) && input.dims.empty();
    if (role(input) != Role::kGiven || is_of_encoder(input) ||
        !(counts || (has_word(input.name, "past") && is_float(input.dtype))))
      continue;
    const ImportedValueInfo* pair = output_of(input);
    if (pair == nullptr || pair->dtype != input.dtype || options_.constants.count(input.name) != 0 ||
        !std::equal(input.dims.begin(), input.dims.end(), pair->dims.begin(), pair->dims.end(), same) ||
        cache_kind(model_.graph, input, *pair) == CacheKind::kPassed)
      continue;
    if (!keep(input, *pair)) continue;
    if (counts)
      counts_.emplace_back(input.name, pair->name);
    else
      diagnostics_.note("", "", fmt::format("--max-context: input '{}' is kept from run to run", input.name));
  }
}

// Whether only operators read the cache that take one with room for more rows than it holds.
bool Context::has_room_for_more(const std::string& cache) const {
  bool all = true;
  each_graph(model_.graph, [&](const ImportedGraph& graph) {
    for (const ImportedNode& node : graph.nodes)
      if (node.op_type != "GroupQueryAttention")
        all &= std::find(node.inputs.begin(), node.inputs.end(), cache) == node.inputs.end();
  });
  return all;
}

// Gives an open dimension the size N.
void Context::fix(const ImportedValueInfo& input, size_t axis) {
  const ImportedDim& dim = input.dims[axis];
  const std::string what =
      fmt::format("--max-context {}: dimension {} of input '{}'", options_.max_context, axis, input.name);
  if (dim.value >= 0 && dim.value != options_.max_context)
    return diagnostics_.refuse("", "", fmt::format("{} is {}", what, dim.value),
                               fmt::format("give --max-context {}", dim.value));
  if (dim.value >= 0) return;
  if (dim.symbol.empty())
    return diagnostics_.refuse("", "", fmt::format("{} has no name", what),
                               "name the dimension when the model is exported (dynamic_axes)");
  const auto [at, fresh] = options_.dims.emplace(dim.symbol, options_.max_context);
  if (!fresh && at->second != options_.max_context)
    diagnostics_.refuse("", "", fmt::format("{} is {} by --dim {}", what, at->second, dim.symbol),
                        "leave the --dim out");
}

ValueId Context::emit(GraphLowering& lowering, OpAttrs attrs, std::vector<ValueId> inputs) const {
  std::vector<ValueId> results;
  if (!lowering.builder().emit(std::move(attrs), std::move(inputs), 1, &results).ok()) return kUnknown;
  return results[0];
}

void Context::define_inputs(GraphLowering& lowering,
                            const std::function<std::optional<Dims>(const ImportedValueInfo&)>& shape_of) {
  if (caches_.empty() && rooms_.empty()) return;
  int64_t tokens = 0;  // of a run
  if (const ImportedValueInfo* input = first_of_run()) {
    const ValueId value = lowering.lookup(input->name);
    if (value < 0) return;  // refused
    if (!lowering.graph().value(value).bounded_dims.empty())
      return diagnostics_.refuse(
          "", "", fmt::format("--max-context: a dimension of input '{}' has a range of sizes", input->name),
          "give the numbers of tokens as sets, such as --shapes \"sequence_length=64; sequence_length=1\"");
    tokens = lowering.graph().value(value).dims[1];
  }
  if (tokens < 1 || tokens > options_.max_context)
    return diagnostics_.refuse(
        "", "", fmt::format("--max-context {}: a run has {} tokens", options_.max_context, tokens),
        "give a context of at least the tokens of one run");
  Graph& graph = lowering.graph();
  lowering.builder().set_origin({kPosition, "--max-context"});
  const auto number = [&](int64_t n) { return graph.add_constant(Constant::scalar_int(DType::kInt64, n)); };
  const ValueId before = graph.add_value(kPosition, DType::kInt64, {});
  graph.inputs.push_back(before);
  // The application may move the position.
  const auto checked = [&](ValueId value, ValueId length) {
    return emit(lowering, CheckLengthAttrs{static_cast<int64_t>(LengthRule::kPlanned)},
                {value, length, number(options_.max_context)});
  };
  const ValueId valid = checked(before, before);
  position_ = checked(valid, emit(lowering, AddAttrs{}, {valid, number(tokens)}));
  const LengthId position = lowering.lengths().symbol(position_, {0, options_.max_context - tokens});
  total_ = lowering.lengths().add(position, lowering.lengths().constant(tokens));
  next_ = lowering.lengths().value(total_);
  ContextValues context{{}, position_, next_, tokens};
  for (const std::string& cache : caches_) {
    const ValueId value = lowering.lookup(cache);
    if (value < 0 || has_room_for_more(cache)) continue;
    graph.value(value).bounded_dims = {{static_cast<int>(kLengthAxis), position_}};
    context.caches.insert(value);
  }
  lowering.set_context(std::move(context));
  for (const auto& [input, output] : counts_)
    if (const ValueId value = lowering.lookup(input); value >= 0) {
      const DType t = graph.value(value).dtype;
      lowering.define(input, t == DType::kInt64
                                 ? position_
                                 : emit(lowering, CastAttrs{static_cast<int64_t>(t), 0}, {position_}));
    }
  for (const ImportedValueInfo& input : model_.graph.inputs) {
    if (!computes(input)) continue;
    const std::optional<Dims> dims = shape_of(input);
    ValueId id = kUnknown;
    const Role r = role(input);
    if (dims && checked_elements(input, *dims))
      id = r == Role::kMask       ? mask(lowering, input, *dims)
           : r == Role::kRoomMask ? room_mask(lowering, input, *dims)
                                  : positions(lowering, input, *dims);
    lowering.define(input.name, id);
    diagnostics_.note("", "",
                      fmt::format("--max-context: input '{}' is computed: {}", input.name,
                                  r == Role::kPositions    ? "counted from the position"
                                  : input.dims.size() == 4 ? "true for each token and those before it"
                                                           : "1 for every token so far"));
  }
}

// Whether an input that is computed has a size that one can compute.
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

// A one for every token so far; its length is the number of these.
ValueId Context::mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const {
  const std::vector<int64_t> ones(static_cast<size_t>(element_count(dims)), 1);
  Graph& graph = lowering.graph();
  const ValueId id = graph.add_constant(Constant::of<int64_t>(DType::kInt64, dims, ones), input.name);
  const ValueId mask = input.dtype == DType::kInt64
                           ? id
                           : emit(lowering, CastAttrs{static_cast<int64_t>(input.dtype), 0}, {id});
  if (mask >= 0) graph.value(mask).bounded_dims = {{1, next_}};
  return mask;
}

// [B, N] or [B, H, S, N]: a one for every place of a cache of a fixed size that holds a token so far; of rank
// 4, up to the row's own.
ValueId Context::room_mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const {
  Graph& graph = lowering.graph();
  const auto counted = [&](int64_t count, const Dims& shape) {
    std::vector<int64_t> items(static_cast<size_t>(count));
    for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int64_t>(i);
    return graph.add_constant(Constant::of<int64_t>(DType::kInt64, shape, items));
  };
  const size_t rank = dims.size();
  Dims along(rank, 1), down(rank, 1);
  along[rank - 1] = dims[rank - 1], down[rank - 2] = dims[rank - 2];
  const bool rows = rank == 4;
  const ValueId places = counted(dims[rank - 1], along);
  const ValueId end = rows ? emit(lowering, AddAttrs{}, {position_, counted(dims[2], down)}) : next_;
  const auto fn = rows ? CompareFn::kLessOrEqual : CompareFn::kLess;
  ValueId id = emit(lowering, CompareAttrs{static_cast<int64_t>(fn)}, {places, end});
  if (id >= 0 && graph.value(id).dims != dims) id = emit(lowering, BroadcastAttrs{IntList(dims)}, {id});
  if (input.dtype != DType::kBool && id >= 0)
    id = emit(lowering, CastAttrs{static_cast<int64_t>(input.dtype), 0}, {id});
  return id;
}

ValueId Context::positions(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const {
  const int64_t tokens = dims.empty() ? 1 : dims.back();
  std::vector<int64_t> counts(static_cast<size_t>(tokens));
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int64_t>(i);
  const ValueId count = lowering.graph().add_constant(Constant::of<int64_t>(DType::kInt64, {tokens}, counts));
  ValueId id = dims.empty() ? position_ : emit(lowering, AddAttrs{}, {position_, count});
  if (dims.size() >= 2 && id >= 0) id = emit(lowering, BroadcastAttrs{IntList(dims)}, {id});
  if (input.dtype != DType::kInt64 && id >= 0)
    id = emit(lowering, CastAttrs{static_cast<int64_t>(input.dtype), 0}, {id});
  return id;
}

void Context::add_output(GraphLowering& lowering) const {
  if (next_ < 0) return;
  lowering.graph().outputs.push_back(next_);
  for (const auto& [input, output] : counts_) {
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
  for (const ValueId id : graph.inputs)
    if (is_one_of(caches_, graph.value(id).name)) graph.value(id).bounded_dims.clear();
  for (const ValueId id : graph.outputs)
    if (is_one_of(presents_, graph.value(id).name)) graph.value(id).bounded_dims.clear();
}

}  // namespace sinter::convert

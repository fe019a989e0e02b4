#include "converter/import/caches/roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/import/caches/states.h"

namespace sinter::convert {
namespace {

bool has_word(const std::string& name, std::initializer_list<std::string_view> any) {
  const std::vector<std::string> words = words_of_name(name);
  return std::any_of(words.begin(), words.end(), [&](const std::string& w) {
    return std::any_of(any.begin(), any.end(),
                       [&](std::string_view word) { return w == word || w == std::string(word) + "s"; });
  });
}

const ImportedGraph kNoGraph;

bool same_size(const ImportedDim& a, const ImportedDim& b) {
  return a.value >= 0 ? a.value == b.value : !a.symbol.empty() && a.symbol == b.symbol;
}

bool same_shape(const ImportedValueInfo& a, const ImportedValueInfo& b) {
  return std::equal(
      a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
      [](const ImportedDim& x, const ImportedDim& y) { return x.value == y.value && x.symbol == y.symbol; });
}

}  // namespace

ContextRoles::ContextRoles(const ImportedModel& model, const LoweringOptions& given, Diagnostics& diagnostics)
    : graph_(model.graph),
      diagnostics_(diagnostics),
      options_(given),
      flow_(given.max_context > 0 ? model.graph : kNoGraph) {
  if (options_.max_context == 0) return;
  find_caches();
  if (!any()) {
    refuse_without_caches();
    return;
  }
  find_roles();
  find_other_states();
  options_.states.emplace_back(kNextPosition, kPosition);
  for (const ImportedValueInfo& input : graph_.inputs)
    if (of(input) == InputRole::kMask) fix(input, 1);
  choose_branch();
}

void ContextRoles::refuse_without_caches() const {
  if (other_rooms_.empty()) {
    const bool has_states = std::any_of(graph_.inputs.begin(), graph_.inputs.end(),
                                        [&](const auto& input) { return output_of(input) != nullptr; });
    return diagnostics_.refuse(
        "", "",
        "--max-context: the model has no input of rank 4 with an open axis 2 and an output that joins new "
        "rows "
        "to it",
        has_states ? "leave the option out, and keep the model's states with --state auto"
                   : "leave the option out, or export the model with past keys and values as inputs");
  }
  const int64_t rows = other_rooms_.front();
  diagnostics_.refuse(
      "", "", fmt::format("--max-context {}: the model's caches have {} rows", options_.max_context, rows),
      fmt::format("give --max-context {}, or leave the option out and name each cache by --state", rows));
}

void ContextRoles::note(std::string message, std::string remedy) const {
  diagnostics_.add({Severity::kNote, "", "", "--max-context: " + std::move(message), std::move(remedy)});
}

InputRole ContextRoles::of(const ImportedValueInfo& input) const {
  const auto found = roles_.find(input.name);
  return found == roles_.end() ? InputRole::kGiven : found->second;
}

std::set<std::string> ContextRoles::batches() const {
  std::set<std::string> names;
  for (const ImportedValueInfo& input : graph_.inputs)
    if (of(input) == InputRole::kCache) names.insert(input.dims[0].symbol);
  names.erase("");
  return names;
}

DType ContextRoles::type_of(const ImportedValueInfo& input) const {
  const auto wider = wider_types_.find(input.name);
  return wider == wider_types_.end() ? input.dtype : wider->second;
}

std::map<DType, std::vector<std::string>> ContextRoles::wider() const {
  std::map<DType, std::vector<std::string>> all;
  for (const ImportedValueInfo& input : graph_.inputs)
    if (wider_types_.count(input.name) != 0) all[input.dtype].push_back(input.name);
  return all;
}

bool ContextRoles::has_room_for_more(const std::string& cache) const {
  const std::vector<Dataflow::Reader>& readers = flow_.readers(cache);
  return std::all_of(readers.begin(), readers.end(), [](const Dataflow::Reader& reader) {
    return reader.node->op_type == "GroupQueryAttention";
  });
}

// ---- caches and states

Carry ContextRoles::carry(const ImportedValueInfo& output, const std::string& input) {
  auto [known, fresh] = carried_.try_emplace(output.name);
  if (fresh) known->second = carried_by(flow_, output.name);
  const auto found = known->second.find(input);
  return found == known->second.end() ? Carry::kNone : found->second;
}

// The output whose name differs from the input's as those of proposed states do; null: none.
const ImportedValueInfo* ContextRoles::output_of(const ImportedValueInfo& input) const {
  const std::vector<std::string> stem = state_stem(input.name, true);
  const ImportedValueInfo* pair = nullptr;
  for (const ImportedValueInfo& output : graph_.outputs)
    if (!stem.empty() && state_stem(output.name, false) == stem) pair = &output;
  return pair;
}

// The output that a cache becomes: the one that --state names, else the one that holds its rows and new ones,
// else the one that the names propose.
ContextRoles::Pair ContextRoles::pair_of(const ImportedValueInfo& input) {
  const ImportedValueInfo *named = output_of(input), *passed = nullptr;
  std::vector<const ImportedValueInfo*> joined;
  for (const ImportedValueInfo& output : graph_.outputs) {
    const Carry how = carry(output, input.name);
    for (const auto& [to, from] : options_.states)
      if (to == output.name && from == input.name) return {&output, how};
    if (how == Carry::kWritten || how == Carry::kJoined) joined.push_back(&output);
    if (how == Carry::kPassed) passed = &output;
  }
  const bool several = joined.size() > 1;
  const bool proven = std::find(joined.begin(), joined.end(), named) != joined.end();
  const Carry by_name = named == nullptr ? Carry::kNone : carry(*named, input.name);
  const ImportedValueInfo* chosen = joined.size() == 1 ? joined[0] : by_name != Carry::kNone ? named : passed;
  if (several && !proven) chosen = nullptr;
  const std::string settle = fmt::format("--state OUT={} names the output that it becomes", input.name);
  if (several && !proven)
    note(fmt::format("input '{}' stays one: {} outputs hold its rows", input.name, joined.size()), settle);
  else if (named != nullptr && chosen != named)
    note(fmt::format("input '{}' does not become output '{}', in spite of their names: the output does not "
                     "follow from it by moving or joining rows",
                     input.name, named->name),
         settle);
  else if (chosen == named && (several || by_name == Carry::kComputed))
    note(fmt::format(
             "input '{}' becomes output '{}' because of their names: {}", input.name, named->name,
             several ? "other outputs hold its rows, too" : "the output is more than its rows and new ones"),
         settle);
  return {chosen, chosen == nullptr ? Carry::kNone : carry(*chosen, input.name)};
}

void ContextRoles::find_caches() {
  for (const ImportedValueInfo& input : graph_.inputs) {
    const bool quantized = input.dtype == DType::kInt8 || input.dtype == DType::kUint8;
    if (input.dims.size() != 4 || !(is_float(input.dtype) || quantized) ||
        options_.constants.count(input.name) != 0)
      continue;
    const Pair pair = pair_of(input);
    if (pair.output == nullptr) continue;
    const int64_t size = input.dims[kLengthAxis].value;
    if (size < 0)
      add_cache(input, pair);
    else if (pair.carry == Carry::kPassed)
      passed_rooms_.insert(size);
    else if (is_float(input.dtype) && has_fixed_rows(input, pair))
      size == options_.max_context ? add_cache(input, pair) : other_rooms_.push_back(size);
  }
}

// Returns whether the model writes rows into the room that the cache has: its output is declared as long.
bool ContextRoles::has_fixed_rows(const ImportedValueInfo& input, const Pair& pair) {
  return pair.carry != Carry::kJoined && pair.output->dims.size() > kLengthAxis &&
         same_size(input.dims[kLengthAxis], pair.output->dims[kLengthAxis]);
}

void ContextRoles::add_cache(const ImportedValueInfo& input, const Pair& pair) {
  const std::string& size = input.dims[kLengthAxis].symbol;
  const ImportedValueInfo& output = *pair.output;
  if (pair.carry == Carry::kPassed) {
    other_sizes_.insert(size), other_sizes_.erase("");
    return note(fmt::format("input '{}' stays one: the model gives it back as it is", input.name));
  }
  keep(input, output);
  roles_[input.name] = InputRole::kCache;
  if (is_float(input.dtype) && is_float(output.dtype) && bit_width(input.dtype) < bit_width(output.dtype))
    wider_types_[input.name] = output.dtype;
  if (has_fixed_rows(input, pair)) {
    rooms_.push_back(input.name), room_sizes_.insert(size), room_sizes_.erase("");
  } else {
    grown_.push_back(input.name), presents_.push_back(output.name);
    if (output.dims.size() > kLengthAxis) totals_.insert(output.dims[kLengthAxis].symbol), totals_.erase("");
  }
  fix(input, kLengthAxis);
}

bool ContextRoles::is_kept(const std::string& input) const {
  return std::any_of(options_.states.begin(), options_.states.end(),
                     [&](const auto& state) { return state.second == input; });
}

// Makes the two a state, unless --state names one of them; whether it did.
bool ContextRoles::keep(const ImportedValueInfo& input, const ImportedValueInfo& output) {
  const auto named = [&](const auto& s) { return s.first == output.name || s.second == input.name; };
  if (std::any_of(options_.states.begin(), options_.states.end(), named)) return false;
  options_.states.emplace_back(output.name, input.name);
  return true;
}

// The states that convolutions and recurrent layers between those of attention keep, and beside caches of a
// fixed size the numbers of tokens that these hold.
void ContextRoles::find_other_states() {
  for (const ImportedValueInfo& input : graph_.inputs) {
    const bool counts = !rooms_.empty() && is_integer(input.dtype) && input.dims.empty();
    if (of(input) != InputRole::kGiven || options_.constants.count(input.name) != 0 ||
        !(counts || (has_word(input.name, {"past"}) && is_float(input.dtype))))
      continue;
    const ImportedValueInfo* pair = output_of(input);
    for (const ImportedValueInfo& output : graph_.outputs)
      if (counts && pair == nullptr && carry(output, input.name) == Carry::kComputed) pair = &output;
    if (pair == nullptr || pair->dtype != input.dtype || !same_shape(input, *pair)) continue;
    const Carry how = carry(*pair, input.name);
    if (how == Carry::kNone)
      note(fmt::format("input '{}' does not become output '{}', in spite of their names: the output does not "
                       "follow from it",
                       input.name, pair->name),
           fmt::format("--state {}={} keeps it all the same", pair->name, input.name));
    if (how == Carry::kNone || how == Carry::kPassed || !keep(input, *pair)) continue;
    if (counts)
      counts_.emplace_back(input.name, pair->name);
    else
      note(fmt::format("input '{}' is kept from run to run", input.name));
  }
}

// Takes the branch that reads the caches, which may be empty, of a model whose first run is a branch of its
// own.
void ContextRoles::choose_branch() {
  if (grown_.empty()) return;
  const auto found = cache_switch(graph_, grown_);
  if (!found || options_.constants.count(found->input) != 0) return;
  const auto input = std::find_if(graph_.inputs.begin(), graph_.inputs.end(),
                                  [&](const ImportedValueInfo& i) { return i.name == found->input; });
  options_.constants[found->input] =
      Constant::scalar_int(input->dtype, found->reads ? 1 : 0)->reshaped(Dims(input->dims.size(), 1));
  note(fmt::format("input '{}' is {}, so that the caches are read", found->input, found->reads));
}

// Gives an open dimension the size N.
void ContextRoles::fix(const ImportedValueInfo& input, size_t axis) {
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

// ---- masks and positions

bool ContextRoles::is_token_numbers(const ImportedValueInfo& input) const {
  const auto uses = uses_.find(input.name);
  return uses != uses_.end() && is_integer(input.dtype) && input.dims.size() == 2 && uses->second.index &&
         !uses->second.angles && uses->second.masked.empty();
}

const ImportedValueInfo* ContextRoles::tokens() const {
  // The first cache in the model's order follows from the fewest inputs: not from what an encoder computed.
  std::set<std::string> before;
  for (const ImportedNode& node : graph_.nodes)
    for (const std::string& output : node.outputs)
      if (before.empty() && std::any_of(options_.states.begin(), options_.states.end(), [&](const auto& s) {
            return s.first == output && roles_.count(s.second) != 0;
          }))
        before = flow_.ancestors(output);
  const ImportedValueInfo* found = nullptr;
  for (const ImportedValueInfo& input : graph_.inputs) {
    if (of(input) != InputRole::kGiven || input.dims.size() < 2 ||
        options_.constants.count(input.name) != 0 || before.count(input.name) == 0 || is_kept(input.name))
      continue;
    if (is_token_numbers(input)) return &input;
    if (found == nullptr || (is_float(input.dtype) && !is_float(found->dtype))) found = &input;
  }
  return found;
}

InputRole ContextRoles::mask_by_shape(const ImportedValueInfo& input) const {
  const size_t rank = input.dims.size();
  if (rank != 2 && rank != 4) return InputRole::kGiven;
  const ImportedDim& keys = input.dims.back();
  if (other_sizes_.count(keys.symbol) != 0 || passed_rooms_.count(keys.value) != 0) return InputRole::kGiven;
  if (room_sizes_.count(keys.symbol) != 0 || (!rooms_.empty() && keys.value == options_.max_context))
    return InputRole::kRoomMask;
  return rank == 2 ? InputRole::kMask : InputRole::kGiven;
}

void ContextRoles::find_roles() {
  Scores own;
  for (const auto& [name, role] : roles_) own.merge(scores_of_cache(flow_, name));
  std::vector<Candidate> all;
  std::map<InputRole, int> proven;
  for (const ImportedValueInfo& input : graph_.inputs) {
    if ((!is_integer(input.dtype) && input.dtype != DType::kBool) || of(input) == InputRole::kCache) continue;
    const InputUses& uses = uses_[input.name] = uses_of(flow_, graph_, input.name);
    if (options_.constants.count(input.name) != 0 || options_.shapes.count(input.name) != 0) continue;
    Candidate c{&input, uses, mask_by_shape(input)};
    c.masks = std::any_of(uses.masked.begin(), uses.masked.end(),
                          [&](const ImportedNode* node) { return own.count(node) != 0; });
    const bool of_all = c.mask == InputRole::kRoomMask ||
                        (c.mask == InputRole::kMask && (totals_.count(input.dims[1].symbol) != 0 ||
                                                        input.dims[1].value == options_.max_context));
    c.proven = c.masks && of_all;
    proven[c.mask] += c.proven;
    all.push_back(std::move(c));
  }
  std::map<std::string, InputRole> found;
  for (const Candidate& c : all)
    if (const InputRole role = decide(c, proven[c.mask] == 1); role != InputRole::kGiven)
      found[c.input->name] = role;
  roles_.merge(found);
}

InputRole ContextRoles::decide(const Candidate& c, bool sole_mask) const {
  const ImportedValueInfo& input = *c.input;
  const size_t rank = input.dims.size();
  // A mask beside caches of a fixed size may be that of layers with a window.
  const bool local =
      c.mask == InputRole::kRoomMask && has_word(input.name, {"sliding", "local", "window", "chunked"});
  const bool named_mask = has_word(input.name, {"mask"}),
             named_positions = has_word(input.name, {"position", "pos"});
  const auto decided = [&](InputRole role, bool named) {
    const bool contrary = named_mask != named_positions && !named;
    if (contrary)
      note(fmt::format("input '{}' is computed as {}, in spite of its name", input.name,
                       role == InputRole::kPositions ? "positions" : "a mask"),
           fmt::format("--shape {}=D1,D2,... keeps it an input", input.name));
    return role;
  };
  const auto by_name = [&](InputRole role, const char* what) {
    note(fmt::format("input '{}' is {} because of its name: the graph leaves it open", input.name, what),
         fmt::format("--shape {}=D1,D2,... keeps it an input", input.name));
    return role;
  };
  const auto stays = [&](const char* why) {
    note(fmt::format("input '{}' stays one: {}", input.name, why),
         fmt::format("--const {0}=FILE.npy gives it a value, --shape {0}=D1,D2,... a shape", input.name));
    return InputRole::kGiven;
  };
  if (c.proven && sole_mask && !local) return decided(c.mask, named_mask);
  const ImportedValueInfo* run = tokens();
  const bool counts_run = rank > 0 && run != nullptr && same_size(input.dims.back(), run->dims[1]);
  const bool numbers = std::any_of(graph_.inputs.begin(), graph_.inputs.end(),
                                   [&](const ImportedValueInfo& i) { return is_token_numbers(i); });
  // Positions of rank 3 are for several axes of pictures: in a text they count alike. Embeddings may be of
  // pictures.
  const bool may_count = is_integer(input.dtype) &&
                         (rank == 1 || rank == 2 || (rank == 0 && !rooms_.empty()) || (rank == 3 && numbers));
  if (may_count && counts_run && c.uses.angles && (rank == 1 || !c.masks))
    return decided(InputRole::kPositions, named_positions);
  if (named_mask && c.mask != InputRole::kGiven) {
    if (local) return stays("its name says that it is the mask of a window");
    if (c.masks || !c.uses.any) return by_name(c.mask, "a mask");
    return stays("its name says mask, but it masks no attention that reads a cache");
  }
  if (named_positions && may_count) {
    if (c.uses.index || c.uses.angles || c.masks || !c.uses.any)
      return by_name(InputRole::kPositions, "positions");
    return stays("its name says positions, but nothing is looked up or rotated by it");
  }
  return c.proven ? stays("it may be one of several masks, and its name does not say so") : InputRole::kGiven;
}

}  // namespace sinter::convert

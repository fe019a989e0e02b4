// --max-context N: the keys and values of a decoder become states with room for N tokens, and the session
// keeps the position (docs/decoders.md).
//
// Inputs past_key_values.0.key [B, H, P, D] and outputs present.0.key are caches: pairs of rank 4 whose names
// differ as those of proposed states do, and of which axis 2 of the input is open. What follows from the
// position is computed: an input of rank 2 named as a mask is 1 for every token up to this run's last, and
// one named as positions counts from the position on. Inputs past.0.conv of another rank or without an open
// axis, and outputs present.0.conv of the same shape, become states as they are.
//
// A cache whose output is declared as long as the input (cache_kinds.h) has room for N tokens, into which the
// model writes by itself: it is a state of this size. A mask [.., S, N] beside such caches is computed, too.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "converter/import/lower.h"

namespace sinter::convert {

class Context {
 public:
  // Without --max-context, nothing is a part of it. Refuses a model without caches, and caches whose
  // dimension has no name.
  Context(const ImportedModel& model, const LoweringOptions& given, Diagnostics& diagnostics);

  // The options with the sizes and states that follow.
  const LoweringOptions& options() const { return options_; }
  // Whether the input's value follows from the position, so that the caller does not give it.
  bool computes(const ImportedValueInfo& input) const;
  // Adds the position to the graph, and defines the inputs that it computes. `shapes` gives an input's dims.
  // Call it when the inputs that the caller gives are defined.
  void define_inputs(GraphLowering& lowering,
                     const std::function<std::optional<Dims>(const ImportedValueInfo&)>& shape_of);
  // The inputs that are caches which grow.
  const std::vector<std::string>& caches() const { return caches_; }
  // The type that a value of an input is given: of a cache whose output is wider, that of the output. Its
  // caller would round the rows that the next run reads.
  DType type_of(const ImportedValueInfo& input) const;
  // Inputs that are such caches, by the types that they have in the model.
  std::map<DType, std::vector<std::string>> wider() const;
  // The names of their dimensions 0.
  std::set<std::string> batches() const;
  // Adds the position after the run to the outputs, behind those of the model.
  void add_output(GraphLowering& lowering) const;
  // Caches are kept with all of their room, when the graph is lowered.
  void forget_lengths(Graph& graph) const;

  static constexpr size_t kLengthAxis = 2;  // of a cache
  // The state's names.
  static constexpr const char *kPosition = "context_length", *kNextPosition = "context_length.next";

 private:
  enum class Role : uint8_t { kGiven, kCache, kMask, kRoomMask, kPositions };
  Role role(const ImportedValueInfo& input) const;
  void find_caches();
  void refuse_without_caches() const;
  void add_cache(const ImportedValueInfo& input, const ImportedValueInfo& output);
  void choose_branch();
  void find_other_states();
  bool reads_tokens() const;
  const ImportedValueInfo* first_of_run() const;
  bool keep(const ImportedValueInfo& input, const ImportedValueInfo& output);
  const ImportedValueInfo* output_of(const ImportedValueInfo& input) const;
  bool has_room_for_more(const std::string& cache) const;
  void fix(const ImportedValueInfo& input, size_t axis);
  ValueId emit(GraphLowering& lowering, OpAttrs attrs, std::vector<ValueId> inputs) const;
  bool checked_elements(const ImportedValueInfo& input, const Dims& dims) const;
  ValueId mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const;
  ValueId room_mask(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const;
  ValueId positions(GraphLowering& lowering, const ImportedValueInfo& input, const Dims& dims) const;

  const ImportedModel& model_;
  Diagnostics& diagnostics_;
  LoweringOptions options_;
  std::vector<std::string> caches_;  // inputs
  std::vector<std::string> rooms_;   // inputs that are caches of a fixed size
  // Inputs that count the tokens in one of these, and the outputs that they become.
  std::vector<std::pair<std::string, std::string>> counts_;
  std::vector<int64_t> other_rooms_;    // fixed sizes of caches that are not N
  std::set<int64_t> passed_rooms_;      // those of caches that the model gives back
  std::set<std::string> room_sizes_;    // the names of their dimensions 2
  std::set<std::string> other_sizes_;   // those of caches that the caller gives
  std::map<std::string, DType> wider_;  // caches whose outputs have another type, and this
  std::vector<std::string> presents_;   // the outputs that they become
  LengthId total_ = -1;                 // tokens up to this run's last
  ValueId position_ = kAbsent;          // before this run, checked
  ValueId next_ = kAbsent;
};

}  // namespace sinter::convert

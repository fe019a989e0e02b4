// --max-context N: which inputs of a decoder are caches, masks and positions.
//
// The nodes that read an input decide what it is; its name only proposes. What the nodes prove is taken
// whatever the name. Where they leave it open, the name decides, and where they contradict the name, the
// input stays one: both are reported. Inputs that --const or --shape names stay as they are, and --state
// names the output that an input becomes.
//
// A cache is an input [B, H, P, D] and an output to which new rows are joined, or into which they are written
// where both are declared as long as each other ("rooms"). A mask of rank 2 has one element for each token up
// to this run's last; beside caches of a fixed size one of rank 2 or 4 has one for each place of these.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "converter/import/caches/cache_flow.h"
#include "converter/import/lower.h"

namespace sinter::convert {

enum class InputRole : uint8_t { kGiven, kCache, kMask, kRoomMask, kPositions };

class ContextRoles {
 public:
  // Without --max-context, every input is the caller's. Refuses a model without caches, and caches whose
  // dimension has no name.
  ContextRoles(const ImportedModel& model, const LoweringOptions& given, Diagnostics& diagnostics);

  // The options with the sizes and states that follow.
  const LoweringOptions& options() const { return options_; }
  InputRole of(const ImportedValueInfo& input) const;
  bool any() const { return !grown_.empty() || !rooms_.empty(); }
  // The inputs that are caches which grow, and the outputs that they become.
  const std::vector<std::string>& grown() const { return grown_; }
  const std::vector<std::string>& presents() const { return presents_; }
  // Inputs that count the tokens in a cache of a fixed size, and the outputs that they become.
  const std::vector<std::pair<std::string, std::string>>& counts() const { return counts_; }
  // Returns whether only operators read the cache that take one with room for more rows than it holds.
  bool has_room_for_more(const std::string& cache) const;
  // The type that an input has here: of a cache whose output is wider, that of the output. A caller of the
  // model would round the rows that the next run reads.
  DType type_of(const ImportedValueInfo& input) const;
  // The caches that have such outputs, by the types that they have in the model.
  std::map<DType, std::vector<std::string>> wider() const;
  // The names of the caches' dimensions 0.
  std::set<std::string> batches() const;
  // The numbers of tokens of a run [B, S], or else embeddings or other data [B, S, ..] that the rows of the
  // caches follow from. Null: the caller gives none.
  const ImportedValueInfo* tokens() const;

  static constexpr size_t kLengthAxis = 2;  // of a cache
  // The names of the state of the position.
  static constexpr const char *kPosition = "context_length", *kNextPosition = "context_length.next";

 private:
  struct Pair {
    const ImportedValueInfo* output = nullptr;  // null: none
    Carry carry = Carry::kNone;
  };
  // An input that may be a mask or positions.
  struct Candidate {
    const ImportedValueInfo* input;
    InputUses uses;
    InputRole mask = InputRole::kGiven;  // kMask or kRoomMask: it has the shape of one
    bool masks = false;                  // scores of attention that reads the caches
    bool proven = false;                 // to be such a mask
  };

  void find_caches();
  void refuse_without_caches() const;
  Pair pair_of(const ImportedValueInfo& input);
  static bool has_fixed_rows(const ImportedValueInfo& input, const Pair& pair);
  Carry carry(const ImportedValueInfo& output, const std::string& input);
  void add_cache(const ImportedValueInfo& input, const Pair& pair);
  void find_roles();
  void find_other_states();
  void choose_branch();
  InputRole decide(const Candidate& c, bool sole_mask) const;
  bool is_kept(const std::string& input) const;
  bool is_token_numbers(const ImportedValueInfo& input) const;
  InputRole mask_by_shape(const ImportedValueInfo& input) const;
  const ImportedValueInfo* output_of(const ImportedValueInfo& input) const;
  bool keep(const ImportedValueInfo& input, const ImportedValueInfo& output);
  void fix(const ImportedValueInfo& input, size_t axis);
  void note(std::string message, std::string remedy = {}) const;

  const ImportedGraph& graph_;
  Diagnostics& diagnostics_;
  LoweringOptions options_;
  Dataflow flow_;
  std::map<std::string, std::map<std::string, Carry>> carried_;  // by output: see carried_by()
  std::map<std::string, InputUses> uses_;                        // of inputs
  std::map<std::string, InputRole> roles_;                       // other than kGiven
  std::vector<std::string> grown_, presents_, rooms_;            // rooms_: inputs of a fixed size
  std::vector<std::pair<std::string, std::string>> counts_;
  std::vector<int64_t> other_rooms_;          // fixed sizes of caches that are not N
  std::set<int64_t> passed_rooms_;            // fixed sizes of caches that the model gives back
  std::set<std::string> room_sizes_;          // the names of the dimensions 2 of rooms_
  std::set<std::string> other_sizes_;         // the same of caches that the caller gives
  std::set<std::string> totals_;              // the same of presents_
  std::map<std::string, DType> wider_types_;  // of the outputs of caches that are narrower
};

}  // namespace sinter::convert

// The type ledger: every decision about an element type, with its rule, its reason and each reader's request.
//
// An entry is about one value as a whole (`node` empty) or about one use of it (`node` names the reader). No
// Cast is put into a graph without an entry; a Cast that the model wrote is its own reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"

namespace sinter::convert {

// The rules that decide: the rows of rules.def.
enum class TypeRule : uint8_t {
#define SINTER_TYPE_RULE(name, ...) k##name,
#include "converter/ir/rules.def"
#undef SINTER_TYPE_RULE
};
// Returns "promote.float", the id in reports, files and docs/numerics.md.
const char* rule_id(TypeRule rule);

enum class TypeEffect {
  kCast,       // the value is converted for this reader at run time
  kRetyped,    // a constant is stored in another type for this reader
  kWidened,    // the value is computed in a wider type than the model declares
  kNarrowed,   // it is computed in a narrower type, whose range and precision suffice
  kDeclared,   // the file's declaration is corrected
  kKept,       // nothing changes, although a reader requested it
  kQuantized,  // the value is rounded to integers that represent it with a scale
  kReplaced,   // an element's value is replaced (rules mask.inf, weight.tiny)
};
const char* effect_name(TypeEffect effect);

// The request of one operand of the reader.
struct TypeRequest {
  std::string operand;  // "a 'x'": its place and its value
  DType has = DType::kNone;
  bool constant = false;

  bool operator==(const TypeRequest&) const = default;
};

struct TypeDecision {
  std::string value;     // the name of the value, or of the node's operand if the value is inside it
  std::string node, op;  // the reader; empty: all of them
  DType before = DType::kNone, after = DType::kNone;
  TypeRule rule{};
  std::string reason;  // one sentence
  TypeEffect effect = TypeEffect::kCast;
  std::vector<TypeRequest> requests = {};  // the competing requests, if there are several
  // The smallest and the largest scale of integers that mean (q - zero_point) * scale; 0: none.
  double least_scale = 0, largest_scale = 0;
  int64_t zero_point = 0;

  bool operator==(const TypeDecision&) const = default;
};

nlohmann::json to_json(const TypeDecision& decision);
// Returns "value 'x' for node 'add' (Add): float16 -> float32, cast [promote.float] ..." on one line.
std::string to_line(const TypeDecision& decision);

class TypeLedger;
// Returns one JSON object a line, in order.
std::string to_lines(const TypeLedger& ledger);

class TypeLedger {
 public:
  // Appends a decision unless it is there already.
  void add(TypeDecision decision);
  const std::vector<TypeDecision>& all() const { return items_; }
  size_t size() const { return items_.size(); }
  // Forgets the decisions behind the first `size`, because a body is typed again.
  void rewind(size_t size);
  // Returns the number of decisions of each rule, by id.
  std::map<std::string, size_t> by_rule() const;

 private:
  std::vector<TypeDecision> items_;
  std::set<std::string> lines_;
};

}  // namespace sinter::convert

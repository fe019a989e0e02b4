// Diagnostics: everything that a conversion reports about a model, collected and shown together.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_set>
#include <vector>

namespace sinter::convert {

enum class Severity {
  kNote,     // a fact for the record
  kWarning,  // the user may want to act; --strict fails
  kRefusal,  // the model cannot be converted
};

struct Diagnostic {
  Severity severity = Severity::kNote;
  std::string node;           // the ONNX node's name, or a value's; empty: the model as a whole
  std::string op;             // the node's op type
  std::string message;        // the fault, with types and shapes
  std::string remedy;         // the advice to the user; may be empty
  std::string operands = {};  // this node's operands: "'x' float32[2,3], 'w' int8[3]"; may be empty
  bool shapes = false;        // shapes, counts or indices disagree

  bool operator==(const Diagnostic&) const = default;
};

// Returns "refused: node 'conv_3' (Conv): ...; ..." on one line, for any bytes in the names.
std::string to_line(const Diagnostic& d);
// Returns one line for several: "refused: 3 nodes, 'a', 'b', 'c' (Conv): ...".
std::string to_line(const std::vector<const Diagnostic*>& equal);

// The diagnostics of a conversion in the order in which they were added; equal ones are kept once. Beyond ten
// thousand they are only counted, because calls in a small file can expand to many faults.
class Diagnostics {
 public:
  void add(Diagnostic d);
  void note(std::string node, std::string op, std::string message);
  void warn(std::string node, std::string op, std::string message, std::string remedy = {});
  void refuse(std::string node, std::string op, std::string message, std::string remedy = {});

  const std::vector<Diagnostic>& all() const { return items_; }
  size_t count(Severity severity) const;
  bool refused() const { return refused_; }
  // Returns the diagnostics of at least this severity, with one line for equal ones, in the order of adding.
  std::string to_text(Severity least = Severity::kNote) const;
  nlohmann::json to_json() const;

 private:
  std::vector<Diagnostic> items_;
  std::unordered_set<std::string> known_;  // the texts of items_
  size_t left_out_ = 0;
  bool refused_ = false;
};

}  // namespace sinter::convert

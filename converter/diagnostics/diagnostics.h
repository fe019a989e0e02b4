// Diagnostics: everything that a conversion reports about a model, collected and shown together.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_set>
#include <vector>

namespace sinter::convert {

enum class Severity {
  kNote,     // for the record
  kWarning,  // a reader may want to act; --strict fails
  kRefusal,  // the model cannot be converted
};

struct Diagnostic {
  Severity severity = Severity::kNote;
  std::string node;           // the ONNX node's name, or a value's; empty: the model as a whole
  std::string op;             // its op type
  std::string message;        // what is wrong, with types and shapes
  std::string remedy;         // what to do about it; may be empty
  std::string operands = {};  // of this node alone: "'x' float32[2,3], 'w' int8[3]"; may be empty
  bool shapes = false;        // shapes, counts or indices disagree

  bool operator==(const Diagnostic&) const = default;
};

// "refused: node 'conv_3' (Conv): ...; ..." on one line, for any bytes in the names.
std::string to_line(const Diagnostic& d);
// Several that differ in node, op and operands only, on one line: "refused: 3 nodes, 'a', 'b', 'c' (Conv):
// ...".
std::string to_line(const std::vector<const Diagnostic*>& equal);

// Keeps the order in which diagnostics were added; equal diagnostics are kept once. Beyond ten thousand they
// are only counted: a small file can hold calls that expand to many faults.
class Diagnostics {
 public:
  void add(Diagnostic d);
  void note(std::string node, std::string op, std::string message);
  void warn(std::string node, std::string op, std::string message, std::string remedy = {});
  void refuse(std::string node, std::string op, std::string message, std::string remedy = {});

  const std::vector<Diagnostic>& all() const { return items_; }
  size_t count(Severity severity) const;
  bool refused() const { return refused_; }
  // One line for equal ones, of at least this severity, in the order of filing.
  std::string to_text(Severity least = Severity::kNote) const;
  nlohmann::json to_json() const;

 private:
  std::vector<Diagnostic> items_;
  std::unordered_set<std::string> known_;  // items_, each as one text
  size_t left_out_ = 0;
  bool refused_ = false;
};

}  // namespace sinter::convert

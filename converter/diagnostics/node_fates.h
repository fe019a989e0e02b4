// The fate of each ONNX node: its own step, a constant, a part of another node's step, or nothing; and the
// nodes that read each initializer, whose fate it shares where it leaves no value of its name.
//
// The import enters every node that it lowers, and every initializer. A rewriting does not report the nodes
// that it removes: follow() compares the graph before and after it, and finds what they have become.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

struct NodeFate {
  enum class Kind {
    kStep,      // it has operations of its name
    kConstant,  // its results are constants
    kValue,     // its readers read `into`, a value, and it has no operations
    kFused,     // the operations of node `into` compute it
    kDropped,   // no output needs it
  };
  std::string node, op;
  std::vector<std::string> outputs;
  Kind kind = Kind::kStep;
  std::string into;
  std::string by = {};  // the pass that removed it; empty: the import
};

// A constant of the model: an initializer, or an input that --const made constant.
struct GivenConstant {
  std::string name, type;            // "float32 [16,3,3,3]"
  std::vector<std::string> readers;  // names of ONNX nodes, those of branches and loop bodies included
};

class NodeFates {
 public:
  // Adds an entry. Several of one name (an unrolled loop's body) become one, of the first of their kinds.
  void add(NodeFate fate);
  const std::vector<NodeFate>& all() const { return items_; }
  void add(GivenConstant constant) { constants_.push_back(std::move(constant)); }
  const std::vector<GivenConstant>& constants() const { return constants_; }

  // The facts about a graph and its bodies that follow() needs.
  class Picture {
   public:
    explicit Picture(const Graph& graph);
    ~Picture();
    Picture(Picture&&) noexcept;

   private:
    friend class NodeFates;
    struct Parts;
    std::unique_ptr<Parts> parts_;
  };
  // Enters the fates of nodes that the rewriting `by` removed. `graph`, after it, has kept the values' ids.
  void follow(const char* by, const Picture& before, const Graph& graph);

 private:
  std::vector<NodeFate> items_;
  std::vector<GivenConstant> constants_;
  std::map<std::string, size_t> index_;
};

// Returns a JSON object a line for each node that has become something other than steps of its name, or has a
// result that is not a value of `graph`: "onnx_node", "op", "outputs", "became", and "into" and "by" if any.
// One for each constant that is not a value of `graph` follows: "onnx_constant", "type" and "readers".
std::string to_lines(const NodeFates& fates, const Graph& graph);
// Returns "fused into node 'conv' by pass fuse-clamp" for such an object.
std::string fate_words(const nlohmann::json& line);
// Returns "'bias' (float32 [4]) left no value of its name: ... its reader, node 'norm'" for a constant's.
std::string constant_words(const nlohmann::json& line);

}  // namespace sinter::convert

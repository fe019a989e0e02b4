// The fate of each ONNX node: its own step, a constant, a part of another node's step, or nothing;
// and which nodes read each initializer, which go with them where they leave no value of their name.
//
// The import enters every node that it lowers, and every initializer. A rewriting does not report what it
// does to nodes: follow() compares the graph before and after it, and finds where the nodes that are gone
// went.
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
    kStep,      // operations that bear the node's name
    kConstant,  // its results are known
    kValue,     // no steps: its readers take `into`, a value
    kFused,     // computed by the operations of node `into`
    kDropped,   // no output needs it
  };
  std::string node, op;
  std::vector<std::string> outputs;
  Kind kind = Kind::kStep;
  std::string into;
  std::string by = {};  // the pass that did it; empty: the import
};

// A constant that the model gives: an initializer, or an input that --const made one.
struct GivenConstant {
  std::string name, type;            // "float32 [16,3,3,3]"
  std::vector<std::string> readers;  // names of ONNX nodes, those of branches and loop bodies included
};

class NodeFates {
 public:
  // Several entries of one name (an unrolled loop's body) are kept as one: the one with most of it left.
  void add(NodeFate fate);
  const std::vector<NodeFate>& all() const { return items_; }
  void add(GivenConstant constant) { constants_.push_back(std::move(constant)); }
  const std::vector<GivenConstant>& constants() const { return constants_; }

  // A graph and its bodies, as follow() needs them.
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
  // `graph` is the one of the picture, after a rewriting called `by`; its values have kept their ids.
  void follow(const char* by, const Picture& before, const Graph& graph);

 private:
  std::vector<NodeFate> items_;
  std::vector<GivenConstant> constants_;
  std::map<std::string, size_t> index_;
};

// One JSON object a line for each node that became something other than steps of its name, or with a result
// that is not a value of `graph`: "onnx_node", "op", "outputs", "became", and "into" and "by" where they
// apply. Then one for each constant that is not a value of `graph`: "onnx_constant", "type" and "readers".
std::string to_lines(const NodeFates& fates, const Graph& graph);
// "fused into node 'conv' by pass fuse-clamp", from such an object.
std::string fate_words(const nlohmann::json& line);
// "'bias' (float32 [4]) left no value of its name: ... its reader, node 'norm'", from one of a constant.
std::string constant_words(const nlohmann::json& line);

}  // namespace sinter::convert

// Editor: what rewriting passes share. Nodes stay where they are during a sweep, so that indexes hold; its
// end puts inserted nodes in and takes erased ones out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/ir/builder.h"
#include "converter/ir/graph.h"
#include "converter/passes/pass.h"

namespace sinter::convert {

// A scope in which the rewrites that this thread makes are entered into `rewrites`.
class CountRewrites {
 public:
  explicit CountRewrites(Rewrites* rewrites);
  ~CountRewrites();
  CountRewrites(const CountRewrites&) = delete;
  CountRewrites& operator=(const CountRewrites&) = delete;
};
// Returns whether the pass that runs may make one more rewrite.
bool may_rewrite();
// Enters one at a node of that name.
void enter_rewrite(const std::string& node);

class Editor {
 public:
  explicit Editor(Graph& graph);

  Graph& graph() { return graph_; }
  const Value& value(ValueId id) const { return graph_.value(id); }
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  Node& node(int n) { return graph_.nodes[static_cast<size_t>(n)]; }
  bool erased(int n) const { return erased_[static_cast<size_t>(n)]; }
  // The first result of a node; kAbsent: it has none, or nothing reads it.
  ValueId result(int n) { return node(n).outputs.empty() ? kAbsent : node(n).outputs[0]; }

  // Calls visit(n) for each node that is not erased, and commits. All that a visit changes is one rewrite; no
  // node is visited once as many are made as may be. Returns the count of changes.
  template <class Visit>
  int sweep(Visit visit) {
    for (int n = 0; n < size() && may_rewrite(); ++n) {
      if (erased(n)) continue;
      const int before = changes;
      visit(n);
      if (changes != before) enter_rewrite(node(n).name);
    }
    return commit();
  }

  // The node that makes a value: -1 for inputs, constants and what this editor inserted.
  int producer(ValueId id) const { return id < 0 || !known(id) ? -1 : producer_[static_cast<size_t>(id)]; }
  // The node that makes a value if it is this kind of operation, else -1.
  template <class A>
  int made_by(ValueId id) {
    const int n = producer(id);
    return n >= 0 && node(n).as<A>() != nullptr ? n : -1;
  }
  // Operands that read it, graph outputs and lengths of bounded dimensions counted.
  int reads(ValueId id) const { return known(id) ? reads_[static_cast<size_t>(id)] : 0; }
  bool single_read(ValueId id) const { return reads(id) == 1; }
  // The node that alone reads a value; -1 where several do, a graph output, or what this editor inserted.
  int reader(ValueId id) const {
    return single_read(id) ? static_cast<int>(readers_[static_cast<size_t>(id)]) : -1;
  }

  // The node computes its outputs in another way.
  void replace(int n, OpAttrs attrs, std::vector<ValueId> inputs);
  // The node writes `consumer`'s output instead of its own, which only `consumer` read; `consumer` goes.
  void absorb(int n, int consumer);
  // Everybody reads `to` instead of node n's only output, and n goes; where that output is public it becomes
  // a Copy.
  void bypass(int n, ValueId to);
  // A new operation before node n; constants fold. kAbsent if the operation is not possible.
  ValueId insert(int n, OpAttrs attrs, std::vector<ValueId> inputs);
  // The same with several outputs: kAbsent where they are not wanted. Empty if the operation is not possible.
  std::vector<ValueId> insert_many(int n, OpAttrs attrs, std::vector<ValueId> inputs,
                                   const std::vector<bool>& wanted);
  ValueId constant(ConstantPtr c) { return graph_.add_constant(std::move(c)); }
  // Puts inserted nodes in, takes erased and dead ones out; returns the count of changes. The editor is void
  // afterwards.
  int commit();

  // The one element of a constant.
  std::optional<double> scalar(ValueId id) const;
  // A constant whose elements are all one number.
  std::optional<double> uniform(ValueId id) const;

  int changes = 0;

 private:
  bool known(ValueId id) const { return id >= 0 && static_cast<size_t>(id) < producer_.size(); }
  void count(int n, int by);
  // `by` reads of a value, by node n; -1: something else.
  void count(ValueId id, int by, int n);
  Graph& graph_;
  std::vector<int> producer_, reads_;
  std::vector<int64_t> readers_;  // the sum of their numbers: of one reader its number
  std::vector<bool> erased_;
  std::vector<std::vector<Node>> inserted_;
};

// Runs a sweep over the graph until it finds nothing more, at most 20 times; returns all changes.
int until_stable(Graph& graph, int (*sweep)(Graph&));

// Whether an operation is one that does not clamp its own result.
template <class A>
bool unclamped(const A* a) {
  return a != nullptr && a->act_min == -kInfinity && a->act_max == kInfinity;
}

// Between what an operation, perhaps a Clamp, holds its results.
struct Bounds {
  double low = -kInfinity, high = kInfinity;
  bool none() const { return low == -kInfinity && high == kInfinity; }
};
Bounds clamp_of(const Node& node);

// A constant of one axis.
template <class T>
ConstantPtr vector_of(DType type, const std::vector<T>& items) {
  return Constant::of<T>(type, {static_cast<int64_t>(items.size())}, items);
}
// A constant of float32 or float64; float32 rounds the numbers.
ConstantPtr real_constant(DType type, const Dims& dims, const std::vector<double>& numbers);

// Whether a Transpose moves only axes of size 1, and so no byte.
bool moves_only_ones(const IntList& perm, const Dims& dims);
bool same_dims(const Graph& graph, ValueId a, ValueId b);
// Adds a value of another type that has the name and the dims of `v`; returns it.
ValueId add_retyped(Graph& graph, Value v, DType type);

}  // namespace sinter::convert

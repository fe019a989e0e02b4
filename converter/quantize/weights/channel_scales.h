// Which channels of a graph's values have to share a scale, and which may have one of their own.
//
// Every float value has one axis of channels (the last one, until it is moved). Two channels are one group
// where an operation between them gives s * y for s * x: movement, pools, resizing, Relu and its kin, sums,
// the values of an attention. Products and normalizations end groups: what they give can be divided in their
// rows, what they read multiplied in their columns. Channels that anything else makes or reads, the public
// ones among them, are fixed: group 0.
#pragma once

#include <vector>

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

class ChannelScales {
 public:
  // Bounds of clamps limit scales by what was seen.
  ChannelScales(const Graph& graph, const Observations& seen);

  struct Group {
    double least = 0, most = kInfinity;  // scales that are allowed; 1 always is
    bool normalized = false;             // a normalization makes some of it
  };
  // [0] is fixed.
  const std::vector<Group>& groups() const { return groups_; }
  // The group of each channel along the last axis; empty: they are on another axis, or it has none.
  std::vector<int> of(ValueId id) const;

  // Divides every value's channels by the scale of their group. Scales beyond their limits are a bug.
  void apply(Graph& graph, const std::vector<double>& scales) const;

 private:
  struct Channels {
    int first = -1, count = 0;  // variables
    int axis = -1;
  };
  struct Bound {
    ValueId value;
    double low, high;
  };
  struct Addend {
    size_t node, operand;
  };
  int root(int v);
  void join(int a, int b);
  void fix(ValueId id);
  void fix_all(const Node& node);
  bool tie(ValueId a, ValueId b);  // channel by channel
  bool place(ValueId id, int axis);
  const Channels& at(ValueId id) const { return channels_[static_cast<size_t>(id)]; }
  bool free_value(ValueId id) const { return id >= 0 && at(id).first > 0; }

  // The rules; false: no rule fits, everything at the node is fixed.
  bool visit(size_t n);
  bool no_rule(const Node&) { return false; }
  bool unary(const Node& node) { return same(node, node.inputs[0]); }
  bool clamp(const Node& node);
  bool slopes(const Node& node);
  bool product(const Node& node);
  bool norm(const Node& node);
  bool same(const Node& node, ValueId x);  // each element depends on x's element alone
  bool pooled(const Node& node);
  bool reduced(const Node& node);
  bool sum(const Node& node);
  bool scaled(const Node& node);
  bool extreme(const Node& node);
  bool view(const Node& node);
  bool moved(const Node& node);
  bool attention(const Node& node);
  bool mat_mul(const Node& node);
  bool aligned(ValueId x, ValueId y);  // broadcast of x along y's other axes
  bool bounded(ValueId y, double low, double high);

  const Graph& graph_;
  std::vector<Channels> channels_;
  std::vector<int> parent_;
  std::vector<Bound> bounds_;
  std::vector<Addend> addends_;
  std::vector<ValueId> normalized_;
  std::vector<Group> groups_;
  std::vector<int> number_;  // of each variable's group
};

}  // namespace sinter::convert

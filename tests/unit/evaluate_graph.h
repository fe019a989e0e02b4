// Small graphs for tests of passes: made node by node, evaluated in float64 before and after.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "converter/ir/builder.h"
#include "converter/ir/graph.h"

namespace sinter::convert::testing {

inline CastAttrs to(DType t) { return {static_cast<int64_t>(t), 1}; }

// A graph being written. Inputs and constants are filled with numbers that follow from their order alone.
struct Sketch {
  Graph graph;
  std::vector<ConstantPtr> feeds;
  double next = 0.1;

  ConstantPtr fill(const Dims& dims, double low, double high) {
    std::vector<float> items(static_cast<size_t>(element_count(dims)));
    for (float& item : items) {
      next = std::fmod(next * 9.7 + 0.37, 1.0);
      item = static_cast<float>(low + (high - low) * next);
    }
    return Constant::of<float>(DType::kFloat32, dims, items);
  }
  ValueId input(Dims dims, double low = -2, double high = 2) {
    feeds.push_back(fill(dims, low, high));
    const ValueId id = graph.add_value("in" + std::to_string(feeds.size()), DType::kFloat32, std::move(dims));
    graph.inputs.push_back(id);
    return id;
  }
  ValueId constant(Dims dims, double low = -1, double high = 1) {
    return graph.add_constant(fill(dims, low, high));
  }
  ValueId scalar(double v) { return graph.add_constant(Constant::scalar(DType::kFloat32, v)); }
  ValueId emit(OpAttrs attrs, std::vector<ValueId> inputs) {
    Builder builder(graph);
    std::vector<ValueId> result;
    const Status status = builder.emit(std::move(attrs), std::move(inputs), 1, &result);
    if (!status.ok()) throw std::logic_error("a test builds an operation that is not possible");
    return result[0];
  }
  void output(ValueId id, const std::string& name = "out") {
    graph.value(id).name = name;
    graph.outputs.push_back(id);
  }
};

// All outputs in float64.
inline std::vector<std::vector<double>> evaluate_graph(const Graph& graph,
                                                       const std::vector<ConstantPtr>& feeds) {
  const Graph wide = to_float64(graph);
  std::map<ValueId, ConstantPtr> known;
  for (size_t i = 0; i < wide.inputs.size(); ++i) {
    std::vector<ConstantPtr> cast{feeds[i]};
    if (feeds[i]->dtype() != wide.value(wide.inputs[i]).dtype) {
      EXPECT_TRUE(evaluate(CastAttrs{static_cast<int64_t>(DType::kFloat64), 1}, {feeds[i]}, 1, &cast).ok());
    }
    known[wide.inputs[i]] = cast[0];
  }
  const auto get = [&](ValueId id) {
    return id < 0 ? nullptr : wide.value(id).constant ? wide.value(id).constant : known.at(id);
  };
  for (const Node& node : wide.nodes) {
    std::vector<ConstantPtr> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(get(id));
    const Status status = evaluate(node.attrs, inputs, node.outputs.size(), &outputs);
    EXPECT_TRUE(status.ok()) << op_name(node.op());
    if (!status.ok()) return {};
    for (size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i] >= 0) known[node.outputs[i]] = outputs[i];
  }
  std::vector<std::vector<double>> results;
  for (const ValueId id : wide.outputs) results.push_back(get(id)->as_doubles());
  return results;
}

inline int count_ops(const Graph& graph, Op op) {
  int n = 0;
  for (const Node& node : graph.nodes) n += node.op() == op;
  return n;
}

// Runs the pass; the graph must stay well formed, its public side unchanged and its results equal within
// `tolerance` of the largest.
inline int apply(int (*pass)(Graph&), Sketch& s, double tolerance = 1e-12) {
  EXPECT_EQ(check(s.graph), "") << dump(s.graph);
  const auto before = evaluate_graph(s.graph, s.feeds);
  std::vector<std::string> names;
  for (const ValueId id : s.graph.outputs) names.push_back(s.graph.value(id).name);
  advance(s.graph, Stage::kRewritten);
  const int changes = pass(s.graph);
  EXPECT_EQ(check(s.graph), "") << dump(s.graph);
  const auto after = evaluate_graph(s.graph, s.feeds);
  EXPECT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
    EXPECT_EQ(s.graph.value(s.graph.outputs[i]).name, names[i]);
    EXPECT_EQ(before[i].size(), after[i].size());
    double largest = 1e-30, worst = 0;
    for (size_t k = 0; k < before[i].size() && k < after[i].size(); ++k) {
      largest = std::max(largest, std::fabs(before[i][k]));
      if (std::isnan(before[i][k]) != std::isnan(after[i][k])) worst = HUGE_VAL;
      if (before[i][k] != after[i][k]) worst = std::max(worst, std::fabs(before[i][k] - after[i][k]));
    }
    EXPECT_LE(worst, tolerance * largest) << dump(s.graph);
  }
  return changes;
}

}  // namespace sinter::convert::testing

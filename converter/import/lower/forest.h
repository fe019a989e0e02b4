// Tree ensembles of ai.onnx.ml as tables, in the one form that is computed.
//
// A branch goes on to `yes` where x[feature] <= value (or, `equal`, where they are the same), else to `no`;
// NaN goes to `yes` where `nan_yes`. Every mode has this form: x < v is x <= the next number below v, the
// opposites exchange their children, and a test for membership of a set is a chain of tests for equality.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "converter/import/lowering.h"

namespace sinter::convert {

struct TreeBranch {
  int64_t feature = 0;
  double value = 0;
  bool equal = false, nan_yes = false;
  int64_t yes = 0, no = 0;  // Forest::at
};
struct LeafWeight {
  int64_t target = 0;
  double weight = 0;
};

struct Forest {
  std::vector<TreeBranch> branches;
  std::vector<std::vector<LeafWeight>> leaves;
  std::vector<int64_t> roots;  // one for each tree
  int64_t depth = 0;           // branches from a root to its deepest leaf
  int64_t features = 0;        // that are read: 1 + the highest number of one

  // How children and roots name a branch or a leaf.
  static int64_t branch(size_t i) { return static_cast<int64_t>(i); }
  static int64_t leaf(size_t i) { return -1 - static_cast<int64_t>(i); }
  static bool is_leaf(int64_t at) { return at < 0; }
  static size_t leaf_number(int64_t at) { return static_cast<size_t>(-1 - at); }
};

// Returns the trees of a TreeEnsembleRegressor or TreeEnsembleClassifier, whose leaf weights have attributes
// that begin with `leaves`
// ("target", "class"). `wide`: x is float64, else float32. nullopt: refused.
std::optional<Forest> read_forest(NodeLowering& n, std::string_view leaves, bool wide);
// Returns the trees of a TreeEnsemble (ai.onnx.ml 5).
std::optional<Forest> read_ensemble(NodeLowering& n, bool wide);

// Returns the numbers of attribute `name`, a list of floats, or of `name`_as_tensor. Empty: neither is given.
std::vector<double> floats_or_tensor(NodeLowering& n, std::string_view name);

}  // namespace sinter::convert

#include "converter/import/lower/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace sinter::convert {
namespace {

enum class Mode { kLeq = 0, kLt, kGte, kGt, kEq, kNeq, kMember };

constexpr int64_t kDeepest = 4096;  // branches, each of which is several operations
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::optional<Mode> named_mode(std::string_view name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Mode>(i);
  return std::nullopt;
}

// The largest number of the type below v. NaN, which nothing is at most, where there is none.
double below(double v, bool wide) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (std::isnan(v) || v == -kInf) return kNan;
  if (wide || std::fabs(v) > std::numeric_limits<float>::max()) return std::nextafter(v, -kInf);
  return static_cast<double>(std::nextafter(static_cast<float>(v), -std::numeric_limits<float>::infinity()));
}

// A branch of any mode but kMember in the one form. `missing`: NaN goes to `yes`.
TreeBranch canonical(Mode mode, TreeBranch b, bool missing, bool wide) {
  // NaN fails every comparison but "not equal".
  b.nan_yes = missing || mode == Mode::kNeq;
  if (mode == Mode::kLt || mode == Mode::kGte) b.value = below(b.value, wide);
  b.equal = mode == Mode::kEq || mode == Mode::kNeq;
  if (mode == Mode::kGte || mode == Mode::kGt || mode == Mode::kNeq) {
    std::swap(b.yes, b.no);
    b.nan_yes = !b.nan_yes;
  }
  return b;
}

// Depth, and refusal of cycles: each branch is entered once while it is on the path.
class Measure {
 public:
  explicit Measure(const Forest& forest) : forest_(forest), depth_(forest.branches.size(), kNew) {}
  // -1: a cycle.
  int64_t of(int64_t root) {
    std::vector<int64_t> path{root};
    while (!path.empty()) {
      const int64_t at = path.back();
      if (Forest::is_leaf(at) || depth_[static_cast<size_t>(at)] >= 0) {
        path.pop_back();
        continue;
      }
      int64_t& depth = depth_[static_cast<size_t>(at)];
      const TreeBranch& b = forest_.branches[static_cast<size_t>(at)];
      if (depth == kNew) {
        depth = kOpen;
        for (const int64_t child : {b.yes, b.no}) {
          if (Forest::is_leaf(child)) continue;
          if (depth_[static_cast<size_t>(child)] == kOpen) return -1;
          path.push_back(child);
        }
      } else {
        depth = 1 + std::max(known(b.yes), known(b.no));
        path.pop_back();
      }
    }
    return known(root);
  }

 private:
  static constexpr int64_t kNew = -1, kOpen = -2;
  int64_t known(int64_t at) const {
    return Forest::is_leaf(at) ? 0 : std::max<int64_t>(depth_[static_cast<size_t>(at)], 0);
  }
  const Forest& forest_;
  std::vector<int64_t> depth_;
};

std::optional<Forest> measured(NodeLowering& n, Forest forest) {
  Measure measure(forest);
  for (const int64_t root : forest.roots) {
    const int64_t depth = measure.of(root);
    if (depth < 0) {
      n.refuse("a tree leads back to one of its own nodes");
      return std::nullopt;
    }
    forest.depth = std::max(forest.depth, depth);
  }
  if (forest.depth > kDeepest) {
    n.refuse("a tree is {} branches deep, more than {}", forest.depth, kDeepest);
    return std::nullopt;
  }
  for (const TreeBranch& b : forest.branches) {
    if (b.feature < 0) {
      n.refuse("a branch reads feature {}", b.feature);
      return std::nullopt;
    }
    forest.features = std::max(forest.features, b.feature + 1);
  }
  if (forest.roots.empty()) {
    n.refuse("it has no trees");
    return std::nullopt;
  }
  return forest;
}

}  // namespace

std::vector<double> floats_or_tensor(NodeLowering& n, std::string_view name) {
  const std::vector<double> list = n.attr_floats(name);
  const ConstantPtr tensor = n.attr_tensor(std::string(name) + "_as_tensor");
  return tensor ? tensor->as_doubles() : list;
}

std::optional<Forest> read_forest(NodeLowering& n, std::string_view leaves, bool wide) {
  n.ignore_attr("nodes_hitrates");
  n.ignore_attr("nodes_hitrates_as_tensor");
  const auto trees = n.attr_ints("nodes_treeids"), ids = n.attr_ints("nodes_nodeids"),
             features = n.attr_ints("nodes_featureids"), yes = n.attr_ints("nodes_truenodeids"),
             no = n.attr_ints("nodes_falsenodeids");
  auto missing = n.attr_ints("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = n.attr_strings("nodes_modes");
  const std::vector<double> values = floats_or_tensor(n, "nodes_values");
  const auto attribute = [&](const char* what) { return std::string(leaves) + what; };
  const auto leaf_trees = n.attr_ints(attribute("_treeids")), leaf_nodes = n.attr_ints(attribute("_nodeids")),
             leaf_targets = n.attr_ints(attribute("_ids"));
  const std::vector<double> leaf_weights = floats_or_tensor(n, attribute("_weights"));
  const size_t count = trees.size();
  if (missing.empty()) missing.assign(count, 0);
  if (ids.size() != count || features.size() != count || yes.size() != count || no.size() != count ||
      modes.size() != count || values.size() != count || missing.size() != count) {
    n.refuse("its lists of nodes differ in length");
    return std::nullopt;
  }
  if (leaf_nodes.size() != leaf_trees.size() || leaf_targets.size() != leaf_trees.size() ||
      leaf_weights.size() != leaf_trees.size()) {
    n.refuse("its lists of {} weights differ in length", leaves);
    return std::nullopt;
  }
  Forest forest;
  std::map<std::pair<int64_t, int64_t>, int64_t> place;  // tree and node
  std::map<int64_t, bool> rooted;
  for (size_t i = 0; i < count; ++i) {
    const bool is_leaf = modes[i] == "LEAF";
    if (!is_leaf && !named_mode(modes[i])) {
      n.refuse("mode '{}' of node {} of tree {} is unknown", modes[i], ids[i], trees[i]);
      return std::nullopt;
    }
    const int64_t at = is_leaf ? Forest::leaf(forest.leaves.size()) : Forest::branch(forest.branches.size());
    if (is_leaf)
      forest.leaves.emplace_back();
    else
      forest.branches.emplace_back();
    if (!place.emplace(std::pair(trees[i], ids[i]), at).second) {
      n.refuse("node {} of tree {} occurs twice", ids[i], trees[i]);
      return std::nullopt;
    }
    if (rooted.emplace(trees[i], true).second) forest.roots.push_back(at);  // the first node of a tree
  }
  for (size_t i = 0, b = 0; i < count; ++i) {
    if (modes[i] == "LEAF") continue;
    TreeBranch branch{features[i], values[i], false, false, 0, 0};
    for (const auto& [child, id] : {std::pair(&branch.yes, yes[i]), std::pair(&branch.no, no[i])}) {
      const auto found = place.find({trees[i], id});
      if (found == place.end()) {
        n.refuse("node {} of tree {} leads to node {}, which does not exist", ids[i], trees[i], id);
        return std::nullopt;
      }
      *child = found->second;
    }
    forest.branches[b++] = canonical(*named_mode(modes[i]), branch, missing[i] != 0, wide);
  }
  for (size_t i = 0; i < leaf_trees.size(); ++i) {
    const auto found = place.find({leaf_trees[i], leaf_nodes[i]});
    if (found == place.end()) {
      n.refuse("a weight is for node {} of tree {}, which does not exist", leaf_nodes[i], leaf_trees[i]);
      return std::nullopt;
    }
    // Weights of branches are never reached.
    if (Forest::is_leaf(found->second))
      forest.leaves[Forest::leaf_number(found->second)].push_back({leaf_targets[i], leaf_weights[i]});
  }
  return measured(n, std::move(forest));
}

std::optional<Forest> read_ensemble(NodeLowering& n, bool wide) {
  n.ignore_attr("nodes_hitrates");
  const auto numbers = [&](const char* name) {
    const ConstantPtr tensor = n.attr_tensor(name);
    return tensor ? tensor->as_doubles() : std::vector<double>();
  };
  const std::vector<double> splits = numbers("nodes_splits"), modes = numbers("nodes_modes"),
                            weights = numbers("leaf_weights"), members = numbers("membership_values");
  const auto features = n.attr_ints("nodes_featureids"), yes = n.attr_ints("nodes_truenodeids"),
             no = n.attr_ints("nodes_falsenodeids"), yes_leaf = n.attr_ints("nodes_trueleafs"),
             no_leaf = n.attr_ints("nodes_falseleafs"), targets = n.attr_ints("leaf_targetids"),
             roots = n.attr_ints("tree_roots");
  auto missing = n.attr_ints("nodes_missing_value_tracks_true");
  const size_t count = splits.size();
  if (missing.empty()) missing.assign(count, 0);
  const auto refuse = [&](const std::string& why) {
    n.refuse("{}", why);
    return std::nullopt;
  };
  if (features.size() != count || modes.size() != count || yes.size() != count || no.size() != count ||
      yes_leaf.size() != count || no_leaf.size() != count || missing.size() != count)
    return refuse("its lists of nodes differ in length");
  if (targets.size() != weights.size()) return refuse("its lists of leaves differ in length");
  Forest forest;
  for (size_t i = 0; i < weights.size(); ++i) forest.leaves.push_back({{targets[i], weights[i]}});
  forest.branches.resize(count);
  size_t member = 0;  // the next of `members`
  for (size_t i = 0; i < count; ++i) {
    TreeBranch branch{features[i], splits[i], false, false, 0, 0};
    for (const auto& [child, id, is_leaf] :
         {std::tuple(&branch.yes, yes[i], yes_leaf[i]), std::tuple(&branch.no, no[i], no_leaf[i])}) {
      const size_t most = is_leaf != 0 ? weights.size() : count;
      if (id < 0 || id >= static_cast<int64_t>(most))
        return refuse(fmt::format("node {} leads to {} {}, which does not exist", i,
                                  is_leaf != 0 ? "leaf" : "node", id));
      *child = is_leaf != 0 ? Forest::leaf(static_cast<size_t>(id)) : id;
    }
    if (!(modes[i] >= 0 && modes[i] <= static_cast<double>(Mode::kMember)))
      return refuse(fmt::format("mode {} of node {} is unknown", modes[i], i));
    const auto mode = static_cast<Mode>(static_cast<int>(modes[i]));
    if (mode != Mode::kMember) {
      forest.branches[i] = canonical(mode, branch, missing[i] != 0, wide);
      continue;
    }
    std::vector<double> set;
    while (member < members.size() && !std::isnan(members[member])) set.push_back(members[member++]);
    if (member++ == members.size())
      return refuse("membership_values has fewer sets than there are nodes that test them");
    if (set.empty()) set.push_back(kNan);  // nothing is equal to it
    // The chain from its end; its first test is the node itself.
    int64_t otherwise = branch.no;
    for (size_t k = set.size(); k-- > 0;) {
      TreeBranch test{branch.feature, set[k], true, false, branch.yes, otherwise};
      if (k == 0) {
        test.nan_yes = missing[i] != 0;
        forest.branches[i] = test;
      } else {
        otherwise = Forest::branch(forest.branches.size());
        forest.branches.push_back(test);
      }
    }
  }
  for (const int64_t root : roots) {
    if (root < 0 || root >= static_cast<int64_t>(count))
      return refuse(fmt::format("a tree begins at node {}, which does not exist", root));
    forest.roots.push_back(root);
  }
  return measured(n, std::move(forest));
}

}  // namespace sinter::convert

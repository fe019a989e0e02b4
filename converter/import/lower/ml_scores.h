// Scores and classes of ai.onnx.ml: what its linear models and tree ensembles share.
#pragma once

#include <optional>
#include <string_view>

#include "converter/import/lower/common.h"

namespace sinter::convert {

inline constexpr std::string_view kMachineLearning = "ai.onnx.ml";  // a domain

enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
// Attribute post_transform by its name. nullopt: refused.
std::optional<PostTransform> named_post_transform(NodeLowering& n);
// Returns the transformed float32 scores [N,C]; softmax along C. A single score with a softmax or a logistic
// function is refused: ONNX applies it, onnxruntime does not.
ValueId post_transformed(NodeLowering& n, ValueId scores, PostTransform transform);

// x as float32 [N,F]; a vector is one row.
ValueId feature_rows(NodeLowering& n, ValueId x);

// The labels of a classifier: integers, or strings, of which outputs have the number.
struct ClassLabels {
  int64_t count = 0;
  std::vector<int64_t> numbers;
};
// Returns the labels that the attributes of these names give. nullopt: refused.
std::optional<ClassLabels> class_labels(NodeLowering& n, std::string_view integers, std::string_view strings);
// The label for each class number of int64 [N].
ValueId labels_at(NodeLowering& n, const ClassLabels& labels, ValueId index);
// Two classes by one score [N,1]: class 1 where it is greater than `threshold`.
ValueId binary_label(NodeLowering& n, const ClassLabels& labels, ValueId score, double threshold);
// The class of the highest score of [N,C].
ValueId highest_label(NodeLowering& n, const ClassLabels& labels, ValueId scores);

}  // namespace sinter::convert

// The scores of an attention that is written as operations, found upwards from its softmax.
#pragma once

#include <optional>
#include <vector>

#include "converter/passes/editor.h"

namespace sinter::convert {

// ScoreTerm is a mask or a bias of scores: x + bias * factor, Where(mask, x, hidden), or Where(mask, hidden,
// x).
struct ScoreTerm {
  ValueId bias = kAbsent;
  double factor = 1;
  ValueId mask = kAbsent, hidden = kAbsent;  // hidden is a constant of one number
  bool mask_hides = false;
};

struct Scores {
  ValueId q = kAbsent, k = kAbsent;
  double scale = 1, cap = 0;     // cap > 0: cap * tanh(score / cap)
  bool k_is_transposed = false;  // k is [B, H, D, N]
  std::vector<ScoreTerm> terms;  // the innermost first
};

// Returns the operands of scores `id`; nullopt: `id` is not scores.
std::optional<Scores> find_scores(Editor& e, ValueId id);

// Returns one bias, inserted before node n, that does what the terms do (those that replace scores add a
// number that leaves nothing of these). kAbsent if none does.
ValueId joined_terms(Editor& e, int n, const Scores& s);

}  // namespace sinter::convert

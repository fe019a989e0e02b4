// Proofs about the rows that one expert of a loop over experts is computed for, and about indices of these
// rows.
#pragma once

#include <vector>

#include "converter/passes/proofs/chosen_experts.h"

namespace sinter::convert {

// ExpertRows are the rows of one expert.
struct ExpertRows {
  int found = -1;  // the NonZero that finds them
  int64_t expert = 0;
  std::vector<int64_t> choice;  // for each place of its operand the place of the TopK that it stands for
  Routes routes;
  ValueId updates = kAbsent;
};

// Returns the one number that all elements of a constant are.
std::optional<double> number_of(Editor& e, ValueId id);

// Returns the rows of one expert whose tokens an index names, with a row of equal numbers for each; nullopt:
// it names something else.
std::optional<ExpertRows> rows_of_tokens(Editor& e, ValueId index);

// Returns what the rows of an index name: the tokens of these rows, or their choices among all.
enum class Names : uint8_t { kNothing, kTokens, kChoices };
Names named_by(Editor& e, ValueId index, const ExpertRows& rows);

}  // namespace sinter::convert

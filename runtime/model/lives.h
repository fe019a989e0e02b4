// Live ranges of a verified program's values, for tools: the verifier finds them while it checks the steps.
#pragma once

#include "runtime/model/verify.h"

namespace sinter::detail {

// Writes the life of each value: the steps in which its bytes must be its own (see Placement), {-1, -1} for
// constants and prepared values.
void find_lives(const fb::Program& program, std::span<Life> lives);

// Returns the life of a placed value: the one that the file states, or `own`, found by find_lives().
inline Life stated_life(const fb::Placement& p, const Life& own) {
  return {p.first_step() != Life::kNever ? p.first_step() : own.first,
          p.last_step() != Life::kNever ? p.last_step() : own.last};
}

}  // namespace sinter::detail

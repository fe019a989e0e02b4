// Fallback steps as the commands show them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

// Returns {program, step, op, name, expected, backend, reason}.
nlohmann::json fallback_json(const FallbackStep& fallback);
// Returns the session's fallback steps in the order of creation.
nlohmann::json fallbacks_json(const HostSession& host);

// Returns "4 of 9 steps fall back: 3 Conv from simd to reference (the kernel needs more workspace than
// planned), 1 ...", with at most a handful of causes, the most frequent first. Empty if no step falls back.
std::string fallbacks_text(const HostSession& host);

// Returns the suffix of a step's line: "[not simd: no simd kernel for this operation]".
std::string fallback_note(const FallbackStep& fallback);

// Prints fallbacks_text() on stderr as a warning.
void warn_of_fallbacks(const HostSession& host);

}  // namespace sinter::convert

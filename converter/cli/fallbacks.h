// Fallback steps, as the commands show them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

// {program, step, op, name, expected, backend, reason}
nlohmann::json fallback_json(const FallbackStep& fallback);
// A list of these, in the order of creation.
nlohmann::json fallbacks_json(const HostSession& host);

// "4 of 9 steps fall back: 3 Conv from simd to reference (the kernel needs more workspace than planned), 1
// ..." The most frequent first, a handful at most. Empty if nothing falls back.
std::string fallbacks_text(const HostSession& host);

// The suffix of a step's line: "[not simd: no simd kernel for this operation]".
std::string fallback_note(const FallbackStep& fallback);

// fallbacks_text() on stderr, as a warning of a command that runs the model.
void warn_of_fallbacks(const HostSession& host);

}  // namespace sinter::convert

// The messages of log.h, as Runner and the C API send them.
#pragma once

#include "sinter/log.h"
#include "sinter/sinter.h"

namespace sinter {

// Returns whether somebody listens.
bool logs();
[[gnu::format(printf, 2, 3)]] void log_message(LogLevel level, const char* format, ...);

// Sends a warning for a step that another backend computes than planned.
void log_fallback(const Model& model, const Fallback& fallback);
// Sends the facts about a session that was created: its plan, and whether that is for another machine.
void log_session(const Session& session, const Requirements& needs);

}  // namespace sinter

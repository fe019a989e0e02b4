// The steps and types of a plan, as JSON and as the text that inspect and explain print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/file_view.h"
#include "converter/cli/host_session.h"

namespace sinter::convert {

// Returns the steps that widen constants when a session is created.
nlohmann::json prepare_json(const FileView& view);
// Returns every step with its operands, memory, multiply-adds, planned kernels, and the session's kernel.
nlohmann::json steps_json(const FileView& view, const HostSession& host);
// Return a line of text for each of these.
std::string prepare_text(const FileView& view);
std::string steps_text(const FileView& view, const HostSession& host);
// Returns "1.24 M multiply-adds" for an entry of steps_json; empty if the step has none.
std::string work_note(const nlohmann::json& step);
// Returns every value's kind, type and shape, and a widened weight's stored form.
nlohmann::json types_json(const FileView& view);
// Returns "float32, stored bfloat16" for an entry of types_json.
std::string type_text(const nlohmann::json& entry);

}  // namespace sinter::convert

// The steps and types of a plan: as JSON, and as the text that inspect and explain print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/file_view.h"
#include "converter/cli/host_session.h"

namespace sinter::convert {

// The steps that widen constants when a session is created.
nlohmann::json prepare_json(const FileView& view);
// Every step with its operands, its memory, its multiply-adds, the kernels planned for it, and the one that
// the session has.
nlohmann::json steps_json(const FileView& view, const HostSession& host);
// "1.24 M multiply-adds", of an entry of steps_json; empty: the step has none.
std::string work_note(const nlohmann::json& step);
// Every value's kind, type and shape; of a widened weight also the stored form.
nlohmann::json types_json(const FileView& view);
// "float32, stored bfloat16", of an entry of types_json.
std::string type_text(const nlohmann::json& entry);

}  // namespace sinter::convert

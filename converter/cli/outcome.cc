#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/terminal.h"

namespace sinter::convert {

void Outcome::give(const nlohmann::json& json, const std::string& text) const {
  if (listener != nullptr) return listener->result(json, text);
  print_json(json);
}

void Outcome::refuse(const CommonOptions& common, const Diagnostics& diagnostics) {
  exit_code = 3;
  if (listener == nullptr) print_messages(diagnostics.to_text(Severity::kWarning));
  if (takes_json(common)) give({{"refused", true}, {"diagnostics", diagnostics.to_json()}});
}

}  // namespace sinter::convert

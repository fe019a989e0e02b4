#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/terminal.h"

namespace sinter::convert {

void Outcome::give(const nlohmann::json& json, const std::string& text) const {
  if (listener != nullptr) return listener->result(json, text);
  nlohmann::json all = json;
  if (exit_code != 0) all["exit_code"] = exit_code;
  print_json(all);
}

void Outcome::refuse(const CommonOptions& common, const Diagnostics& diagnostics) {
  exit_code = 3;
  if (listener == nullptr) print_messages(diagnostics.to_text(Severity::kWarning));
  if (takes_json(common))
    give({{"refused", true}, {"error", "the model is refused"}, {"diagnostics", diagnostics.to_json()}});
}

}  // namespace sinter::convert

#include "converter/cli/flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/nearest_name.h"

namespace sinter::convert {

CLI::Validator one_of(std::vector<std::string> choices) {
  const std::string description = fmt::format("{{{}}}", fmt::join(choices, ","));
  return {[choices = std::move(choices)](std::string& given) {
            if (std::find(choices.begin(), choices.end(), given) != choices.end()) return std::string();
            return fmt::format("'{}' is not a valid value; {}", given, advise_name(choices, given));
          },
          description};
}

}  // namespace sinter::convert

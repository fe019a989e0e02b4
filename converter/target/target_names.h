// The text of targets on the command line: NAME[+FEATURE...], such as x86_64+avx2, or "native".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/target.h"

namespace sinter::convert {

// The name of the machine that converts, with its features (native_target.h).
inline constexpr std::string_view kNativeTarget = "native";

struct NamedTarget {
  const char* name;
  Architecture architecture;
  uint32_t usual_features;  // the features without any +FEATURE
  uint32_t features;        // the features that machines of this kind may have
  int cores;
  const char* description;
};
const std::vector<NamedTarget>& named_targets();

// Returns the target; nothing if `text` is none, with the fault and the possible targets in *fault.
std::optional<Target> parse_target(std::string_view text, std::string* fault);
// Returns the last part of a message about a target or feature that is not one of `names`: the name that was
// probably meant, also by another name of it ("arm64", "nvidia", "X64"), or all names.
std::string advise_target(const std::vector<std::string>& names, std::string_view wanted);
// Returns the text that parse_target reads; usual features are left out, and so is the number of cores.
std::string target_text(const Target& target);
// Returns "avx2, avx512, ...", the features that can be named for the target, or "".
std::string feature_names(const NamedTarget& target);

// Returns this machine's architecture, with the features that its machines usually have.
Target host_target();

}  // namespace sinter::convert

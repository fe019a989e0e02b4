// Targets as written on the command line: NAME[+FEATURE...], such as x86_64+avx2 or aarch64+dotprod, or
// "native".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/target.h"

namespace sinter::convert {

// Stands for the machine that converts, with its features (native_target.h).
inline constexpr std::string_view kNativeTarget = "native";

struct NamedTarget {
  const char* name;
  Architecture architecture;
  uint32_t usual_features;  // without any +FEATURE
  uint32_t features;        // that machines of this kind may have
  int cores;
  const char* description;
};
const std::vector<NamedTarget>& named_targets();

// nullopt: `text` is not a target; *fault states what is wrong with it and what can be given.
std::optional<Target> parse_target(std::string_view text, std::string* fault);
// The last part of a message about a target or feature that is not one of `names`: the one that was probably
// meant, also by another name of it ("arm64", "nvidia", "X64"), or all of them.
std::string advise_target(const std::vector<std::string>& names, std::string_view wanted);
// As parse_target reads it; features are left out where they are the usual ones. Cores are not part of it.
std::string target_text(const Target& target);
// "avx2, avx512, ...": the features that can be named for the target, or "".
std::string feature_names(const NamedTarget& target);

// This machine's architecture, with the features that its machines usually have.
Target host_target();

}  // namespace sinter::convert

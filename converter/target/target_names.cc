#include "converter/target/target_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "converter/diagnostics/nearest_name.h"
#include "converter/target/native_target.h"

namespace sinter::convert {
namespace {

struct NamedFeature {
  const char* name;
  Feature::Bit feature;
  uint32_t implied;
};
// Returns the compute capabilities below one.
constexpr uint32_t before(Feature::Bit capability) { return capability - Feature::kSm75; }

constexpr NamedFeature kFeatures[] = {
    {"avx2", Feature::kAvx2, 0},
    {"avx512", Feature::kAvx512, Feature::kAvx2},
    {"avx512vnni", Feature::kAvx512Vnni, Feature::kAvx512 | Feature::kAvx2},
    {"avx512bf16", Feature::kAvx512Bf16, Feature::kAvx512Vnni | Feature::kAvx512 | Feature::kAvx2},
    {"neon", Feature::kNeon, 0},
    {"fp16", Feature::kFp16, Feature::kNeon},
    {"dotprod", Feature::kDotprod, Feature::kNeon},
    {"i8mm", Feature::kI8mm, Feature::kDotprod | Feature::kNeon},
    {"sm75", Feature::kSm75, 0},
    {"sm80", Feature::kSm80, before(Feature::kSm80)},
    {"sm86", Feature::kSm86, before(Feature::kSm86)},
    {"sm87", Feature::kSm87, before(Feature::kSm87)},
    {"sm89", Feature::kSm89, before(Feature::kSm89)},
    {"sm90", Feature::kSm90, before(Feature::kSm90)},
    {"sm100", Feature::kSm100, before(Feature::kSm100)},
    {"sm120", Feature::kSm120, before(Feature::kSm120)},
};
constexpr uint32_t kUsualX86 = Feature::kAvx2 | Feature::kAvx512 | Feature::kAvx512Vnni,
                   kX86 = kUsualX86 | Feature::kAvx512Bf16,
                   kUsualCuda = Feature::kSm87 | before(Feature::kSm87),
                   kCuda = Feature::kSm120 | before(Feature::kSm120),
                   kArm = Feature::kNeon | Feature::kFp16 | Feature::kDotprod | Feature::kI8mm;

// Other names of targets and features, in small letters and without the signs between them.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"arm64", "aarch64"},       {"armv8", "aarch64"},
    {"armv8a", "aarch64"},      {"arm64v8a", "aarch64"},
    {"armv9", "aarch64"},       {"cortexa", "aarch64"},
    {"raspberrypi", "aarch64"}, {"arm", "armv7"},
    {"arm32", "armv7"},         {"armhf", "armv7"},
    {"armel", "armv7"},         {"armv7a", "armv7"},
    {"armv7l", "armv7"},        {"armv7hf", "armv7"},
    {"armeabiv7a", "armv7"},    {"x64", "x86_64"},
    {"amd64", "x86_64"},        {"x86", "x86_64"},
    {"intel", "x86_64"},        {"intel64", "x86_64"},
    {"amd", "x86_64"},          {"em64t", "x86_64"},
    {"pc", "x86_64"},           {"m4", "cortex-m4"},
    {"m7", "cortex-m4"},        {"m33", "cortex-m4"},
    {"m55", "cortex-m4"},       {"cortexm", "cortex-m4"},
    {"cortexm4f", "cortex-m4"}, {"armv7em", "cortex-m4"},
    {"armv7m", "cortex-m4"},    {"thumb", "cortex-m4"},
    {"mcu", "cortex-m4"},       {"microcontroller", "cortex-m4"},
    {"stm32", "cortex-m4"},     {"gpu", "cuda"},
    {"nvidia", "cuda"},         {"nvidiagpu", "cuda"},
    {"jetson", "cuda"},         {"orin", "cuda"},
    {"tensorrt", "cuda"},       {"sm", "cuda"},
    {"host", "native"},         {"local", "native"},
    {"cpu", "native"},          {"auto", "native"},
    {"here", "native"},         {"any", "portable"},
    {"all", "portable"},        {"generic", "portable"},
    {"reference", "portable"},  {"vnni", "avx512vnni"},
    {"avx512f", "avx512"},      {"bf16", "avx512bf16"},
    {"asimd", "neon"},          {"vfpv4", "neon"},
    {"asimdhp", "fp16"},        {"half", "fp16"},
    {"asimddp", "dotprod"},     {"sdot", "dotprod"},
    {"smmla", "i8mm"}};

// Returns the name in small letters, with nothing but letters and digits.
std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c >= 'A' && c <= 'Z')
      result += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      result += c;
  return result;
}

const NamedTarget& row_of(Architecture architecture) {
  return *std::find_if(named_targets().begin(), named_targets().end(),
                       [&](const NamedTarget& t) { return t.architecture == architecture; });
}

}  // namespace

const std::vector<NamedTarget>& named_targets() {
  static const std::vector<NamedTarget> rows = {
      {"x86_64", Architecture::kX86_64, kUsualX86, kX86, kPlannedCores, "PCs and servers"},
      {"aarch64", Architecture::kAarch64, Feature::kNeon | Feature::kDotprod, kArm, kPlannedCores,
       "64-bit ARM"},
      {"armv7", Architecture::kArmv7, Feature::kNeon, Feature::kNeon, kPlannedCores, "32-bit ARM with NEON"},
      {"cortex-m4", Architecture::kCortexM, 0, 0, 1,
       "microcontrollers, on the reference kernels, one thread"},
      {"cuda", Architecture::kCuda, kUsualCuda, kCuda, kPlannedCores,
       "hosts with an NVIDIA GPU (compute capability 7.5 or later)"},
      {"portable", Architecture::kPortable, kUsualX86, kX86 | kArm, kPlannedCores,
       "any machine, on the reference kernels"},
  };
  return rows;
}

std::string advise_target(const std::vector<std::string>& names, std::string_view wanted) {
  const std::string plain = folded(wanted.substr(0, wanted.find('+')));
  const auto* other = std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                                   [&](const auto& pair) { return plain == pair.first; });
  for (const std::string& name : names)
    if (folded(name) == plain || (other != std::end(kOtherNames) && name == other->second))
      return advise_name(names, name);
  // Names of a kind and a number: "cortex-m33", "cortex-a72", "sm_87", "armv8.2".
  for (const auto& [begin, name] : {std::pair("cortexm", "cortex-m4"),
                                    {"cortexa", "aarch64"},
                                    {"armv8", "aarch64"},
                                    {"stm32", "cortex-m4"},
                                    {"sm", "cuda"}})
    if (plain.starts_with(begin) && std::find(names.begin(), names.end(), name) != names.end())
      return advise_name(names, name);
  return advise_name(names, std::string(wanted));
}

std::optional<Target> parse_target(std::string_view text, std::string* fault) {
  if (text == kNativeTarget) return native_target();
  const size_t end = std::min(text.find('+'), text.size());
  const std::string_view name = text.substr(0, end);
  const auto row = std::find_if(named_targets().begin(), named_targets().end(),
                                [&](const NamedTarget& t) { return name == t.name; });
  if (name == kNativeTarget) {
    *fault = fmt::format("target {} has the features of this machine; give {} alone", name, name);
    return std::nullopt;
  }
  if (row == named_targets().end()) {
    std::vector<std::string> names{std::string(kNativeTarget)};
    for (const NamedTarget& t : named_targets()) names.emplace_back(t.name);
    *fault = fmt::format("this build has no backend for target '{}'; {}", name, advise_target(names, name));
    return std::nullopt;
  }
  Target target{row->architecture, end == text.size() ? row->usual_features : 0, row->cores};
  for (size_t at = end; at < text.size();) {
    const size_t next = std::min(text.find('+', at + 1), text.size());
    const std::string_view feature = text.substr(at + 1, next - at - 1);
    const auto* known = std::find_if(std::begin(kFeatures), std::end(kFeatures),
                                     [&](const NamedFeature& f) { return feature == f.name; });
    if (known == std::end(kFeatures) || (row->features & known->feature) == 0) {
      std::vector<std::string> names;
      for (const NamedFeature& f : kFeatures)
        if ((row->features & f.feature) != 0) names.emplace_back(f.name);
      *fault = fmt::format("target {} has no feature '{}'; {}", row->name, feature,
                           names.empty() ? "give the name alone" : advise_target(names, feature));
      return std::nullopt;
    }
    target.features |= known->feature | known->implied;
    at = next;
  }
  return target;
}

std::string target_text(const Target& target) {
  const NamedTarget& row = row_of(target.architecture);
  std::string text = row.name;
  if (target.features == row.usual_features) return text;
  // Features that another one implies are omitted.
  uint32_t implied = 0;
  for (const NamedFeature& f : kFeatures)
    if (target.has(f.feature)) implied |= f.implied;
  for (const NamedFeature& f : kFeatures)
    if (target.has(f.feature) && (implied & f.feature) == 0) text += fmt::format("+{}", f.name);
  return text;
}

std::string feature_names(const NamedTarget& target) {
  std::string names;
  for (const NamedFeature& f : kFeatures)
    if ((target.features & f.feature) != 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
  return names;
}

Target host_target() {
  const NamedTarget& row = row_of(kHostArchitecture);
  return {row.architecture, row.usual_features, row.cores};
}

}  // namespace sinter::convert

// The phases of quantization, as progress names them, and what each counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace sinter::convert {

struct Phase {
  const char *name, *unit;
  double worth = 0;  // dB that a technique's proposal must gain to be taken
};

namespace phase {
inline constexpr Phase kCalibrating{"calibrating", "samples"};
inline constexpr Phase kRewriting{"trying rewritings", "trials", 0.5};
inline constexpr Phase kWeighingRules{"weighing rules", "trials"};
inline constexpr Phase kRanges{"choosing ranges", "values"};
inline constexpr Phase kWeighingLayers{"weighing layers", "layers"};
inline constexpr Phase kRounding{"rounding weights", "trials", 0.2};
inline constexpr Phase kBiases{"correcting biases", "trials", 0.2};
inline constexpr Phase kLeavingFloat{"choosing operations to keep in float", "trials"};
inline constexpr Phase kRuns{"correcting biases by runs", "trials", 0.2};
inline constexpr Phase kMeasuring{"measuring", "samples", -0.2};
inline constexpr Phase kEvaluating{"evaluating", "samples"};
inline constexpr Phase kMeasuringLayers{"measuring layers", "samples"};
}  // namespace phase

// The phases of every static quantization. Calibrating comes once more where the graph was rewritten, and at
// the end.
inline constexpr const Phase* kPhasesInOrder[] = {
    &phase::kCalibrating,    &phase::kRewriting, &phase::kWeighingRules, &phase::kRanges,
    &phase::kWeighingLayers, &phase::kRounding,  &phase::kBiases,        &phase::kLeavingFloat,
    &phase::kRuns,           &phase::kMeasuring};

// Seconds until a quantization and its phase are done, when it was reported.
struct TimeLeft {
  double seconds = 0, of_phase = 0;
};

// Is called when `done` of `total` units of a phase are done; total -1: unknown. `left`: nullopt, where it is
// not known.
using PhaseProgress =
    std::function<void(const Phase& phase, int64_t done, int64_t total, const std::optional<TimeLeft>& left)>;

}  // namespace sinter::convert

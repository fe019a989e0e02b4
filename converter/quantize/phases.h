// The phases of quantization, as progress names them, and what each counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace sinter::convert {

struct Phase {
  const char *name, *unit;
};

namespace phase {
inline constexpr Phase kCalibrating{"calibrating", "samples"};
inline constexpr Phase kRewriting{"trying rewritings", "trials"};
inline constexpr Phase kWeighingRules{"weighing rules", "trials"};
inline constexpr Phase kRanges{"choosing ranges", "values"};
inline constexpr Phase kWeighingLayers{"weighing layers", "layers"};
inline constexpr Phase kRounding{"rounding weights", "trials"};
inline constexpr Phase kBiases{"correcting biases", "trials"};
inline constexpr Phase kLeavingFloat{"choosing operations to keep in float", "trials"};
inline constexpr Phase kRuns{"correcting biases by runs", "trials"};
inline constexpr Phase kMeasuring{"measuring", "samples"};
inline constexpr Phase kEvaluating{"evaluating", "samples"};
inline constexpr Phase kMeasuringLayers{"measuring layers", "samples"};
}  // namespace phase

// Those of every static quantization. Calibrating comes once more where the graph was rewritten, and at the
// end; the last two may come at any time.
inline constexpr const Phase* kPhasesInOrder[] = {
    &phase::kCalibrating,    &phase::kRewriting, &phase::kWeighingRules, &phase::kRanges,
    &phase::kWeighingLayers, &phase::kRounding,  &phase::kBiases,        &phase::kLeavingFloat,
    &phase::kRuns,           &phase::kMeasuring};

// Seconds until a quantization is done, and those of its phase, when it was reported.
struct TimeLeft {
  double seconds = 0, of_phase = 0;
};

// `done` of `total` of what the phase counts; total -1: unknown. `left`: nothing, where it is not known.
using PhaseProgress =
    std::function<void(const Phase& phase, int64_t done, int64_t total, const std::optional<TimeLeft>& left)>;

}  // namespace sinter::convert

// The phases of quantization, as progress names them: what each counts, and where it usually begins and ends,
// as shares of the time of all of them. Networks differ by a factor of about two in each. An end of 0: not
// every quantization has the phase, or it belongs to another one.
#pragma once

#include <cstdint>
#include <functional>

namespace sinter::convert {

struct Phase {
  const char* name;
  const char* unit;
  double begin, end;
};

namespace phase {
inline constexpr Phase kCalibrating{"calibrating", "samples", 0, 0.07};
inline constexpr Phase kRewriting{"trying rewritings", "samples", 0.1, 0.4};
inline constexpr Phase kWeighingRules{"weighing rules", "samples", 0.3, 0.46};
inline constexpr Phase kWeighingLayers{"weighing layers", "layers", 0, 0};
inline constexpr Phase kRanges{"choosing ranges", "values", 0.5, 0.65};
inline constexpr Phase kRounding{"rounding weights", "samples", 0.65, 0.75};
inline constexpr Phase kBiases{"correcting biases", "samples", 0.75, 0.95};
inline constexpr Phase kLeavingFloat{"choosing operations to keep in float", "samples", 0.95, 0.97};
inline constexpr Phase kRuns{"correcting biases by runs", "samples", 0.97, 0.98};
inline constexpr Phase kMeasuring{"measuring", "samples", 0.98, 1};
inline constexpr Phase kEvaluating{"evaluating", "samples", 0, 0};
inline constexpr Phase kMeasuringLayers{"measuring layers", "samples", 0, 0};
}  // namespace phase

// `done` of `total` of what the phase counts; total -1: unknown.
using PhaseProgress = std::function<void(const Phase& phase, int64_t done, int64_t total)>;

}  // namespace sinter::convert

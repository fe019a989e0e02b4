// What quantization does for accuracy, one object for each technique, in the order in which they are tried.
// Each can be left out (--disable-technique); reports name them.
#pragma once

namespace sinter::convert {

struct Technique {
  const char *name, *description;
};

namespace technique {
inline constexpr Technique kEqualize{
    "equalize", "rescale channels between products so that all of them use the steps that they share"};
inline constexpr Technique kDepthwiseScales{
    "depthwise-scales", "rescale channels in front of depthwise convolutions, where that is free"};
inline constexpr Technique kSmooth{"smooth",
                                   "move outlier channels into the weights of the products that read them"};
inline constexpr Technique kFunctionRanges{
    "function-ranges", "cut ranges to where the functions that read a value are not flat"};
inline constexpr Technique kMeasuredRanges{
    "measured-ranges",
    "of several ranges for a value, take the one that adds the smallest noise to the outputs"};
inline constexpr Technique kWeightSteps{
    "weight-steps", "cut single large weights that the inputs hardly use, where that makes finer steps"};
inline constexpr Technique kAdaptiveRounding{
    "adaptive-rounding", "round weights up or down so that they make up for each other's errors"};
inline constexpr Technique kBiasCorrection{"bias-correction",
                                           "take back what rounding shifts the means of channels by"};
inline constexpr Technique kWideActivations{
    "wide-activations", "give 16 bits to values that cost the outputs most, where time or flags allow"};
inline constexpr Technique kLeaveFloat{"leave-float",
                                       "keep in float what costs the outputs most and time little"};
inline constexpr Technique kRefit{
    "refit", "estimate ranges and roundings from the judges, too, once these have judged"};
}  // namespace technique

inline constexpr const Technique* kTechniques[] = {&technique::kEqualize,
                                                   &technique::kDepthwiseScales,
                                                   &technique::kSmooth,
                                                   &technique::kFunctionRanges,
                                                   &technique::kMeasuredRanges,
                                                   &technique::kWeightSteps,
                                                   &technique::kAdaptiveRounding,
                                                   &technique::kBiasCorrection,
                                                   &technique::kWideActivations,
                                                   &technique::kLeaveFloat,
                                                   &technique::kRefit};

}  // namespace sinter::convert

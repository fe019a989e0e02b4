// What quantization does for accuracy, one object for each technique, in the order in which they are tried.
// Each can be left out (--disable-technique); reports name them.
#pragma once

namespace sinter::convert {

struct Technique {
  const char *name, *description;
};

namespace technique {
inline constexpr Technique kEqualize{
    "equalize", "rescale channels between products so that all of them use their common steps"};
inline constexpr Technique kDepthwiseScales{
    "depthwise-scales", "rescale channels before depthwise convolutions, where that is free"};
inline constexpr Technique kSmooth{"smooth",
                                   "move outlier channels into the weights of the products that read them"};
inline constexpr Technique kFunctionRanges{"function-ranges",
                                           "clip ranges where the functions that read a value become flat"};
inline constexpr Technique kMeasuredRanges{
    "measured-ranges",
    "choose, of several ranges for a value, the one with the smallest noise at the outputs"};
inline constexpr Technique kWeightSteps{
    "weight-steps", "clip single large weights that the inputs hardly use, where that makes the steps finer"};
inline constexpr Technique kAdaptiveRounding{"adaptive-rounding",
                                             "round weights up or down so that their errors cancel"};
inline constexpr Technique kBiasCorrection{"bias-correction",
                                           "correct the shift that rounding causes in the means of channels"};
inline constexpr Technique kWideActivations{
    "wide-activations",
    "give 16 bits to the values that add most noise to the outputs, where time or flags allow"};
inline constexpr Technique kLeaveFloat{
    "leave-float", "keep in float the operations that add most noise to the outputs and take little time"};
inline constexpr Technique kRefit{
    "refit", "estimate ranges and roundings again from all samples, including those held out"};
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

// The function codes that attributes of ops.def hold. The numbers are written into files.
#pragma once

namespace sinter {

enum class RoundFn { kNearestEven = 0, kFloor = 1, kCeil = 2 };
enum class TrigFn { kSin = 0, kCos, kTan, kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh, kAcosh, kAtanh };
enum ClassifyBit { kClassifyNan = 1, kClassifyPositiveInf = 2, kClassifyNegativeInf = 4 };
enum class CompareFn { kEqual = 0, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };
// A shift by the width or more, or by a negative count, gives 0 (the arithmetic right shift of a negative
// number: -1).
enum class BitwiseFn { kAnd = 0, kOr, kXor, kShiftLeft, kShiftRight };
enum class ReduceFn { kSum = 0, kMean, kMax, kMin, kProd, kSumSquare, kL1, kLogSumExp };
enum class ArgReduceFn { kMax = 0, kMin };
enum class CumulateFn { kSum = 0, kProd };
enum class ResizeMode { kNearest = 0, kLinear, kCubic };
enum class ResizeCoordinates {
  kHalfPixel = 0,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
  kTfHalfPixelForNearest,
};
enum class NearestMode { kRoundPreferFloor = 0, kRoundPreferCeil, kFloor, kCeil };
enum class SampleMode { kLinear = 0, kNearest, kCubic };
enum class SamplePadding { kZeros = 0, kBorder, kReflection };
enum class RoiAlignMode { kAverage = 0, kMax };
enum class PadMode { kConstant = 0, kReflect, kEdge, kWrap };
enum class ScatterReduction { kNone = 0, kAdd, kMul, kMax, kMin };
// The effect of Attention's bias.
enum class AttentionRule {
  // A key whose bias is -inf has no weight, whatever its score; a query without any other key gives zeros.
  kHides = 0,
  // The bias is added to the score; softmax is as written, NaN where only -inf is left.
  kAdds,
  // A bias other than 0 takes the score's place; softmax is as written.
  kReplaces,
  // Like kAdds, but a query whose weights are NaN gives zeros.
  kAddsNanToZero,
};
// The step of LinearAttention's state S for one token: kGated and kGatedDelta begin with S = exp(decay) S;
// then S = S + k v' by kLinear and kGated, S = S + beta k (v - S' k)' by kDelta and kGatedDelta.
enum class LinearAttentionRule { kLinear = 0, kGated, kDelta, kGatedDelta };
// The rule by which CheckLength compares `found` with `limit`.
enum class LengthRule {
  kMeet = 0,  // equal: both are lengths of one axis
  kElements,  // equal: a new shape has as many elements
  kWithin,    // 0 to limit: a part of an axis
  kPlanned,   // 0 to limit: the room of the plan
  kPart,      // equal: the elements from a start on, `length` of them
  kUnfit,     // none: fails every run that comes to it
};
enum class RnnDirection { kForward = 0, kReverse, kBidirectional };
enum class RnnActivation {
  kSigmoid = 0,
  kTanh,
  kRelu,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
};

}  // namespace sinter

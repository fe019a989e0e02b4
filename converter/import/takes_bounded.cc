// The ONNX operators whose rules follow bounded operands.
#include <set>

#include "converter/import/bounded.h"

namespace sinter::convert {

bool takes_bounded(std::string_view domain, std::string_view op_type) {
  static const std::set<std::string_view> kNames = {
      // Element by element.
      "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd",
      "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh",
      "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid",
      "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean",
      "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu",
      "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish",
      "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor", "BatchNormalization",
      // Shapes and movement.
      "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "NonZero", "OneHot",
      "Pad", "Reshape", "Scatter", "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "Split",
      "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze",
      // Reductions.
      "ArgMax", "ArgMin", "CumSum", "CumProd", "LogSoftmax", "ReduceL1", "ReduceL2", "ReduceLogSum",
      "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
      "Softmax", "LayerNormalization", "RMSNormalization",
      // Products, and what is computed image by image.
      "Conv", "ConvTranspose", "Gemm", "MatMul", "MaxPool", "AveragePool", "GlobalAveragePool",
      "GlobalMaxPool", "GridSample", "Resize", "Upsample", "RoiAlign", "NonMaxSuppression", "QuantizeLinear",
      "DequantizeLinear", "LSTM", "GRU", "RNN", "Unique",
      // Lengths as numbers.
      "ConstantOfShape", "Range", "If", "Loop",
      // Sequences.
      "SequenceAt", "SequenceConstruct", "SequenceErase", "SequenceInsert", "SplitToSequence",
      "ConcatFromSequence"};
  static const std::set<std::string_view> kMicrosoftNames = {"BiasAdd",
                                                             "BiasGelu",
                                                             "BiasSplitGelu",
                                                             "DequantizeLinear",
                                                             "ExpandDims",
                                                             "FastGelu",
                                                             "FusedConv",
                                                             "FusedGemm",
                                                             "FusedMatMul",
                                                             "FusedMatMulActivation",
                                                             "GatherND",
                                                             "Gelu",
                                                             "GridSample",
                                                             "LayerNormalization",
                                                             "MatMulNBits",
                                                             "QuantizeLinear",
                                                             "QuickGelu",
                                                             "SimplifiedLayerNormalization",
                                                             "SkipLayerNormalization",
                                                             "SkipSimplifiedLayerNormalization",
                                                             "TransposeMatMul",
                                                             "Unique"};
  if (domain == kMicrosoft) return kMicrosoftNames.count(op_type) != 0;
  return domain.empty() && kNames.count(op_type) != 0;
}

}  // namespace sinter::convert

#include "converter/types/operand_rules.h"

#include <map>
#include <utility>

namespace sinter::convert {
namespace {

constexpr OperandRules kRules[] = {
    // one element at a time
    {"Add", "N N"},
    {"Sub", "N N"},
    {"Mul", "N N"},
    {"Div", "N N", "", false, true},
    {"Mod", "N N"},
    {"Min", "N+"},
    {"Max", "N+"},
    {"Sum", "N+"},
    {"Mean", "F+"},
    {"PRelu", "N N"},
    {"Equal", "A A"},
    {"Less", "N N"},
    {"LessOrEqual", "N N"},
    {"Greater", "N N"},
    {"GreaterOrEqual", "N N"},
    {"And", "b b"},
    {"Or", "b b"},
    {"Xor", "b b"},
    {"Not", "b"},
    {"BitwiseAnd", "I I"},
    {"BitwiseOr", "I I"},
    {"BitwiseXor", "I I"},
    {"BitShift", "I n"},
    {"BitwiseNot", "I"},
    {"Where", "b A A"},
    {"Clip", "N N N"},
    {"Abs", "N"},
    {"Neg", "N"},
    {"Sign", "N"},
    {"Relu", "N"},
    {"Sqrt", "F"},
    {"Exp", "F"},
    {"Log", "F"},
    {"Erf", "F"},
    {"Reciprocal", "F"},
    {"Sin", "F"},
    {"Cos", "F"},
    {"Tan", "F"},
    {"Asin", "F"},
    {"Acos", "F"},
    {"Atan", "F"},
    {"Sinh", "F"},
    {"Cosh", "F"},
    {"Asinh", "F"},
    {"Acosh", "F"},
    {"Atanh", "F"},
    {"Sigmoid", "F"},
    {"Tanh", "F"},
    {"Softmax", "F"},
    {"LogSoftmax", "F"},
    {"Hardmax", "F"},
    {"Softplus", "F"},
    {"Softsign", "F"},
    {"HardSigmoid", "F"},
    {"HardSwish", "F"},
    {"Elu", "F"},
    {"Celu", "F"},
    {"Selu", "F"},
    {"Gelu", "F"},
    {"Mish", "F"},
    {"Swish", "F"},
    {"LeakyRelu", "F"},
    {"ThresholdedRelu", "F"},
    {"Shrink", "N"},
    // products
    {"MatMul", "N N", "", true},
    {"Gemm", "N N N", "", true},
    {"Einsum", "N+"},
    {"Conv", "F F F", "", true},
    {"ConvTranspose", "F F F", "", true},
    {"DeformConv", "F F F F F", "", true},
    {"LSTM", "F F F F i F F F", "", true},
    {"GRU", "F F F F i F", "", true},
    {"RNN", "F F F F i F", "", true},
    {"FusedMatMul", "F F", "com.microsoft", true},
    {"FusedGemm", "F F F", "com.microsoft", true},
    {"FusedConv", "F F F F", "com.microsoft", true},
    {"BiasGelu", "F F", "com.microsoft"},
    {"FastGelu", "F F", "com.microsoft"},
    {"Gelu", "F", "com.microsoft"},
    {"QuickGelu", "F", "com.microsoft"},
    // along axes
    {"ReduceSum", "N i"},
    {"ReduceMean", "N i"},
    {"ReduceMax", "* i"},
    {"ReduceMin", "* i"},
    {"ReduceProd", "N i"},
    {"ReduceL1", "N i"},
    {"ReduceL2", "N i"},
    {"ReduceLogSum", "N i"},
    {"ReduceLogSumExp", "N i"},
    {"ReduceSumSquare", "N i"},
    {"ArgMax", "N"},
    {"ArgMin", "N"},
    {"CumSum", "N i"},
    {"CumProd", "N i"},
    {"TopK", "N i"},
    {"InstanceNormalization", "F f f"},
    {"LRN", "F"},
    {"LpNormalization", "F"},
    {"MeanVarianceNormalization", "F"},
    {"BatchNormalization", "F * * * *"},
    {"AveragePool", "F"},
    {"GlobalAveragePool", "F"},
    {"LpPool", "F"},
    {"GlobalLpPool", "F"},
    {"MaxPool", "N"},
    {"GlobalMaxPool", "N"},
    {"RoiAlign", "F F i"},
    {"MaxRoiPool", "F F"},
    // elements elsewhere
    {"Concat", "A+"},
    {"Gather", "* i"},
    {"GatherElements", "* i"},
    {"GatherND", "* i"},
    {"Scatter", "A i A"},
    {"ScatterElements", "A i A"},
    {"ScatterND", "A i A"},
    {"TensorScatter", "A a i"},
    {"Slice", "* i i i i"},
    {"Split", "* i"},
    {"Pad", "* i * i"},
    {"Tile", "* i"},
    {"Expand", "* i"},
    {"Reshape", "* i"},
    {"Squeeze", "* i"},
    {"Unsqueeze", "* i"},
    {"Trilu", "* i"},
    {"Compress", "* b"},
    {"ReverseSequence", "* i"},
    {"ConstantOfShape", "i"},
    {"Range", "N N N"},
    {"OneHot", "* * *"},
    {"Upsample", "N *"},
    {"Resize", "N * * i"},
    {"CenterCropPad", "* i"},
    {"Col2Im", "N i i"},
};

}  // namespace

const OperandRules* operand_rules(std::string_view domain, std::string_view op_type) {
  static const auto index = [] {
    std::map<std::pair<std::string_view, std::string_view>, const OperandRules*> map;
    for (const OperandRules& r : kRules) map.emplace(std::pair(r.domain, r.op), &r);
    return map;
  }();
  const auto it = index.find({domain, op_type});
  return it == index.end() ? nullptr : it->second;
}

char operand_word(const OperandRules& rules, size_t i) {
  const std::string_view words = rules.operands;
  if (2 * i < words.size()) return words[2 * i] == '+' ? words[0] : words[2 * i];
  return words.back() == '+' ? words[words.size() - 2] : '*';
}

}  // namespace sinter::convert

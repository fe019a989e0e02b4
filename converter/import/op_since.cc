#include "converter/import/op_since.h"

#include <unordered_map>

namespace sinter::convert {
namespace {

struct Row {
  int version;
  std::string_view ops;  // each between two spaces
};
// clang-format off
constexpr Row kRows[] = {
    {7, " Acos Asin Atan Cos Multinomial Sin Tan "},
    {8, " Expand Scan "},
    {9, " Acosh Asinh Atanh Compress ConstantOfShape Cosh Erf EyeLike IsNaN MaxUnpool NonZero OneHot Scatter Shrink Sign Sinh TfIdfVectorizer Where "},
    {10, " ConvInteger DequantizeLinear IsInf MatMulInteger Mod NonMaxSuppression QLinearConv QLinearMatMul QuantizeLinear Resize ReverseSequence RoiAlign StringNormalizer "},
    {11, " BitShift ConcatFromSequence CumSum Det DynamicQuantizeLinear GatherElements GatherND Range Round ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence Unique "},
    {12, " Celu Einsum GreaterOrEqual LessOrEqual "},
    {14, " HardSwish Trilu "},
    {15, " CastLike "},
    {16, " GridSample "},
    {17, " BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT "},
    {18, " BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im GroupNormalization Mish "},
    {19, " DeformConv "},
    {20, " AffineGrid Gelu "},
    {23, " Attention RMSNormalization RotaryEmbedding "},
    {24, " Swish TensorScatter "},
    {26, " BitCast CumProd "},
    {27, " CausalConvWithState LinearAttention "},
    {28, " SwiGLU "},
};
// clang-format on

}  // namespace

int op_since(std::string_view domain, std::string_view op_type) {
  static const std::unordered_map<std::string_view, int> versions = [] {
    std::unordered_map<std::string_view, int> all;
    for (const Row& row : kRows)
      for (size_t at = 1; at < row.ops.size();) {
        const size_t end = row.ops.find(' ', at);
        all.emplace(row.ops.substr(at, end - at), row.version);
        at = end + 1;
      }
    return all;
  }();
  if (!domain.empty()) return 1;
  const auto found = versions.find(op_type);
  return found == versions.end() ? 1 : found->second;
}

}  // namespace sinter::convert

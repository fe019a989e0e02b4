// LSTM, GRU and RNN: the device's operations take ONNX's weights as they are.
#include <algorithm>
#include <array>
#include <cctype>

#include "converter/import/lowering.h"

namespace sinter::convert {
namespace {

std::optional<RnnActivation> activation(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::pair<std::string_view, RnnActivation> kNames[] = {
      {"sigmoid", RnnActivation::kSigmoid},
      {"tanh", RnnActivation::kTanh},
      {"relu", RnnActivation::kRelu},
      {"affine", RnnActivation::kAffine},
      {"leakyrelu", RnnActivation::kLeakyRelu},
      {"thresholdedrelu", RnnActivation::kThresholdedRelu},
      {"scaledtanh", RnnActivation::kScaledTanh},
      {"hardsigmoid", RnnActivation::kHardSigmoid},
      {"elu", RnnActivation::kElu},
      {"softsign", RnnActivation::kSoftsign},
      {"softplus", RnnActivation::kSoftplus}};
  for (const auto& [known, code] : kNames)
    if (known == name) return code;
  return std::nullopt;
}

// The attributes that all three have.
template <class A>
bool read_common(NodeLowering& n, A* a) {
  a->hidden_size = n.attr_int("hidden_size", n.rank(n.input(2)) == 3 ? n.dims(n.input(2))[2] : 0);
  const auto direction = n.attr_choice<RnnDirection>("direction", "forward",
                                                     {{"forward", RnnDirection::kForward},
                                                      {"reverse", RnnDirection::kReverse},
                                                      {"bidirectional", RnnDirection::kBidirectional}});
  if (!direction) return false;
  a->direction = static_cast<int64_t>(*direction);
  for (const std::string& name : n.attr_strings("activations")) {
    const auto code = activation(name);
    if (!code || !a->activations.push(static_cast<int64_t>(*code)))
      return n.refuse("activation '{}' is not known", name);
  }
  const std::vector<double> alpha = n.attr_floats("activation_alpha"),
                            beta = n.attr_floats("activation_beta");
  a->alpha = FloatList(std::span<const double>(alpha)), a->beta = FloatList(std::span<const double>(beta));
  a->clip = n.attr_float("clip", 0);
  a->layout = n.attr_int("layout", 0);
  n.ignore_attr("output_sequence");  // opset 1
  return true;
}

// Operands in their order, the lengths as int32.
std::vector<ValueId> operands(NodeLowering& n) {
  std::vector<ValueId> list;
  for (size_t i = 0; i < n.input_count(); ++i) {
    const ValueId v = n.input(i);
    list.push_back(i == 4 ? n.cast(v, DType::kInt32) : v);
  }
  return list;
}

template <class A>
bool finish(NodeLowering& n, const A& a, size_t most_outputs, const std::vector<ValueId>& inputs) {
  std::vector<bool> wanted;
  bool any = false;
  for (size_t i = 0; i < std::min(n.output_count(), most_outputs); ++i) {
    wanted.push_back(n.wants_output(i));
    any |= wanted.back();
  }
  if (!any) return n.refuse("none of its outputs is used");
  const std::vector<ValueId> results = n.emit_many(a, inputs, wanted);
  bool good = true;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) good &= n.output(i, results[i]);
  return good;
}

bool lower_lstm(NodeLowering& n) {
  LstmAttrs a;
  if (!read_common(n, &a)) return false;
  a.input_forget = n.attr_int("input_forget", 0);
  return finish(n, a, 3, operands(n));
}

bool lower_gru(NodeLowering& n) {
  GruAttrs a;
  if (!read_common(n, &a)) return false;
  a.linear_before_reset = n.attr_int("linear_before_reset", 0);
  return finish(n, a, 2, operands(n));
}

bool lower_rnn(NodeLowering& n) {
  RnnAttrs a;
  return read_common(n, &a) && finish(n, a, 2, operands(n));
}

// com.microsoft: LSTM with weights [directions, columns, rows] in 8 bits, behind its operands their scales
// and zero points, for each direction or for each of its rows. onnxruntime rounds x and h to 8 bits at every
// step; here they are kept in float.
bool lower_dynamic_quantize_lstm(NodeLowering& n) {
  if (n.input_count() < 12 || !n.has_input(1) || !n.has_input(2) || n.rank(n.input(1)) != 3 ||
      n.rank(n.input(2)) != 3)
    return n.refuse("needs twelve inputs");
  LstmAttrs a;
  if (!read_common(n, &a)) return false;
  a.hidden_size = n.attr_int("hidden_size", n.dims(n.input(2))[1]);
  a.input_forget = n.attr_int("input_forget", 0);
  std::vector<ValueId> list;
  const DType t = n.dtype(n.input(0));
  for (size_t i = 0; i < 8; ++i) {
    ValueId v = n.input(i);
    if (i == 1 || i == 2) {
      const size_t scale = i == 1 ? 8 : 10;
      const auto shaped = [&](ValueId p) {
        if (p < 0) return p;
        const Dims d = n.dims(p);
        return n.cast(n.reshape(p, {d.empty() ? 1 : d[0], 1, d.size() > 1 ? d[1] : 1}), DType::kFloat32);
      };
      v = n.cast(v, DType::kFloat32);
      if (n.has_input(scale + 1)) v = n.sub(v, shaped(n.input(scale + 1)));
      if (!n.has_input(scale)) return n.refuse("needs scales of its weights");
      v = n.cast(n.transpose(n.mul(v, shaped(n.input(scale))), {0, 2, 1}), t);
    }
    list.push_back(i == 4 ? n.cast(v, DType::kInt32) : v);
  }
  return finish(n, a, 3, list);
}

}  // namespace

std::span<const OnnxOperator> recurrent_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"LSTM", 1, lower_lstm, "F F F F i F F F", kTakesBounded | kSumsProducts},
      {"GRU", 1, lower_gru, "F F F F i F", kTakesBounded | kSumsProducts},
      {"RNN", 1, lower_rnn, "F F F F i F", kTakesBounded | kSumsProducts},
      {"DynamicQuantizeLSTM", 1, lower_dynamic_quantize_lstm, "F * * f i f f f", kNoTraits, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert

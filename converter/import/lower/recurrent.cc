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
  const std::string direction = n.attr_string("direction", "forward");
  if (direction == "forward")
    a->direction = static_cast<int64_t>(RnnDirection::kForward);
  else if (direction == "reverse")
    a->direction = static_cast<int64_t>(RnnDirection::kReverse);
  else if (direction == "bidirectional")
    a->direction = static_cast<int64_t>(RnnDirection::kBidirectional);
  else
    return n.refuse("direction '{}' is not known", direction);
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

// Operands in their order, the lengths as int32 and everything else in X's type.
std::vector<ValueId> operands(NodeLowering& n) {
  std::vector<ValueId> list;
  for (size_t i = 0; i < n.input_count(); ++i) {
    const ValueId v = n.input(i);
    list.push_back(v == kAbsent ? v : n.cast(v, i == 4 ? DType::kInt32 : n.dtype(n.input(0))));
  }
  return list;
}

template <class A>
bool finish(NodeLowering& n, const A& a, size_t most_outputs) {
  std::vector<bool> wanted;
  bool any = false;
  for (size_t i = 0; i < std::min(n.output_count(), most_outputs); ++i) {
    wanted.push_back(n.wants_output(i));
    any |= wanted.back();
  }
  if (!any) return n.refuse("none of its outputs is used");
  const std::vector<ValueId> results = n.emit_many(a, operands(n), wanted);
  bool good = true;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) good &= n.output(i, results[i]);
  return good;
}

bool lower_lstm(NodeLowering& n) {
  LstmAttrs a;
  if (!read_common(n, &a)) return false;
  a.input_forget = n.attr_int("input_forget", 0);
  return finish(n, a, 3);
}

bool lower_gru(NodeLowering& n) {
  GruAttrs a;
  if (!read_common(n, &a)) return false;
  a.linear_before_reset = n.attr_int("linear_before_reset", 0);
  return finish(n, a, 2);
}

bool lower_rnn(NodeLowering& n) {
  RnnAttrs a;
  return read_common(n, &a) && finish(n, a, 2);
}

constexpr LowerRule kRules[] = {{"LSTM", lower_lstm}, {"GRU", lower_gru}, {"RNN", lower_rnn}};

}  // namespace

std::span<const LowerRule> recurrent_rules() { return kRules; }

}  // namespace sinter::convert

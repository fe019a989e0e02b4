// Rows of recurrent layers, whose operands are ONNX's.
#include "converter/export/rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

template <class Attrs>
OnnxNode write_recurrent(NodeExport& n, const char* op, const Attrs& a) {
  constexpr const char* kDirections[] = {"forward", "reverse", "bidirectional"};
  constexpr const char* kActivations[] = {
      "Sigmoid",    "Tanh",        "Relu", "Affine",   "LeakyRelu", "ThresholdedRelu",
      "ScaledTanh", "HardSigmoid", "Elu",  "Softsign", "Softplus"};
  std::vector<std::string> inputs, outputs, activations;
  for (size_t i = 0; i < n.node().inputs.size(); ++i)
    inputs.push_back(i == 4 && n.has(i) && n.dtype(i) != DType::kInt32 ? n.cast(n.in(i), DType::kInt32)
                                                                       : n.in(i));
  for (size_t i = 0; i < n.node().outputs.size(); ++i) outputs.push_back(n.out(i));
  OnnxNode node = n.add(op, inputs, outputs);
  node.set("hidden_size", a.hidden_size).set("direction", std::string(kDirections[a.direction]));
  for (const int64_t code : a.activations) activations.emplace_back(kActivations[code]);
  if (!activations.empty()) node.set("activations", activations);
  if (!a.alpha.empty()) node.set_floats("activation_alpha", a.alpha);
  if (!a.beta.empty()) node.set_floats("activation_beta", a.beta);
  if (a.clip != 0) node.set_float("clip", a.clip);
  if (a.layout != 0) node.set("layout", a.layout);
  return node;
}

}  // namespace

bool write_row(NodeExport& n, const LstmAttrs& a) {
  OnnxNode node = write_recurrent(n, "LSTM", a);
  if (a.input_forget != 0) node.set("input_forget", a.input_forget);
  return true;
}

bool write_row(NodeExport& n, const GruAttrs& a) {
  OnnxNode node = write_recurrent(n, "GRU", a);
  if (a.linear_before_reset != 0) node.set("linear_before_reset", a.linear_before_reset);
  return true;
}

bool write_row(NodeExport& n, const RnnAttrs& a) {
  write_recurrent(n, "RNN", a);
  return true;
}

}  // namespace sinter::convert

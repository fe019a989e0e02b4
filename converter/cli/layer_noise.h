// Layer by layer, how far a .sinter file's values are from the exact ones, and what each layer adds to that.
//
// Values are matched by the ONNX names that files keep: a fused step gives the last of the values that it
// replaces, so equal names mean equal values. The file runs twice on every sample. The second time every
// result is replaced, right after it was measured, by the exact one (rounded to its own integers): then what
// is measured is what a layer does to exact operands.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/cli/elided_values.h"
#include "converter/cli/host_session.h"
#include "converter/quantize/search/noise.h"

namespace sinter::convert {

// A value as a step gives it.
struct StepValue {
  std::string name, base;      // in the file; of the ONNX value that it represents. Empty: stripped
  std::vector<int64_t> order;  // dim i is axis order[i] of the ONNX value; empty: all in the same order
  std::optional<QuantParams> params;
  DType dtype = DType::kNone;
  bool rescaled = false;  // held with other factors per channel
  bool bounded = false;   // a run decides how much of it is used
};
// The main list that computes an entry, in the default profile.
const fb::Program& program_of(const Model& model, uint32_t entry);
// Of the main list, per step and output.
std::vector<std::vector<StepValue>> step_values(const Model& model, uint32_t entry);
// Whether any value of the entry is known to represent other numbers than it holds.
bool has_quantized_values(const Model& model, uint32_t entry);

// What a rounded value was before its Quantize, within what its integers reach, and the distance of two of
// these.
struct Unrounded {
  ConstantPtr exact;
  double step = 0;
};

// What a reference gives, by ONNX name and with its axes in ONNX's order; quantized values as the numbers
// that they represent.
class ExactLayers {
 public:
  ExactLayers(const Model& model, uint32_t entry);
  // With `integers`, quantized results are replaced by that run's once they are kept: what follows a rounding
  // does not see that it went the other way.
  void run(HostSession& session, const ExactLayers* integers = nullptr);
  // float64; null: there is none. A value of the same name comes first, then the ONNX value that the name
  // ends with, then what was made from that.
  ConstantPtr find(const StepValue& value) const;
  // The same with its axes in the order of the step's result; null also where that is impossible.
  ConstantPtr find_as_held(const StepValue& value) const;
  // As its axes are in the step's result; null: no Quantize made it, or something else came in between.
  std::optional<Unrounded> find_unrounded(const StepValue& value) const;
  // What the run began with as the state of this ONNX input; null: there is none.
  const std::vector<double>* find_state(const std::string& input) const {
    const auto at = states_.find(input);
    return at == states_.end() ? nullptr : &at->second;
  }

 private:
  void keep(const StepValue& value, const TensorView& v);
  void keep_unrounded(uint32_t step, const OpCall& call);
  void replace(const StepValue& value, const TensorView& v) const;
  std::vector<StepValue> inputs_;
  std::vector<std::vector<StepValue>> values_;
  std::vector<std::string> first_operands_;  // their names, by step
  std::map<std::string, Unrounded> unrounded_;
  const ExactLayers* instead_ = nullptr;
  ElidedValues elided_;
  std::map<std::string, ConstantPtr> exact_, derived_;  // under its own name; under that of its base
  std::map<std::string, std::vector<double>> states_;
  std::set<std::string> quantized_,
      integers_;  // that represent other numbers; that do not, or are not known to
};

// Elements by value, in double.
struct LayerPair {
  const std::vector<double>&exact, &rounded;
  DType dtype;  // of the file's value
};

class LayerNoise {
 public:
  struct Row {
    uint32_t step = 0;
    size_t output = 0;
    std::string name, node, op;
    DType dtype = DType::kNone;
    size_t judged = 0;  // index for the caller's own numbers
    NoiseMeter accumulated{0};
    std::optional<NoiseMeter> own;  // none: the layer only moves what it is given
  };
  // Called for every pair of a run.
  using Judge = std::function<void(const Row&, const LayerPair&)>;

  LayerNoise(const Model& model, uint32_t entry);
  // The session's inputs are set; `exact` ran on the same sample. Returns the outputs; the session's state is
  // that after one run. `judge` gets what the first run gives, `own` what steps make of exact operands.
  Arrays run(HostSession& session, const ExactLayers& exact, const Judge& judge, const Judge& own = {});
  // In order of execution.
  std::vector<const Row*> rows() const;

 private:
  void look(uint32_t step, size_t output, Op op, const TensorView& v);
  void give_exact_states(const Session& session) const;
  const Model& model_;
  uint32_t program_;  // of the entry
  std::vector<std::vector<StepValue>> values_;
  ElidedValues elided_;
  std::map<std::pair<uint32_t, size_t>, Row> rows_;
  std::map<std::string, uint32_t> first_;  // step that gave a name first
  const ExactLayers* exact_ = nullptr;
  const Judge *judge_ = nullptr, *own_ = nullptr;
  bool forcing_ = false;
  std::vector<double> x_, y_;
};

}  // namespace sinter::convert

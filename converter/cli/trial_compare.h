// A test of a converted file: every step computes with exact operands, and its result is compared with the
// exact reading of the ONNX model (reference_model.h) on the same inputs.
//
// A result may be as far from it as declared roundings explain. Where a Quantize of the model made the value,
// that is half a step of its scale and kMoreSteps; besides, and elsewhere, it is a share of the largest
// element that the precision of its types sets. If the model itself, computed node for node in its own types,
// loses more at the same place, its loss counts, too.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/cli/host_session.h"
#include "converter/cli/reference_model.h"

namespace sinter::convert {

// The steps by which an integer may be off besides its rounding. A bias may move it by 1/64
// (integer_products.cc), and an int16 intermediate in 128ths of a step by half of one; weights of multiples
// of 2^-11 move an interpolation by a quarter of a step, and 2^-8 is the margin.
inline constexpr double kMoreSteps = 3.0 / 128, kResizeSteps = 0.25 + 1.0 / 256;
// The most bytes of values that the exact reading keeps, and of its constants.
inline constexpr double kMostComparedBytes = 16e6, kMostComparedConstants = 64e6;

struct TrialComparison {
  size_t values = 0;            // the number of compared values
  std::string note;             // why none was compared; most often empty
  std::string step, op, value;  // the first value that differs by more; all empty: none does
  double difference = 0, explained = 0;
  bool in_steps =
      false;  // of the scale; else a share of the largest element, or of integers the unequal ones
  bool differs() const { return !value.empty(); }
  nlohmann::json to_json() const;
};

// The exact reading of a model, in float64, or (`wide` false) in the model's own types.
using OpenReading = std::function<std::unique_ptr<OpenModel>(bool wide)>;

// Runs both from their initial states, and compares. `by_bytes`: the model has --input-type uint8 built in.
TrialComparison compare_steps(const Model& model, HostSession& session, const Arrays& inputs,
                              OpenModel& exact, const OpenReading& open, bool by_bytes);

}  // namespace sinter::convert

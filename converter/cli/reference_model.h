// Models that are compared: a .sinter file, or an ONNX file computed in float64 with the reference kernels.
#pragma once

#include <functional>
#include <memory>

#include "converter/cli/host_session.h"
#include "converter/convert.h"

namespace sinter::convert {

// A file with a session of one of its shape sets on this machine.
class OpenModel {
 public:
  // `entry_of` returns the number of the shape set; empty: the first.
  explicit OpenModel(LoadedModel&& loaded, const std::function<uint32_t(const Model&)>& entry_of = {})
      : loaded_(std::move(loaded)), session_(loaded_, {.entry = entry_of ? entry_of(loaded_.model()) : 0}) {}
  const Model& model() const { return loaded_.model(); }
  HostSession& session() { return session_; }

 private:
  LoadedModel loaded_;
  HostSession session_;
};

// Returns the ONNX model without any pass, its floating-point values in float64, or (`wide` false) in its own
// types; null if it is refused, with the reasons in `diagnostics`.
std::unique_ptr<OpenModel> open_reference(const ImportedModel& onnx, const LoweringOptions& lowering,
                                          Diagnostics& diagnostics, bool wide = true);

// Enters the states of a file, with their initial content, for open_reference().
void take_states(const Model& model, LoweringOptions* lowering);

// Returns the arrays with floating-point ones in float64, as the reference takes them. Throws DataError.
Arrays in_float64(const Arrays& arrays);

}  // namespace sinter::convert

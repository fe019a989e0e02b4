// The first run of a converted file, on synthetic inputs: its steps are compared with the exact reading of
// the ONNX model (trial_compare.h), and NaN and infinity that the model does not produce are found.
//
// The inputs are those of converter/quantize/samples/made_up_inputs.h: floating-point numbers between -1 and
// 1, or in the range of the integers that a Quantize makes of them, bytes from 0 to 255, other integers 0 or
// 1 (all 1, then all 0, where the model refuses these). The file's results are searched for NaN, and its
// outputs for infinity too; a number that is not finite in the exact reading either is the model's own.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/cli/host_session.h"
#include "converter/cli/trial_compare.h"
#include "converter/convert.h"

namespace sinter::convert {

struct TrialRun {
  bool done = false;
  std::string note;         // why it was not done, or which question it left open; most often empty
  uint64_t not_finite = 0;  // elements that are NaN or infinite here and finite in the reference
  std::string output;       // the output that holds them; empty: only values inside the network do
  std::string step, op;     // the first step whose result has one
  TrialComparison comparison;
  nlohmann::json to_json() const;
};

// Returns the time of a run in multiply-adds; steps of the reference kernels count kReferenceFactor times.
double trial_work(const PlannedModel& plan, uint32_t entry);
// The limit of trial_work(), beyond which a run would slow the conversion noticeably. The exact reading is as
// much work, at 1e9 multiply-adds a second; reading, planning and opening a step takes kStepWork.
inline constexpr double kMostTrialWork = 2e8, kStepWork = 5e4;
inline constexpr double kReferenceFactor = 16;

// Runs the file once, and adds a warning to `diagnostics` for a fault. `session` is a session of the file,
// `lowering` the options of its shape set. `not_compared`: why steps are not compared; empty: they are.
TrialRun try_once(const std::filesystem::path& onnx, const LoweringOptions& lowering,
                  const PlannedModel& plan, const Model& model, HostSession& session,
                  const std::string& not_compared, Diagnostics& diagnostics);

}  // namespace sinter::convert

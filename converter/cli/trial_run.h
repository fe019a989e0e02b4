// The first run of a converted file: on synthetic inputs, to find NaN and infinity that the ONNX model does
// not produce.
//
// The inputs are those of converter/quantize/samples/made_up_inputs.h: floating-point numbers between -1 and
// 1, bytes from 0 to 255, other integers 0 or 1 (all 1, then all 0, where the model refuses these). What the
// file gives is searched for NaN, and its outputs for infinity too. Only where one is found is the ONNX model
// computed in float64 on the same inputs: a number that is not finite there either is the model's own.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "converter/cli/host_session.h"
#include "converter/convert.h"

namespace sinter::convert {

struct TrialRun {
  bool done = false;
  std::string note;         // why it was not done, or what it left open; most often empty
  uint64_t not_finite = 0;  // elements that are NaN or infinite here and finite in the reference
  std::string output;       // the output that holds them; empty: only values inside the network do
  std::string step, op;     // the first step whose result has one
  nlohmann::json to_json() const;
};

// Multiply-adds of one run, and what takes as long as these: steps that only the reference kernels compute
// count kReferenceFactor times. `entry`: the number of the shape set.
double trial_work(const PlannedModel& plan, uint32_t entry);
// A longer run is skipped: it would slow the conversion noticeably.
inline constexpr double kMostTrialWork = 2e8;
inline constexpr double kReferenceFactor = 16;

// Files a warning where it finds something. `session` is one of the file, `lowering` what its shape set
// was converted with.
TrialRun try_once(const std::filesystem::path& onnx, const LoweringOptions& lowering,
                  const PlannedModel& plan, const Model& model, HostSession& session,
                  Diagnostics& diagnostics);

}  // namespace sinter::convert

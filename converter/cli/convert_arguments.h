// The arguments of `sinter convert`, as text and numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/cli/commands.h"
#include "converter/cli/data_flags.h"
#include "converter/convert.h"
#include "converter/target/target_names.h"

namespace sinter::convert {

struct ConvertArguments {
  CommonOptions common;
  DataFlags data;
  CustomOpsOption custom_ops;
  ConversionOptions options;  // the flags that are options of the conversion as they are given
  std::vector<std::string> targets = {target_text(host_target())};
  std::string model, out, report, metric = "top1", evaluate_data, weights = "stored", sign, quantize,
                                  activations, calibrate, calibrator, quantize_config, max_drop;
  std::optional<std::string> shape_sets;
  int64_t block = 0;
  std::vector<std::string> backends, shapes, dims, constants, trips, bounds, input_types, output_types;
  std::string stop_after;
  double metric_seconds = 0;  // 0: the limit that Metric has
  int plan_threads = 0;       // 0: the target's usual number of cores
  bool strict = false, pack = false, packed_only = false, no_trial = false, no_winograd = false;
  bool prefer_float16 = false, prefer_bfloat16 = false;
  std::string float64 = "auto";
  std::vector<std::string> keep, states, initial_states, labels, metadata;
  std::string kv_cache;  // empty: not given
  OnnxOutput onnx;       // of commands that write ONNX files
};

// Adds the flags for an ONNX model's shapes and constants, with their descriptions.
void add_shape_flags(CLI::App& command, ConvertArguments& a);

// Adds all flags of `sinter convert`, with their descriptions.
void add_convert_flags(CLI::App& command, ConvertArguments& a);
// Adds those that have a meaning for `sinter quantize`, which writes an ONNX file.
void add_quantize_flags(CLI::App& command, ConvertArguments& a);

}  // namespace sinter::convert

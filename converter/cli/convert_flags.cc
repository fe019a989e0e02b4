// The flags of `sinter convert`.
#include <fmt/format.h>

#include "converter/cli/convert_arguments.h"
#include "converter/convert.h"

namespace sinter::convert {
namespace {

std::string target_help() {
  std::string help;
  for (const NamedTarget& t : named_targets()) {
    const std::string features = feature_names(t);
    help += fmt::format("\n{:>22}  {}{}", t.name, t.description,
                        features.empty() ? "" : fmt::format(" (features: {})", features));
  }
  help += fmt::format("\n{:>22}  {}", kNativeTarget, "this machine, with the features of its processor");
  return help;
}

}  // namespace

void add_convert_flags(CLI::App& command, ConvertArguments& a) {
  command.add_option("model", a.model, "The ONNX file")->required();
  command.add_option("-o,--output", a.out, "The file to write")->required();
  command
      .add_option("--target", a.targets,
                  fmt::format("NAME[+FEATURE...][,...], such as x86_64+avx2: the machine that runs the file. "
                              "The file runs on "
                              "every machine of that architecture; features describe the processor whose "
                              "timings decide between "
                              "kernels, and where --quantize uses integers (those of the first name). "
                              "Several names give a plan "
                              "for each; a session takes the first that fits its machine.{}\nDefault: {}",
                              target_help(), a.targets.front()))
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option(
          "--backends", a.backends,
          "LIST, such as simd or onednn,xnnpack,simd: plan only for these backends of the target, the ones "
          "that the application links; the reference kernels are always included, onednn only if it is named "
          "or "
          "the target is native")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--shape", a.shapes, "INPUT=1,3,224,224: the shape of an input with open dimensions");
  command.add_option("--dim", a.dims, "NAME=N: the size of a named dimension");
  command.add_option(
      "--shapes", a.shape_sets,
      "\"batch=1,seq=16; batch=8,seq=128\": several shapes in one file, which share constants and packed "
      "weights. Each set has the sizes of dimensions by name (as --dim) or the shapes of inputs (as "
      "--shape)");
  command.add_option("--const", a.constants, "NAME=FILE.npy: turns an input into a constant");
  command.add_option("--state", a.states,
                     "OUT=IN: the session keeps this output and begins the next run with it as this input; "
                     "auto: all pairs that the report proposes by their names and shapes");
  command.add_option("--state-init", a.initial_states,
                     "IN=FILE.npy: what the state of this input begins with, instead of zeros");
  command.add_option(
      "--bindable", a.bindable,
      "NAME: plan this input or output so that callers can always bind it to their own memory");
  a.custom_ops.add_to(command);
  command.add_option("--max-trips", a.trips, "NODE=N: the maximum number of iterations of a Loop node");
  command.add_option("--bound", a.bounds,
                     "NODE=N: the maximum of the bounded dimension in the node's results");
  command
      .add_option(
          "--quantize", a.quantize,
          "int8: computes products, and the operations between them, on 8-bit integers, with ranges from "
          "--calibrate's samples. int8x16: the same with 16-bit activations, which are more accurate and "
          "slower. int8w, int4w: weights in 8 bits, or in 4 where that suffices, and activations in float; "
          "needs no samples. The closing table gives the SQNR, and remedies if it is too low")
      ->check(CLI::IsMember({"int8", "int8x16", "int8w", "int4w"}));
  command
      .add_option("--block", a.block,
                  "int8w, int4w: the number of weights that share a scale (default 32), an even number")
      ->check(CLI::Range(16, 65536));
  command.add_option(
      "--calibrate", a.calibrate,
      fmt::format("Samples for --quantize: {}, or cmd:COMMAND that writes them. int8w and int4w are only "
                  "measured with them",
                  kDataFormats));
  a.data.add_to(command);
  command.add_option(
      "--input-type", a.input_type,
      "[INPUT=]uint8: inputs that take a picture get bytes, and (pixel - mean) * scale, the model's own "
      "layout and order of channels are built into the model; --layout is that of the bytes");
  command.add_option("--calibrator", a.calibrator,
                     "How ranges are chosen: best (the smallest expected error), minmax, moving-average, "
                     "percentile[=99.99], entropy or mse");
  command
      .add_option("--samples", a.samples,
                  "Calibrate with N samples, spread evenly over the data (with --state: the first N)")
      ->check(CLI::Range(1, 1 << 30));
  command
      .add_option("--sequence", a.sequence,
                  "With --state: N samples in a row of --calibrate's and --evaluate's data are one sequence, "
                  "which begins with the initial state (default: all of them)")
      ->check(CLI::Range(1, 1 << 30));
  std::string techniques = "Turn off a technique for the accuracy of --quantize:";
  for (const Technique* t : kTechniques) techniques += fmt::format("\n{:>22}  {}", t->name, t->description);
  command
      .add_option("--min-sqnr", a.min_sqnr,
                  "SQNR (signal-to-quantization-noise ratio), in dB, that every output must have (20: "
                  "usable, 30: good, "
                  "40: close to float). As few operations as possible are kept in float for it (exit code 1 "
                  "and no file "
                  "if it cannot be reached). Measured on --calibrate's samples, or on --evaluate's with "
                  "--metric sqnr")
      ->check(CLI::Range(0.0, 200.0));
  command.add_option(
      "--max-drop", a.max_drop,
      "The accuracy that quantization may lose on --evaluate's data, such as 0.5%. As few operations as "
      "possible are kept in float for it (exit code 1 and no file if it cannot be reached)");
  command.add_option(
      "--keep-float", a.keep_float,
      "NODE: keep in float this operation, or the one that computes this value (names: --report FILE.json)");
  command.add_flag(
      "--require-int8", a.require_int8,
      "If operations are kept in float, write no file and list them with their reasons (exit code "
      "1). Where 8 bits are too few, 16-bit activations count as integers and are tried first");
  command.add_flag(
      "--adaptive-rounding", a.adaptive_rounding,
      "Try adaptive rounding of weights without a time limit, instead of only where it takes seconds");
  command.add_flag("--force-int8", a.force_int8,
                   "Use integers even where the cost table expects float to be faster");
  command.add_option("--disable-technique", a.disabled_techniques, techniques);
  command.add_option(
      "--evaluate", a.evaluate_data,
      "Samples, as for --calibrate, to measure the result with: labelled, or unlabelled with --metric sqnr");
  command.add_option(
      "--label", a.label,
      "Where --evaluate's data has the right answers: an array of the .npz, a key of the JSON list, a "
      "column of the CSV list. Sub-folders are labels without it");
  command.add_option(
      "--classes", a.classes,
      "FILE: the names of the classes, one a line in the order of the model's scores, where labels are "
      "names");
  command.add_option(
      "--metric", a.metric,
      "What to measure on --evaluate's data: top1, the share of right answers; top5, the share of answers "
      "that are among the five highest scores; sqnr, the SQNR of every output of a quantized model against "
      "the float one (no --label); cmd:PROGRAM, what a program prints that gets the outputs (docs/data.md)");
  command
      .add_option("--metric-seconds", a.metric_seconds,
                  "The time that the program of --metric may take (default 600)")
      ->check(CLI::Range(0.0, 86400.0));
  command
      .add_option("--weights", a.weights,
                  "stored: weights keep their narrow type (float16, float8, int4 with scales, ...) in the "
                  "file and are "
                  "widened when a session is created (default); widened: the file holds the widened weights")
      ->check(CLI::IsMember({"stored", "widened"}));
  command
      .add_option("--plan-seconds", a.plan_seconds,
                  "Search for a smaller arena for up to S seconds if it may not be minimal (the result may "
                  "then depend on this machine)")
      ->check(CLI::Range(0.0, 86400.0));
  command
      .add_option("--plan-threads", a.plan_threads,
                  "Plan workspaces for sessions of up to N threads (default 8); fewer threads may need less "
                  "memory. Steps with too small a workspace use fewer threads")
      ->check(CLI::Range(1, 1024));
  command
      .add_option(
          "--max-arena", a.max_arena,
          "The maximum BYTES of activations and workspaces: steps that need more are computed in stripes of "
          "rows, some rows twice. If that is not enough, the smallest arena found is reported (exit code 1)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 60));
  command.add_flag(
      "--no-trial", a.no_trial,
      "Skip the trial run on synthetic inputs, which finds NaN and infinity that the model does not produce");
  command.add_flag(
      "--no-winograd", a.no_winograd,
      "Compute every convolution directly: slower, with less memory for weights and smaller errors");
  command.add_flag("--strict", a.strict, "Treat every warning as an error (exit code 1)");
  command
      .add_option(
          "--float64", a.float64,
          "auto: float64 is kept where float32 could lose accuracy; keep: everywhere; narrow: nowhere")
      ->check(CLI::IsMember({"auto", "keep", "narrow"}));
  command.add_option("--keep", a.keep, "TENSOR=TYPE: compute and keep a value in this type");
  command.add_flag(
      "--prefer-float16", a.prefer_float16,
      "Compute in float16 the values that are float16 in the model (all values of a float32 model), "
      "where the target has kernels for it (aarch64, cuda) and the rules of docs/types.md allow it");
  command.add_flag(
      "--prefer-bfloat16", a.prefer_bfloat16,
      "The same in bfloat16, where the target has kernels for it (cuda; x86_64+avx512bf16, by oneDNN)");
  command.add_option("--sign", a.sign, "SECRET: sign the file with this key (sinter keygen)");
  command.add_flag("--strip", a.strip, "Omit the names of values and steps from the file");
  command.add_option("--report", a.report,
                     "FILE.json, .jsonl or .html: a report of every decision of the conversion");
  std::string passes = "Skip a pass:";
  for (const Pass& p : all_passes()) passes += fmt::format("\n{:>22}  {}", p.name, p.description);
  command.add_option("--disable-pass", a.disabled, passes);
  command.add_option("--dump-after", a.dump_after, "Print the graph on stderr after this pass");
  command
      .add_option("--stop-after", a.stop_after,
                  "Run only the first N passes, to find the one that changes a result")
      ->check(CLI::Range(0, 1000));
}

}  // namespace sinter::convert

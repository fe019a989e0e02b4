// sinter convert
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "converter/cli/check_written.h"
#include "converter/cli/commands.h"
#include "converter/cli/device_places.h"
#include "converter/cli/host_session.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/progress.h"
#include "converter/convert.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"
#include "converter/import/arrays.h"
#include "converter/quantize/search/accuracy.h"
#include "converter/report/conversion_report.h"
#include "converter/report/quantize_report.h"
#include "converter/target/target_names.h"
#include "converter/target/target_platforms.h"

namespace sinter::convert {
namespace {

struct ConvertArguments {
  CommonOptions common;
  std::vector<std::string> targets = {target_text(host_target())};
  std::string model, out, report, metric = "top1", evaluate_data, label, weights = "stored", sign, quantize,
                                  calibrate, calibrator, max_drop;
  int64_t samples = -1, block = 0;
  std::optional<double> min_sqnr;
  std::vector<std::string> keep_float, disabled_techniques;
  bool require_int8 = false, force_int8 = false, adaptive_rounding = false;
  std::vector<std::string> backends, shapes, dims, constants, trips, bounds, disabled;
  std::string dump_after;
  int stop_after = -1;
  double plan_seconds = 0;
  int plan_threads = 0;  // as many as the target usually has cores
  std::optional<int64_t> max_arena;
  bool strict = false, strip = false, no_trial = false, no_winograd = false;
  bool prefer_float16 = false, prefer_bfloat16 = false;
  std::string float64 = "auto";
  std::vector<std::string> keep;
};

// "NAME=TEXT" split at the last '=' (names may hold any character).
std::pair<std::string, std::string> split(const std::string& text, const char* flag, const char* form) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw UsageError(fmt::format("{} {}: the argument must have the form {} {}", flag, text, flag, form));
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t number(std::string_view text, const std::string& where) {
  int64_t n = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (fault != std::errc() || end != text.data() + text.size() || n < 0)
    throw UsageError(fmt::format("{}: '{}' is not a valid size; give an integer of at least 0", where, text));
  return n;
}

// Whole-byte types by the names that inspect prints.
DType named_dtype(const std::string& name) {
  for (int t = 1; t < static_cast<int>(DType::kCount); ++t)
    if (byte_width(static_cast<DType>(t)) != 0 && name == dtype_name(static_cast<DType>(t)))
      return static_cast<DType>(t);
  return DType::kNone;
}

// Enters the value that a repeatable flag gives for a name. Given twice it must be the same.
template <class Map>
void enter(Map& map, const char* flag, const std::string& name, typename Map::mapped_type value) {
  const auto [at, fresh] = map.emplace(name, value);
  if (!fresh && at->second != value)
    throw UsageError(fmt::format("{} {} is given twice with different values; give it once", flag, name));
}

LoweringOptions lowering_options(const ConvertArguments& a) {
  LoweringOptions options;
  for (const std::string& item : a.shapes) {
    const auto [name, list] = split(item, "--shape", "INPUT=1,3,224,224");
    Dims dims;
    for (size_t at = 0; at <= list.size();) {
      const size_t comma = std::min(list.find(',', at), list.size());
      dims.push_back(number(std::string_view(list).substr(at, comma - at), "--shape " + item));
      at = comma + 1;
    }
    enter(options.shapes, "--shape", name, dims);
  }
  for (const std::string& item : a.dims) {
    const auto [name, n] = split(item, "--dim", "NAME=N");
    enter(options.dims, "--dim", name, number(n, "--dim " + item));
  }
  std::map<std::string, std::string> constants;
  for (const std::string& item : a.constants) {
    const auto [name, file] = split(item, "--const", "NAME=FILE.npy");
    enter(constants, "--const", name, file);
  }
  for (const auto& [name, file] : constants) options.constants[name] = read_npy(file);
  options.keep_float64 = a.float64 == "keep";
  for (const std::string& item : a.keep) {
    const auto [name, type] = split(item, "--keep", "TENSOR=float32");
    const DType dtype = named_dtype(type);
    if (dtype == DType::kNone)
      throw UsageError(fmt::format(
          "--keep {}: '{}' is not a type; give one such as float32, bfloat16 or int64", item, type));
    enter(options.keep, "--keep", name, dtype);
  }
  for (const std::string& item : a.trips) {
    const auto [name, n] = split(item, "--max-trips", "NODE=N");
    enter(options.max_trips, "--max-trips", name, number(n, "--max-trips " + item));
  }
  for (const std::string& item : a.bounds) {
    const auto [name, n] = split(item, "--bound", "NODE=N");
    enter(options.bounds, "--bound", name, number(n, "--bound " + item));
  }
  return options;
}

// "0.5%" or "0.005".
double fraction(std::string_view text, const char* flag) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double x = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), x);
  if (percent) x /= 100;
  if (fault != std::errc() || end != digits.data() + digits.size() || !(x >= 0 && x <= 1))
    throw UsageError(
        fmt::format("{} {}: this is not a share of the samples; give one such as 0.5% or 0.005", flag, text));
  if (!percent && x >= 0.5)
    throw UsageError(fmt::format("{} {}: that is {:g} % of the samples; write {}% for per cent", flag, text,
                                 100 * x, text));
  return x;
}

// --dump-after and --stop-after mean passes that run.
void check_passes(const ConvertArguments& a) {
  if (a.dump_after.empty()) return;
  if (std::find(a.disabled.begin(), a.disabled.end(), a.dump_after) != a.disabled.end())
    throw UsageError(fmt::format("--dump-after {}: --disable-pass leaves this pass out; give one of the two",
                                 a.dump_after));
  int number = 0;
  for (const Pass& pass : all_passes())
    if (++number > a.stop_after && a.stop_after >= 0 && a.dump_after == pass.name)
      throw UsageError(fmt::format("--dump-after {}: this is pass {}, and --stop-after {} stops before it",
                                   a.dump_after, number, a.stop_after));
}

// For messages: "a, b, c".
template <class List, class Name>
std::string listed(const List& list, const Name& name) {
  std::string text;
  for (const auto& item : list) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(item));
  return text;
}

// Flags that affect a quantization only are refused where they would do nothing.
void check_flags(const ConvertArguments& a) {
  const bool weights_only = a.quantize == "int8w" || a.quantize == "int4w";
  const std::pair<bool, const char*> any[] = {{!a.calibrate.empty(), "--calibrate"},
                                              {a.block != 0, "--block"}};
  const std::pair<bool, const char*> integers[] = {
      {a.min_sqnr.has_value(), "--min-sqnr"},  {!a.max_drop.empty(), "--max-drop"},
      {!a.keep_float.empty(), "--keep-float"}, {!a.disabled_techniques.empty(), "--disable-technique"},
      {a.require_int8, "--require-int8"},      {a.adaptive_rounding, "--adaptive-rounding"},
      {a.force_int8, "--force-int8"}};
  if (a.quantize.empty()) {
    std::vector<std::pair<bool, const char*>> all(std::begin(any), std::end(any));
    all.insert(all.end(), std::begin(integers), std::end(integers));
    for (const auto& [given, flag] : all)
      if (given)
        throw UsageError(
            fmt::format("{} is for --quantize: add --quantize int8 (or int8x16, int8w, int4w)", flag));
    if (!a.calibrator.empty()) throw UsageError("--calibrator is for --quantize int8 and int8x16");
  } else if (weights_only) {
    for (const auto& [given, flag] : integers)
      if (given)
        throw UsageError(
            fmt::format("{} is for --quantize int8 and int8x16: with {} activations are kept in float, and "
                        "the option has no effect",
                        flag, a.quantize));
  }
  if (a.samples >= 0 && a.calibrate.empty())
    throw UsageError("--samples limits the samples of --calibrate, which is missing; add --calibrate DATA");
}

const HalfType* preferred(const ConvertArguments& a) {
  if (a.prefer_float16 && a.prefer_bfloat16)
    throw UsageError(fmt::format("{} and {} exclude each other", kFloat16Half.flag, kBFloat16Half.flag));
  return a.prefer_float16 ? &kFloat16Half : a.prefer_bfloat16 ? &kBFloat16Half : nullptr;
}

void set_quantization(const ConvertArguments& a, ConversionOptions* options) {
  check_flags(a);
  if (a.quantize.empty()) return;
  const bool weights_only = a.quantize == "int8w" || a.quantize == "int4w";
  if (a.calibrate.empty() && !weights_only)
    throw UsageError(
        fmt::format("--quantize {} needs --calibrate DATA: representative inputs as .npz (an array for each "
                    "input, whose first axis counts the samples), a folder of such files, or cmd:COMMAND; "
                    "without samples, --quantize int8w rounds only the weights",
                    a.quantize));
  if (options->prefer != nullptr)
    throw UsageError(fmt::format("--quantize and {} exclude each other", options->prefer->flag));
  if (weights_only && !a.calibrator.empty())
    throw UsageError(
        fmt::format("--calibrator chooses ranges of activations, which are kept in float with --quantize {}; "
                    "--calibrate alone measures the result",
                    a.quantize));
  if (!weights_only && a.block != 0) throw UsageError("--block is for --quantize int8w and int4w");
  if (weights_only && a.weights == "widened")
    throw UsageError(fmt::format("--weights widened would undo --quantize {}", a.quantize));
  if (a.block % 2 != 0) throw UsageError("--block takes an even number");
  if (a.block != 0) options->block = a.block;
  const auto rule = parse_calibrator(a.calibrator.empty() ? "best" : a.calibrator);
  if (!rule)
    throw UsageError(
        fmt::format("--calibrator {}: this is not a rule; the rules are best, minmax, moving-average, "
                    "percentile[=50 to 100], entropy and mse",
                    a.calibrator));
  options->quantize = a.quantize;
  if (a.quantize == "int8x16") options->quantization.activations = DType::kInt16;
  options->require_int8 = a.require_int8;
  options->calibrate = a.calibrate;
  options->samples = a.samples;
  options->quantization.calibrator = *rule;
  options->quantization.runner.backends = options->backends;
  options->quantization.min_sqnr = a.min_sqnr;
  options->quantization.force_int8 = a.force_int8;
  options->quantization.keep_float = a.keep_float;
  options->quantization.disabled = a.disabled_techniques;
  options->quantization.adaptive_rounding = a.adaptive_rounding;
  for (const std::string& name : a.disabled_techniques) {
    const std::span all = kTechniques;
    if (std::none_of(all.begin(), all.end(), [&](const Technique* t) { return name == t->name; }))
      throw UsageError(fmt::format("--disable-technique {}: this is not a technique; the techniques are {}",
                                   name, listed(all, [](const Technique* t) { return t->name; })));
  }
  options->evaluate = a.evaluate_data, options->label = a.label;
  if (!a.max_drop.empty()) {
    if (a.evaluate_data.empty())
      throw UsageError("--max-drop needs --evaluate DATA --label NAME to measure the accuracy with");
    if (a.metric == "sqnr")
      throw UsageError(
          "--max-drop limits the loss of right answers, --metric sqnr measures noise: give --min-sqnr DB "
          "with it, or --max-drop with --evaluate DATA --label NAME --metric top1");
    if (a.min_sqnr) throw UsageError("--max-drop and --min-sqnr both limit the loss; give one of them");
    options->quantization.max_drop = fraction(a.max_drop, "--max-drop");
  }
}

// The stages that convert_file() names, with their usual shares of the time.
std::vector<ProgressStage> stages_of(const ConvertArguments& a) {
  if (a.quantize.empty()) return {{"reading", 2}, {"rewriting", 4}, {"planning", 4}, {"writing", 2}};
  if (a.calibrate.empty())
    return {{"reading", 1}, {"rewriting", 2}, {"quantizing weights", 4}, {"planning", 2}, {"writing", 2}};
  if (a.quantize.ends_with('w'))
    return {{"reading", 1},  {"reading samples", 1}, {"rewriting", 2}, {"quantizing weights", 20},
            {"planning", 3}, {"writing", 2}};
  return {{"reading", 1},     {"reading samples", 1}, {"rewriting", 1},
          {"quantizing", 90}, {"planning", 1},        {"writing", 1}};
}

// --evaluate's data, with the array that --label names; checked before the work.
Arrays labelled_data(const ConvertArguments& a) {
  if (a.evaluate_data.empty() || a.metric == "sqnr") return {};
  Arrays data = read_arrays(a.evaluate_data);
  const std::string names = listed(data, [](const auto& item) { return "'" + item.first + "'"; });
  if (a.label.empty())
    throw UsageError(
        fmt::format("--evaluate needs --label NAME: the array of right answers, one of {} in {}; without "
                    "labels, --metric sqnr measures the effect of --quantize on the outputs",
                    names, a.evaluate_data));
  if (!find_array(data, a.label))
    throw DataError(
        fmt::format("--label {}: {} has no such array; it has {}", a.label, a.evaluate_data, names));
  return data;
}

// --metric sqnr needs two models, the float one and the quantized, and no labels.
void check_metric(const ConvertArguments& a) {
  if (a.metric != "sqnr") return;
  if (a.quantize.empty())
    throw UsageError(
        "--metric sqnr measures the effect of --quantize on the outputs: add --quantize int8 (or int8x16, "
        "int8w, int4w); sinter compare compares any two models");
  if (a.evaluate_data.empty())
    throw UsageError("--metric sqnr needs --evaluate DATA: samples to measure the SQNR of the outputs with");
  if (!a.label.empty())
    throw UsageError(
        "--metric sqnr compares outputs with those of the float model: remove --label, or give --metric top1 "
        "to count right answers");
}

// Fraction of samples whose largest output has the label's index.
double top1(const std::filesystem::path& file, const Arrays& data, const std::string& label) {
  const ConstantPtr labels = find_array(data, label);
  const std::vector<int64_t> wanted = labels->as_int64s();
  const LoadedModel loaded(file);
  HostSession session(loaded, {.backend = backend_here(loaded.model(), loaded.model().default_profile())});
  const int64_t n = session.sample_count(data);
  if (static_cast<int64_t>(wanted.size()) != n)
    throw DataError(fmt::format("{} labels for {} samples", wanted.size(), n));
  int64_t right = 0;
  for (int64_t i = 0; i < n; ++i) {
    session.set_inputs(data, i);
    session.run();
    right += is_right(session.outputs().front().second->as_doubles(), wanted[static_cast<size_t>(i)]);
  }
  return n == 0 ? 0 : static_cast<double>(right) / static_cast<double>(n);
}

// Folding makes and drops large arrays; clearing new pages for each would take longer than the arithmetic.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// --strict, and the trial of the written file gave a warning.
struct RefusedByTrial {};

// The targets and, of their backends, those to plan for.
void set_targets(const ConvertArguments& a, ConversionOptions* options) {
  options->targets.clear();
  std::vector<std::string> names;
  for (const std::string& text : a.targets) {
    std::string fault;
    std::optional<Target> target = parse_target(text, &fault);
    if (!target) throw UsageError(fmt::format("--target {}: {}", text, fault));
    if (a.plan_threads > 0) target->cores = a.plan_threads;
    const bool twice =
        std::any_of(options->targets.begin(), options->targets.end(),
                    [&](const Target& other) { return target_text(other) == target_text(*target); });
    if (twice) throw UsageError(fmt::format("--target {}: this target is given twice; give it once", text));
    options->targets.push_back(*target);
    if (text == kNativeTarget) options->native_target = *target;
    for (const Platform* p : platforms_serving(*target))
      if (std::find(names.begin(), names.end(), p->name) == names.end()) names.emplace_back(p->name);
  }
  names.emplace_back("reference");
  for (const std::string& name : a.backends)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UsageError(fmt::format("--backends {}: target {} has no such backend; it has {}", name,
                                   fmt::join(a.targets, ","), fmt::join(names, ", ")));
  if (!a.backends.empty()) options->plan_backends = a.backends;
}

void run_convert(const ConvertArguments& a, Outcome& outcome) {
  keep_freed_memory();
  if (a.evaluate_data.empty() && !a.label.empty())
    throw UsageError("--label names an array of --evaluate DATA, which is missing; add --evaluate DATA");
  check_metric(a);
  check_passes(a);
  ConversionOptions options;
  options.lowering = lowering_options(a);
  set_targets(a, &options);
  options.strict = a.strict;
  options.narrow_float64 = a.float64 == "narrow";
  options.prefer = preferred(a);
  options.backends = host_backends({});
  set_quantization(a, &options);
  options.winograd = !a.no_winograd;
  options.stored_weights = a.weights == "stored";
  options.plan_seconds = a.plan_seconds;
  if (a.max_arena) options.max_arena = static_cast<uint64_t>(*a.max_arena);
  options.details = !a.report.empty();
  options.emit.strip_names = a.strip;
  options.passes.disabled = a.disabled;
  options.passes.dump_after = a.dump_after;
  options.passes.stop_after = a.stop_after;
  options.passes.dump = [](const std::string& text) { std::fputs(text.c_str(), stderr); };
  if (!a.report.empty()) check_report_name(a.report);
  std::vector<NamedFile> read{{"the model", a.model},
                              {"--calibrate", a.calibrate},
                              {"--evaluate", a.evaluate_data},
                              {"--sign", a.sign}};
  for (const std::string& item : a.constants)
    read.push_back({"--const", split(item, "--const", "NAME=FILE.npy").second});
  check_output(a.out);
  const std::vector<NamedFile> written{{"-o", a.out}, {"--report", a.report}};
  check_outputs(written, read);
  options.external_files = [written](const std::vector<std::filesystem::path>& files) {
    std::vector<NamedFile> data;
    for (const std::filesystem::path& file : files)
      data.push_back({"the model's external data", file.string()});
    check_outputs(written, data);
  };
  const Arrays labelled = labelled_data(a);
  std::optional<PublicKey> signer;
  if (!a.sign.empty()) {
    options.emit.signer = std::make_shared<const SecretKey>(SecretKey::read(a.sign));
    signer = options.emit.signer->public_key();
  }
  Progress progress(stages_of(a), a.common.quiet);
  options.progress = [&](const char* stage) { progress.begin(stage); };
  options.quantization.progress = [&](const Phase& phase, int64_t done, int64_t total) {
    progress.step(phase, done, total);
  };
  Diagnostics diagnostics;
  nlohmann::json sizes;
  options.check = [&](std::span<const PlannedModel> plans, const std::filesystem::path& file) {
    WrittenCheck check;
    const size_t before = diagnostics.count(Severity::kWarning);
    try {
      check = check_written(file, plans, {a.model, options.lowering, signer, !a.no_trial}, diagnostics);
    } catch (const std::bad_alloc&) {
      throw FileError(fmt::format("{}: this machine does not have enough memory to check it", a.model));
    } catch (const std::exception& e) {
      throw std::logic_error(fmt::format("the written file does not verify: {}", e.what()));
    }
    sizes["arena_bytes"] = check.arena_bytes;
    sizes["session_bytes"] = check.session_bytes;
    sizes["session_created"] = check.session_created;
    sizes["trial"] = check.trial.to_json();
    if (a.strict && diagnostics.count(Severity::kWarning) > before) throw RefusedByTrial{};
  };
  std::optional<ConversionReport> report;
  try {
    report = convert_file(a.model, a.out, options, diagnostics);
  } catch (const RefusedByTrial&) {
  }
  progress.finish();
  const Severity least = a.common.quiet ? Severity::kRefusal : Severity::kWarning;
  std::fputs(diagnostics.to_text(report ? least : Severity::kWarning).c_str(), stderr);
  if (!report) {
    if (diagnostics.refused()) {
      outcome.exit_code = 3;
      if (a.common.json)
        fmt::print("{}\n", nlohmann::json{{"refused", true}, {"diagnostics", diagnostics.to_json()}}.dump(2));
    } else {
      std::fputs("sinter: --strict: the model is refused because of the warnings above\n", stderr);
      outcome.exit_code = 1;
    }
    return;
  }
  nlohmann::json json = to_json(*report, diagnostics);
  json["model"] = a.model, json["out"] = a.out;
  if (signer) json["key_id"] = signer->id();
  if (!sizes.is_null()) json.update(sizes);
  if (!report->withheld.empty()) {
    json["withheld"] = report->withheld;
    if (a.common.json) fmt::print("{}\n", json.dump(2));
    if (report->quantized && !a.common.json && !a.common.quiet) fmt::print("{}", to_text(*report->quantized));
    fmt::print(stderr, "sinter: {}\n        no file is written\n", report->withheld);
    outcome.exit_code = 1;
    return;
  }
  if (!a.evaluate_data.empty() && a.metric == "top1") json["top1"] = top1(a.out, labelled, a.label);
  if (!a.report.empty()) {
    nlohmann::json all = json;
    all.update(details_json(*report));
    write_report(a.report, all);
  }
  if (a.common.json) {
    fmt::print("{}\n", json.dump(2));
  } else if (!a.common.quiet) {
    fmt::print("{}", to_text(*report));
    if (json.contains("top1") && !(report->quantized && report->quantized->accuracy))
      fmt::print("accuracy  {:.2f} %\n", 100 * json["top1"].get<double>());
    if (!report->stripes.empty() && sizes.contains("session_bytes"))
      fmt::print("session   {} bytes on this machine, including weights packed for each stripe\n",
                 sizes["session_bytes"].get<size_t>());
    if (signer) fmt::print("signed    with key {}\n", signer->id());
    fmt::print("wrote     {}\n", a.out);
  }
}

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

void add_convert(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<ConvertArguments>();
  CLI::App* c = app.add_subcommand("convert", "Convert an ONNX model into a .sinter file");
  c->add_option("model", a->model, "The ONNX file")->required();
  c->add_option("-o,--output", a->out, "The file to write")->required();
  c->add_option(
       "--target", a->targets,
       fmt::format(
           "NAME[+FEATURE...][,...], such as x86_64+avx2: the machine that runs the file. The file runs on "
           "every machine of that architecture; features describe the processor whose timings decide between "
           "kernels, and where --quantize uses integers (those of the first name). Several names give a plan "
           "for each; a session takes the first that fits its machine.{}\nDefault: {}",
           target_help(), a->targets.front()))
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option(
       "--backends", a->backends,
       "LIST, such as simd or onednn,xnnpack,simd: plan only for these backends of the target, the ones "
       "that the application links; the reference kernels are always included, onednn only if it is named or "
       "the target is native")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--shape", a->shapes, "INPUT=1,3,224,224: the shape of an input with open dimensions");
  c->add_option("--dim", a->dims, "NAME=N: the size of a named dimension");
  c->add_option("--const", a->constants, "NAME=FILE.npy: turns an input into a constant");
  c->add_option("--max-trips", a->trips, "NODE=N: the maximum number of iterations of a Loop node");
  c->add_option("--bound", a->bounds, "NODE=N: the maximum of the bounded dimension in the node's results");
  c->add_option(
       "--quantize", a->quantize,
       "int8: computes products, and the operations between them, on 8-bit integers, with ranges from "
       "--calibrate's samples. int8x16: the same with 16-bit activations, which are more accurate and "
       "slower. int8w, int4w: weights in 8 bits, or in 4 where that suffices, and activations in float; "
       "needs no samples. The closing table gives the SQNR, and remedies if it is too low")
      ->check(CLI::IsMember({"int8", "int8x16", "int8w", "int4w"}));
  c->add_option("--block", a->block,
                "int8w, int4w: the number of weights that share a scale (default 32), an even number")
      ->check(CLI::Range(16, 65536));
  c->add_option("--calibrate", a->calibrate,
                "Samples for --quantize: .npz, .npy, a folder of these, or cmd:COMMAND that writes them. "
                "int8w and int4w are only measured with them");
  c->add_option("--calibrator", a->calibrator,
                "How ranges are chosen: best (the smallest expected error), minmax, moving-average, "
                "percentile[=99.99], entropy or mse");
  c->add_option("--samples", a->samples, "Calibrate with N samples, spread evenly over the data")
      ->check(CLI::Range(1, 1 << 30));
  std::string techniques = "Turn off a technique for the accuracy of --quantize:";
  for (const Technique* t : kTechniques) techniques += fmt::format("\n{:>22}  {}", t->name, t->description);
  c->add_option(
       "--min-sqnr", a->min_sqnr,
       "SQNR (signal-to-quantization-noise ratio), in dB, that every output must have (20: usable, 30: good, "
       "40: close to float). As few operations as possible are kept in float for it (exit code 1 and no file "
       "if it cannot be reached). Measured on --calibrate's samples, or on --evaluate's with --metric sqnr")
      ->check(CLI::Range(0.0, 200.0));
  c->add_option(
      "--max-drop", a->max_drop,
      "The accuracy that quantization may lose on --evaluate's data, such as 0.5%. As few operations as "
      "possible are kept in float for it (exit code 1 and no file if it cannot be reached)");
  c->add_option(
      "--keep-float", a->keep_float,
      "NODE: keep in float this operation, or the one that computes this value (names: --report FILE.json)");
  c->add_flag("--require-int8", a->require_int8,
              "If operations are kept in float, write no file and list them with their reasons (exit code "
              "1). Where 8 bits are too few, 16-bit activations count as integers and are tried first");
  c->add_flag(
      "--adaptive-rounding", a->adaptive_rounding,
      "Try adaptive rounding of weights without a time limit, instead of only where it takes seconds");
  c->add_flag("--force-int8", a->force_int8,
              "Use integers even where the cost table expects float to be faster");
  c->add_option("--disable-technique", a->disabled_techniques, techniques);
  c->add_option("--evaluate", a->evaluate_data,
                "Data (.npz, layout of run --each) to measure the result with: labelled, or unlabelled with "
                "--metric sqnr");
  c->add_option("--label", a->label, "The array of --evaluate's data that holds the right answers");
  c->add_option("--metric", a->metric,
                "What to measure on --evaluate's data: top1, the share of right answers; sqnr, the SQNR "
                "of every output of a quantized model against the float one (no --label)")
      ->check(CLI::IsMember({"top1", "sqnr"}));
  c->add_option(
       "--weights", a->weights,
       "stored: weights keep their narrow type (float16, float8, int4 with scales, ...) in the file and are "
       "widened when a session is created (default); widened: the file holds the widened weights")
      ->check(CLI::IsMember({"stored", "widened"}));
  c->add_option("--plan-seconds", a->plan_seconds,
                "Search for a smaller arena for up to S seconds if it may not be minimal (the result may "
                "then depend on this machine)")
      ->check(CLI::Range(0.0, 86400.0));
  c->add_option("--plan-threads", a->plan_threads,
                "Plan workspaces for sessions of up to N threads (default 8); fewer threads may need less "
                "memory. Steps with too small a workspace use fewer threads")
      ->check(CLI::Range(1, 1024));
  c->add_option(
       "--max-arena", a->max_arena,
       "The maximum BYTES of activations and workspaces: steps that need more are computed in stripes of "
       "rows, some rows twice. If that is not enough, the smallest arena found is reported (exit code 1)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 60));
  c->add_flag(
      "--no-trial", a->no_trial,
      "Skip the trial run on synthetic inputs, which finds NaN and infinity that the model does not produce");
  c->add_flag("--no-winograd", a->no_winograd,
              "Compute every convolution directly: slower, with less memory for weights and smaller errors");
  c->add_flag("--strict", a->strict, "Treat every warning as an error (exit code 1)");
  c->add_option("--float64", a->float64,
                "auto: float64 is kept where float32 could lose accuracy; keep: everywhere; narrow: nowhere")
      ->check(CLI::IsMember({"auto", "keep", "narrow"}));
  c->add_option("--keep", a->keep, "TENSOR=TYPE: compute and keep a value in this type");
  c->add_flag("--prefer-float16", a->prefer_float16,
              "Compute in float16 the values that are float16 in the model (all values of a float32 model), "
              "where the target has kernels for it (aarch64) and the rules of docs/types.md allow it");
  c->add_flag("--prefer-bfloat16", a->prefer_bfloat16,
              "The same in bfloat16, where the target has kernels for it (x86_64+avx512bf16, by oneDNN)");
  c->add_option("--sign", a->sign, "SECRET: sign the file with this key (sinter keygen)");
  c->add_flag("--strip", a->strip, "Omit the names of values and steps from the file");
  c->add_option("--report", a->report,
                "FILE.json, .jsonl or .html: a report of every decision of the conversion");
  std::string passes = "Skip a pass:";
  for (const Pass& p : all_passes()) passes += fmt::format("\n{:>22}  {}", p.name, p.description);
  c->add_option("--disable-pass", a->disabled, passes);
  c->add_option("--dump-after", a->dump_after, "Print the graph on stderr after this pass");
  c->add_option("--stop-after", a->stop_after,
                "Run only the first N passes, to find the one that changes a result")
      ->check(CLI::Range(0, 1000));
  a->common.add_to(*c);
  c->footer(
      "Examples: sinter convert net.onnx -o net.sinter --dim sequence=128\n"
      "          sinter convert net.onnx -o net.sinter --quantize int8 --calibrate samples.npz\n"
      "          sinter convert net.onnx -o net.sinter --quantize int8 --calibrate samples.npz --max-drop "
      "0.5% "
      "--evaluate test.npz --label label\n"
      "          sinter convert net.onnx -o net.sinter --quantize int8w");
  c->callback([a, &outcome] { run_convert(*a, outcome); });
}

}  // namespace sinter::convert

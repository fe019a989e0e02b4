// The texts of the file: facts of the ONNX file, the preprocessing, and what --meta and --labels give.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "converter/data/class_names.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/import/byte_inputs.h"
#include "converter/stages/conversion.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// What is taken from an ONNX file without being asked for: bytes of a text and of all, and texts. Exporters
// put vocabularies there.
constexpr size_t kMostCarried = 4096, kMostCarriedInAll = 16384, kMostCarriedTexts = 256;

// Returns why a text cannot be in the file; empty: it can.
std::string fault_of(std::string_view text, size_t most) {
  if (text.size() > most) return fmt::format("has {} bytes, more than {}", text.size(), most);
  return as_utf8(text) == text ? "" : "is not UTF-8";
}

// Adds a text of the ONNX file, or notes why it is not kept. `bytes`: of those that are kept.
void carry(const std::string& key, const std::string& value, size_t* bytes, Conversion& c) {
  std::map<std::string, std::string>& metadata = c.report.texts.metadata;
  if (value.empty()) return;
  std::string fault = key.empty() ? "does not have a name" : fault_of(value, kMostCarried);
  if (fault.empty() && !fault_of(key, detail::kMaxKeyBytes).empty()) fault = "has a name that cannot be kept";
  if (fault.empty() && metadata.contains(key)) fault = "has the name of another fact";
  if (fault.empty() && metadata.size() >= kMostCarriedTexts)
    fault = fmt::format("is behind the first {} texts", kMostCarriedTexts);
  if (fault.empty() && *bytes + key.size() + value.size() > kMostCarriedInAll)
    fault = fmt::format("would be more than {} bytes with the others", kMostCarriedInAll);
  if (!fault.empty()) {
    c.report.not_kept.push_back(fmt::format("'{}' {}", key, fault));
    return c.diagnostics.note(
        "", "", fmt::format("the ONNX file's metadata '{}' is not kept, because it {}", key, fault));
  }
  *bytes += key.size() + value.size();
  metadata[key] = value;
}

// Adds what the ONNX file states about itself.
void carry_all(Conversion& c) {
  const ImportedModel& m = *c.imported;
  size_t bytes = 0;
  const auto take = [&](const std::string& key, const std::string& value) { carry(key, value, &bytes, c); };
  take("model.producer", m.producer_version.empty() ? m.producer : m.producer + " " + m.producer_version);
  take("model.domain", m.domain);
  take("model.version", m.version == 0 ? "" : fmt::format("{}", m.version));
  take("model.description", m.description);
  for (const auto& [key, value] : m.metadata) take(key, value);
}

// Returns whether the file keeps facts that no flag asks for: not without names, and not on a
// microcontroller.
bool keeps_facts(const ConversionOptions& options) {
  return !options.emit.strip_names &&
         std::any_of(options.targets.begin(), options.targets.end(),
                     [](const Target& t) { return t.architecture != Architecture::kCortexM; });
}

// Whether an input besides those of bytes takes pictures, to which mean, scale and order apply.
bool takes_numbers_of_pictures(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId id) {
    const Value& v = graph.value(id);
    return takes_bytes({}, {v.name, v.dtype, v.dims});
  });
}

// Adds the steps from pictures and sounds to inputs (docs/data.md has the form).
void state_preprocessing(Conversion& c) {
  using Resize = Preprocessing::Resize;
  const Preprocessing& how = c.options.preprocessing;
  const auto state = [&](const char* name, std::string value) {
    c.report.texts.metadata[std::string("preprocessing.") + name] = std::move(value);
  };
  if (how.resize == Resize::kExact) state("resize", "exact");
  if (how.resize == Resize::kCrop) state("resize", how.side > 0 ? fmt::format("crop={}", how.side) : "crop");
  if (how.resize == Resize::kLetterbox) state("resize", fmt::format("letterbox={}", how.fill));
  if (how.layout != Preprocessing::Layout::kByShape)
    state("layout", how.layout == Preprocessing::Layout::kChannelsLast ? "nhwc" : "nchw");
  if (how.built_in) state("uint8", "pixels");
  if (how.built_in && !takes_numbers_of_pictures(c.graph())) return;
  if (!how.mean.empty()) state("mean", fmt::format("{}", fmt::join(how.mean, ",")));
  if (!how.scale.empty()) state("scale", fmt::format("{}", fmt::join(how.scale, ",")));
  if (how.bgr) state("channel_order", "bgr");
}

// Returns the output of a name, or the only one for an empty name.
ValueId labelled_output(const Graph& graph, const LabelFile& labels) {
  std::vector<std::string> names;
  ValueId only = -1;
  for (const ValueId id : graph.outputs) {
    if (graph.state_written(id) != nullptr) continue;
    if (graph.value(id).name == labels.output) return id;
    names.push_back(graph.value(id).name), only = id;
  }
  if (!labels.output.empty())
    throw UsageError(fmt::format("--labels {}={}: the model has no output '{}'; {}", labels.output,
                                 labels.file, labels.output, advise_name(names, labels.output)));
  if (names.size() != 1)
    throw UsageError(
        fmt::format("--labels {}: the model has {} outputs; give --labels OUTPUT={}, with one of {}",
                    labels.file, names.size(), labels.file, fmt::join(names, ", ")));
  return only;
}

// Throws DataError unless the names are those of the output's classes, in every shape set.
void check_classes(const std::vector<std::string>& names, const LabelFile& labels, Conversion& c) {
  for (const Entry& entry : c.entries) {
    const Value& v = entry.graph.value(labelled_output(entry.graph, labels));
    const std::string output = fmt::format("output '{}' ({})", v.name, to_string(v.dtype, v.dims));
    const auto refuse = [&](size_t line, const std::string& why) {
      return DataError(fmt::format("{}, line {}: {}", labels.file, line, why));
    };
    if (v.dims.empty())
      throw refuse(1, fmt::format("{} is a single number, without classes; leave --labels out", output));
    const size_t axis = class_axis(v.dims);
    for (const BoundedDim& bounded : v.bounded_dims)
      if (static_cast<size_t>(bounded.axis) == axis)
        throw refuse(
            1, fmt::format("the length of axis {} of {} depends on the run, and labels need a fixed one; "
                           "leave --labels out",
                           axis, output));
    const auto classes = static_cast<size_t>(v.dims[axis]);
    if (names.size() < classes)
      throw refuse(names.size() + 1,
                   fmt::format("the name is missing: {} has {} classes along axis {}; give one "
                               "name a line for each",
                               output, classes, axis));
    if (names.size() > classes)
      throw refuse(classes + 1,
                   fmt::format("this name is one too many: {} has {} classes along axis {}; give one "
                               "name a line for each",
                               output, classes, axis));
  }
}

void read_labels(const LabelFile& labels, Conversion& c) {
  std::vector<std::string> names = read_class_names(labels.file);
  for (size_t i = 0; i < names.size(); ++i)
    if (const std::string fault = fault_of(names[i], detail::kMaxLabelBytes); !fault.empty())
      throw DataError(fmt::format("{}, line {}: the name {}; {}", labels.file, i + 1, fault,
                                  fault.starts_with("has") ? "shorten it" : "save the file as UTF-8"));
  check_classes(names, labels, c);
  const std::string& output = c.graph().value(labelled_output(c.graph(), labels)).name;
  if (!c.report.texts.labels.emplace(output, std::move(names)).second)
    throw UsageError(fmt::format("--labels {}={}: output '{}' has another file of labels; give one", output,
                                 labels.file, output));
}

}  // namespace

bool settle_texts(Conversion& c) {
  ModelTexts& texts = c.report.texts;
  if (keeps_facts(c.options)) carry_all(c), state_preprocessing(c);
  for (const auto& [key, value] : c.options.metadata) {
    if (texts.metadata.erase(key) > 0 && !value.empty()) c.report.replaced.insert(key);
    if (!value.empty()) texts.metadata[key] = value;
  }
  for (const LabelFile& labels : c.options.label_files) read_labels(labels, c);
  size_t bytes = 0;
  for (const auto& [key, value] : texts.metadata) bytes += key.size() + value.size();
  for (const auto& [output, names] : texts.labels)
    for (const std::string& name : names) bytes += name.size();
  if (texts.metadata.size() > detail::kMaxMetadata)
    throw UsageError(
        fmt::format("the file would have {} facts about the model, more than {}; give fewer --meta",
                    texts.metadata.size(), detail::kMaxMetadata));
  if (bytes > kMostTextBytes)
    throw UsageError(
        fmt::format("--meta and --labels have {} bytes of text, more than {}, which a device would "
                    "keep in memory; keep long texts in a file of their own",
                    bytes, kMostTextBytes));
  return true;
}

}  // namespace sinter::convert

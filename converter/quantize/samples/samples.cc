#include "converter/quantize/samples/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/data/file_list.h"
#include "converter/diagnostics/errors.h"
#include "converter/ir/op_traits.h"
#include "converter/ir/quant_params.h"
#include "converter/quantize/samples/damaged_files.h"
#include "converter/quantize/samples/listed_samples.h"
#include "converter/quantize/samples/sample_streams.h"

namespace sinter::convert {
namespace {

using detail::ArrayFact;
using detail::Layout;
using detail::Matched;
using detail::OpenArray;

constexpr size_t kMostProblems = 12;

std::vector<ArrayFact> facts_of(const std::vector<OpenArray>& arrays) {
  std::vector<ArrayFact> facts;
  for (const OpenArray& a : arrays) facts.push_back({a.name, a.header.dtype, a.header.dims, a.problem});
  return facts;
}

// One or several files, each a stack of samples or one of them.
class FileSamples final : public SampleSource {
 public:
  FileSamples(const std::string& data, std::vector<std::filesystem::path> files, Layout layout,
              std::vector<SampleInput> inputs, const SampleOptions& options)
      : inputs_(std::move(inputs)), single_(files.size() == 1) {
    if (options.preprocessing.skip_damaged && !single_) left_out_ = detail::drop_damaged(&files);
    std::vector<std::string> problems;
    for (const auto& path : files) {
      const std::vector<OpenArray> arrays = opened(path);
      Matched matched = detail::match_arrays(facts_of(arrays), inputs_, layout);
      for (std::string& p : matched.problems)
        problems.push_back(files.size() == 1 ? std::move(p)
                                             : fmt::format("{}: {}", path.filename().string(), p));
      if (problems.size() >= kMostProblems) break;
      files_.push_back({path, total_, matched.count});
      total_ += matched.count;
    }
    if (!problems.empty())
      throw DataError(fmt::format("{} does not fit the model:\n  {}", data, fmt::join(problems, "\n  ")));
    if (total_ == 0) throw DataError(data + " holds no samples");
    layout_ = layout;
    count_ = options.most < 0 ? total_ : std::min(total_, options.most);
  }

  int64_t count() const override { return count_; }
  bool is_file() const override { return true; }
  void rewind() override { next_ = 0, close(); }

  bool next(Sample* sample) override {
    if (next_ == count_) return false;
    // Spread evenly, so that the first class of a sorted set is not all there is.
    const int64_t wanted = spread_index(next_, total_, count_);
    ++next_;
    go_to(wanted);
    sample->assign(inputs_.size(), nullptr);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      OpenArray& a = arrays_[static_cast<size_t>(matched_.array[i])];
      Bytes bytes(sample_bytes(i));
      detail::read_whole(*a.stream, bytes.data(), bytes.size(), a.what);
      (*sample)[i] = detail::make_input(matched_.sized(inputs_, i), a.header.dtype, std::move(bytes), wanted);
    }
    ++position_;
    // Where a file ends its checksum is compared.
    if (const File& f = files_[static_cast<size_t>(open_)]; position_ == f.first + f.count)
      for (size_t i = 0; i < inputs_.size(); ++i) {
        OpenArray& a = arrays_[static_cast<size_t>(matched_.array[i])];
        std::byte more;
        if (a.stream->read(&more, 1) != 0)
          throw DataError(a.what + " is damaged: it is longer than its header states");
      }
    return true;
  }

 private:
  struct File {
    std::filesystem::path path;
    int64_t first = 0, count = 0;
  };

  size_t sample_bytes(size_t input) const {
    const OpenArray& a = arrays_[static_cast<size_t>(matched_.array[input])];
    return dense_bytes(a.header.dtype, matched_.dims[input]);
  }
  void close() { open_ = -1, arrays_.clear(); }
  std::vector<OpenArray> opened(const std::filesystem::path& path) const {
    if (single_) return detail::open_arrays(path);
    return detail::or_skip_damaged([&] { return detail::open_arrays(path); });
  }

  void go_to(int64_t wanted) {
    const auto behind = std::upper_bound(files_.begin(), files_.end(), wanted,
                                         [](int64_t n, const File& f) { return n < f.first; });
    const auto file = static_cast<int>(behind - files_.begin()) - 1;
    const File& f = files_[static_cast<size_t>(file)];
    if (open_ != file || position_ > wanted) {
      close();
      arrays_ = detail::open_arrays(f.path);
      matched_ = detail::match_arrays(facts_of(arrays_), inputs_, layout_);
      if (!matched_.problems.empty() || matched_.count != f.count)
        throw DataError(f.path.string() + " changed while it was read");
      open_ = file, position_ = f.first;
    }
    Bytes skipped;
    for (size_t i = 0; i < inputs_.size() && position_ < wanted; ++i) {
      OpenArray& a = arrays_[static_cast<size_t>(matched_.array[i])];
      const size_t bytes = sample_bytes(i);
      skipped.resize(bytes);
      for (int64_t n = position_; n < wanted; ++n)
        detail::read_whole(*a.stream, skipped.data(), bytes, a.what);
    }
    position_ = wanted;
  }

  std::vector<SampleInput> inputs_;
  bool single_ = false;
  std::vector<File> files_;
  Layout layout_ = Layout::kStack;
  int64_t total_ = 0, count_ = 0, next_ = 0;
  int open_ = -1;
  std::vector<OpenArray> arrays_;
  Matched matched_;
  int64_t position_ = 0;  // the next sample of the streams
};

}  // namespace

namespace {

// The scale of an input that Dequantize alone reads; none: something else does, or they differ.
IntegerScale dequantized(const Graph& graph, ValueId id) {
  std::optional<IntegerScale> found;
  for (const Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), id) == node.inputs.end()) continue;
    const auto params = node.as<DequantizeAttrs>() != nullptr ? quant_params(graph, node) : std::nullopt;
    const IntegerScale scale = params ? IntegerScale{params->scale, params->zero_point} : IntegerScale();
    if (scale.scale == 0 || (found && !(*found == scale))) return {};
    found = scale;
  }
  return found.value_or(IntegerScale());
}

// The constant table that an input's integers look up, through what hands them on as they are.
void find_table(const Graph& graph, ValueId id, SampleInput* input) {
  for (const Node& node : graph.nodes) {
    const auto at = std::find(node.inputs.begin(), node.inputs.end(), id);
    if (at == node.inputs.end()) continue;
    const auto* gather = node.as<GatherAttrs>();
    if (gather != nullptr && at == node.inputs.begin() + 1 && graph.is_constant(node.inputs[0])) {
      const Value& table = graph.value(node.inputs[0]);
      const auto axis = static_cast<size_t>(
          gather->axis < 0 ? gather->axis + static_cast<int64_t>(table.dims.size()) : gather->axis);
      const int64_t rows = table.dims[axis];
      if (input->rows == 0 || rows < input->rows)
        input->rows = rows, input->table = table.name.empty() ? node.name : table.name;
    }
    const bool hands_on =
        moves_whole(node.attrs) || (node.op() == Op::kCast && is_integer(graph.value(node.outputs[0]).dtype));
    if (hands_on) find_table(graph, node.outputs[0], input);
  }
}

}  // namespace

std::vector<SampleInput> sample_inputs(const Graph& graph, const ImportedGraph* declared) {
  std::vector<SampleInput> inputs;
  for (const ValueId id : graph.inputs) {
    if (graph.state_read(id) != nullptr || graph.given_length(id) != nullptr) continue;
    const Value& v = graph.value(id);
    SampleInput input{v.name, v.dtype, v.dims, {}};
    if (!v.bounded_dims.empty()) input.minima = v.dims;
    for (const auto& [axis, length] : v.bounded_dims)
      input.minima[static_cast<size_t>(axis)] = graph.given_length(length)->minimum;
    if (is_integer(v.dtype)) find_table(graph, id, &input);
    if (v.dtype == DType::kInt8) input.integers = dequantized(graph, id);
    if (declared != nullptr)
      for (const ImportedValueInfo& info : declared->inputs)
        if (info.name == v.name && info.has_shape && info.dims.size() == v.dims.size())
          for (const ImportedDim& d : info.dims) input.symbols.push_back(d.symbol);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string left_out_text(const SampleSource& samples) {
  constexpr size_t kMostNamed = 5;
  const std::vector<std::string>& all = samples.left_out();
  if (all.empty()) return {};
  const std::vector<std::string> named(all.begin(),
                                       all.begin() + static_cast<int64_t>(std::min(all.size(), kMostNamed)));
  return fmt::format(
      "{} damaged sample{} left out: {}{}", all.size(), all.size() == 1 ? " is" : "s are",
      fmt::join(named, "; "),
      all.size() > named.size() ? fmt::format("; and {} more", all.size() - named.size()) : "");
}

std::unique_ptr<SampleSource> open_samples(const std::string& data, std::vector<SampleInput> inputs,
                                           const SampleOptions& options) {
  if (inputs.empty()) throw DataError("the model has no inputs, so it cannot be calibrated");
  if (options.most == 0) throw DataError("--samples is 0; give 1 or more");
  if (data.starts_with("cmd:")) return detail::open_command(data.substr(4), std::move(inputs), options);
  if (std::optional<FileList> list = list_files(data, names_of(inputs)))
    return detail::open_listed(std::move(*list), std::move(inputs), options);
  if (names_several_files(data))
    return std::make_unique<FileSamples>(data, array_files(data), Layout::kStackOrSingle, std::move(inputs),
                                         options);
  const std::vector<std::filesystem::path> one{data};
  return std::make_unique<FileSamples>(data, one, Layout::kStack, std::move(inputs), options);
}

void check_preprocessing(const Preprocessing& how, const std::vector<std::string>& data,
                         const std::vector<SampleInput>& inputs) {
  const std::string given = how.given();
  if (given.empty() || how.built_in) return;
  for (const std::string& d : data)
    if (const auto list = d.empty() ? std::nullopt : list_files(d, names_of(inputs));
        list && list->has_media())
      return;
  throw UsageError(fmt::format(
      "{}: pictures and sounds are converted by this, but the data holds neither; leave it out", given));
}

std::vector<std::string> names_of(const std::vector<SampleInput>& inputs) {
  std::vector<std::string> names;
  for (const SampleInput& input : inputs) names.push_back(input.name);
  return names;
}

}  // namespace sinter::convert

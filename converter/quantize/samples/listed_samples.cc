#include "converter/quantize/samples/listed_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/samples/damaged_files.h"
#include "converter/quantize/samples/sample_streams.h"

namespace sinter::convert::detail {
namespace {

class ListedSamples final : public SampleSource {
 public:
  ListedSamples(FileList list, std::vector<SampleInput> inputs, const SampleOptions& options,
                std::vector<std::string> left_out)
      : list_(std::move(list)), inputs_(std::move(inputs)), how_(options.preprocessing) {
    left_out_ = std::move(left_out);
    const auto total = static_cast<int64_t>(list_.samples.size());
    count_ = options.most < 0 ? total : std::min(total, options.most);
    Sample first;
    next(&first);
    next_ = 0;
  }

  int64_t count() const override { return count_; }
  bool is_file() const override { return true; }
  void rewind() override { next_ = 0; }
  std::vector<std::filesystem::path> files_of(int64_t sample) const override {
    return list_.samples[static_cast<size_t>(spread(sample))].files;
  }

  std::string label_of(int64_t sample) const override {
    return list_.samples[static_cast<size_t>(spread(sample))].label;
  }

  bool next(Sample* sample) override {
    if (next_ == count_) return false;
    const int64_t wanted = spread(next_);
    ++next_;
    const ListedSample& listed = list_.samples[static_cast<size_t>(wanted)];
    sample->assign(inputs_.size(), nullptr);
    arrays_.clear();
    for (size_t i = 0; i < inputs_.size(); ++i) (*sample)[i] = read(inputs_[i], listed.files[i], wanted);
    return true;
  }

 private:
  int64_t spread(int64_t sample) const {
    return spread_index(sample, static_cast<int64_t>(list_.samples.size()), count_);
  }

  ConstantPtr read(const SampleInput& input, const std::filesystem::path& file, int64_t sample) {
    const std::string what = file.string();
    const auto decoded = [&](const auto& decode) {
      return list_.single ? decode() : or_skip_damaged(decode);
    };
    const DataInput wanted{input.name, input.integers.scale > 0 ? DType::kFloat32 : input.dtype, input.dims};
    switch (kind_of_file(file)) {
      case FileKind::kPicture:
        if (wanted.dtype == DType::kUint8 && how_.changes_numbers())
          throw UsageError(fmt::format(
              "input '{}' takes bytes, which are pixels as they are; leave out --mean and --scale",
              wanted.name));
        return checked(input,
                       picture_input(decoded([&] { return decode_picture(bytes_of_file(file), what); }), what,
                                     wanted, how_.for_type(wanted.dtype)),
                       what, sample);
      case FileKind::kSound: {
        const Sound sound = decoded([&] { return decode_wav(bytes_of_file(file), what); });
        check_rate(sound, what);
        return checked(input, sound_input(sound, what, wanted, how_), what, sample);
      }
      case FileKind::kRaw:
        return raw(input, bytes_of_file(file), what, sample);
      default:
        return array(input, file, sample);
    }
  }

  // Refuses NaN, infinities and ids without a row, and names the file.
  static ConstantPtr checked(const SampleInput& input, const ConstantPtr& array, const std::string& what,
                             int64_t sample) {
    const LoadedBytes loaded = array->load();
    try {
      return make_input(input, array->dtype(), Bytes(loaded.bytes.begin(), loaded.bytes.end()), sample);
    } catch (const DataError& e) {
      throw DataError(fmt::format("{}: {}", what, e.what()));
    }
  }

  static ConstantPtr raw(const SampleInput& input, Bytes bytes, const std::string& what, int64_t sample) {
    const size_t wanted = dense_bytes(input.dtype, input.dims);
    if (bytes.size() != wanted)
      throw DataError(
          fmt::format("{}: the file has {} bytes but input '{}' ({}) takes {}; write one sample in the "
                      "input's own type and shape",
                      what, bytes.size(), input.name, to_string(input.dtype, input.dims), wanted));
    return checked(input, Constant::owned(input.dtype, input.dims, std::move(bytes)), what, sample);
  }

  ConstantPtr array(const SampleInput& input, const std::filesystem::path& file, int64_t sample) {
    auto found = arrays_.find(file);
    if (found == arrays_.end())
      found = arrays_.emplace(file, or_skip_damaged([&] { return read_arrays(file); })).first;
    std::vector<ArrayFact> facts;
    for (const auto& [name, a] : found->second) facts.push_back({name, a->dtype(), a->dims(), {}});
    // An array that is alone in its file needs no name.
    if (facts.size() == 1) facts[0].name = input.name;
    const std::vector<SampleInput> wanted{input};
    const Matched matched = match_arrays(facts, wanted, Layout::kSingle);
    if (!matched.problems.empty())
      throw DataError(fmt::format("{} does not fit the model:\n  {}", file.string(),
                                  fmt::join(matched.problems, "\n  ")));
    return checked(matched.sized(wanted, 0), found->second[static_cast<size_t>(matched.array[0])].second,
                   file.string(), sample);
  }

  // A model is trained for one rate, which no file of it states.
  void check_rate(const Sound& sound, const std::string& what) {
    if (rate_ == 0) rate_ = sound.rate, rate_of_ = what;
    if (rate_ != sound.rate)
      throw DataError(
          fmt::format("{}: the sound has {} frames a second but {} has {}; bring all to the rate that the "
                      "model was trained with",
                      what, sound.rate, rate_of_, rate_));
  }

  const FileList list_;
  const std::vector<SampleInput> inputs_;
  const Preprocessing how_;
  int64_t count_ = 0, next_ = 0;
  int64_t rate_ = 0;                                // of the first sound
  std::string rate_of_;                             // its file
  std::map<std::filesystem::path, Arrays> arrays_;  // of the current sample
};

}  // namespace

std::unique_ptr<SampleSource> open_listed(FileList list, std::vector<SampleInput> inputs,
                                          const SampleOptions& options) {
  std::vector<std::string> left_out;
  if (options.preprocessing.skip_damaged) left_out = drop_damaged(&list);
  return std::make_unique<ListedSamples>(std::move(list), std::move(inputs), options, std::move(left_out));
}

}  // namespace sinter::convert::detail

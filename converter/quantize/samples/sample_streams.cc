#include "converter/quantize/samples/sample_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zip.h>

#include <cmath>
#include <cstring>

#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"
#include "converter/import/read/arrays.h"
#include "converter/ir/builder.h"

namespace sinter::convert::detail {
namespace {

constexpr size_t kLongestHeader = 1 << 20;

class FileStream final : public ByteStream {
 public:
  explicit FileStream(const std::filesystem::path& path) : file_(path) {}
  size_t read(void* to, size_t bytes) override { return file_.read(to, bytes); }
  size_t bytes() const { return file_.bytes(); }

 private:
  InputFile file_;
};

struct Discard {
  void operator()(zip_t* z) const { zip_discard(z); }
};
using Archive = std::shared_ptr<zip_t>;

class MemberStream final : public ByteStream {
 public:
  MemberStream(Archive archive, zip_uint64_t index, std::string what)
      : archive_(std::move(archive)),
        what_(std::move(what)),
        file_(zip_fopen_index(archive_.get(), index, 0)) {
    if (!file_)
      throw DataError(fmt::format("{} cannot be unpacked: {}", what_, zip_strerror(archive_.get())));
  }
  size_t read(void* to, size_t bytes) override {
    size_t got = 0;
    while (got < bytes) {
      const zip_int64_t n = zip_fread(file_.get(), static_cast<char*>(to) + got, bytes - got);
      if (n < 0) throw DataError(what_ + " is damaged");
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

 private:
  struct Close {
    void operator()(zip_file_t* f) const { zip_fclose(f); }
  };
  Archive archive_;
  std::string what_;
  std::unique_ptr<zip_file_t, Close> file_;
};

class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(ConstantPtr array) : array_(std::move(array)), loaded_(array_->load()) {}
  size_t read(void* to, size_t bytes) override {
    const size_t n = std::min(bytes, loaded_.bytes.size() - at_);
    if (n != 0) std::memcpy(to, loaded_.bytes.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  ConstantPtr array_;
  LoadedBytes loaded_;
  size_t at_ = 0;
};

OpenArray in_memory(std::string name, const ConstantPtr& array, std::string what) {
  NpyHeader header;
  header.dtype = array->dtype(), header.dims = array->dims(), header.data_bytes = array->byte_size();
  return {std::move(name), header, std::make_unique<MemoryStream>(array), std::move(what)};
}

// A column-major array keeps its samples apart; it has to be turned as a whole. `size`: of the whole file.
OpenArray open_npy(std::string name, std::unique_ptr<ByteStream> stream, std::optional<uint64_t> size,
                   std::string what) {
  NpyHeader header = read_npy_header(*stream, what);
  if (size) check_npy_length(header, *size, what);
  if (!header.column_major) return {std::move(name), header, std::move(stream), std::move(what)};
  Bytes bytes;
  // In pieces: a header may claim more than there is.
  while (bytes.size() < header.data_bytes) {
    const size_t at = bytes.size(), n = std::min<size_t>(header.data_bytes - at, 16 << 20);
    bytes.resize(at + n);
    read_whole(*stream, bytes.data() + at, n, what);
  }
  return in_memory(std::move(name), npy_in_rows(header, bytes), std::move(what));
}

std::vector<OpenArray> open_npz(const std::filesystem::path& path) {
  const InputFile file(path);
  const std::string text = path.string();
  int code = 0;
  const int fd = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);
  Archive archive(zip_fdopen(fd, 0, &code), Discard());
  if (!archive) {
    ::close(fd);  // an archive that is opened takes it
    throw DataError(text + " is not a .npz file: it is not a zip archive; write it with numpy.savez");
  }
  std::vector<OpenArray> arrays;
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* raw = zip_get_name(archive.get(), index, 0);
    if (raw == nullptr) throw DataError(text + ": its archive is damaged");
    std::string name = raw;
    std::string what = fmt::format("{}: '{}' in it", text, name);
    if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
    OpenArray array;
    zip_stat_t stat;
    const bool sized =
        zip_stat_index(archive.get(), index, 0, &stat) == 0 && (stat.valid & ZIP_STAT_SIZE) != 0;
    try {
      array = open_npy(name, std::make_unique<MemberStream>(archive, index, what),
                       sized ? std::optional(uint64_t{stat.size}) : std::nullopt, what);
    } catch (const DataError& e) {
      array.name = name, array.problem = e.what();
    }
    arrays.push_back(std::move(array));
    names.push_back(std::move(name));
  }
  check_names(names, text);
  return arrays;
}

}  // namespace

void read_whole(ByteStream& from, void* to, size_t bytes, const std::string& what) {
  if (from.read(to, bytes) != bytes) throw DataError(what + " is truncated");
}

NpyHeader read_npy_header(ByteStream& from, const std::string& what, Bytes begun) {
  const auto grow = [&](size_t bytes) {
    const size_t had = begun.size();
    if (had >= bytes) return;
    begun.resize(bytes);
    read_whole(from, begun.data() + had, bytes - had, what);
  };
  grow(kNpyPrefix);
  const size_t bytes = npy_header_bytes(begun, what);
  if (bytes > kLongestHeader || bytes < kNpyPrefix) throw DataError(what + " is not a .npy array");
  grow(bytes);
  return parse_npy_header(begun, what);
}

std::vector<OpenArray> open_arrays(const std::filesystem::path& path) {
  const std::string extension = path.extension().string(), what = path.string();
  std::vector<OpenArray> arrays;
  if (extension == ".npy") {
    auto file = std::make_unique<FileStream>(path);
    const uint64_t size = file->bytes();
    arrays.push_back(open_npy("", std::move(file), size, what));
  } else if (extension == ".pb") {
    for (const auto& [name, array] : read_arrays(path)) arrays.push_back(in_memory(name, array, what));
  } else {
    arrays = open_npz(path);
  }
  return arrays;
}

std::optional<Filling> filling(DType given, const SampleInput& input) {
  const DType wanted = input.dtype;
  if (given == wanted) return Filling::kSame;
  if (input.integers.scale > 0 && given == DType::kFloat32) return Filling::kRounded;
  if (wanted == DType::kFloat16 && given == DType::kFloat32) return Filling::kRounded;
  if (wanted != DType::kBFloat16 && !is_float8(wanted)) return std::nullopt;
  // No .npz holds these: bits, or float32 to be rounded.
  if (given == (wanted == DType::kBFloat16 ? DType::kUint16 : DType::kUint8)) return Filling::kBits;
  return given == DType::kFloat32 ? std::optional(Filling::kRounded) : std::nullopt;
}

namespace {

// "0,3,1": the place of an element.
std::string place_of(const SampleInput& input, size_t element) {
  std::string place;
  for (size_t axis = input.dims.size(); axis-- > 0;) {
    const auto d = static_cast<size_t>(input.dims[axis]);
    place = fmt::format("{}{}{}", element % d, place.empty() ? "" : ",", place);
    element /= d;
  }
  return place;
}

template <class T>
void refuse_ids(const SampleInput& input, const Bytes& bytes, int64_t sample) {
  const auto* ids = reinterpret_cast<const T*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
    if (ids[i] < -input.rows || ids[i] >= input.rows)
      throw DataError(
          fmt::format("input '{}', sample {}: {} at [{}] is not a row of the table '{}', which has rows 0 to "
                      "{}; use the ids "
                      "of the model's own vocabulary",
                      input.name, sample, ids[i], place_of(input, i), input.table, input.rows - 1));
}

template <class T>
void refuse_not_finite(const SampleInput& input, const Bytes& bytes, int64_t sample) {
  const size_t n = bytes.size() / sizeof(T);
  const auto* x = reinterpret_cast<const T*>(bytes.data());
  // x - x is zero for what is finite, NaN for the rest; their sum saves a check of each element.
  T sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] - x[i];
  if (sum == 0) return;
  size_t bad = 0, nan = 0, first = 0;
  for (size_t i = n; i-- > 0;) {
    if (std::isfinite(x[i])) continue;
    ++bad, nan += std::isnan(x[i]), first = i;
  }
  throw DataError(fmt::format(
      "input '{}', sample {}: {} of {} numbers {} finite ({} NaN, {} infinite; the first at [{}]); ranges "
      "can only be measured on finite data: repair or remove this sample",
      input.name, sample, bad, n, bad == 1 ? "is not" : "are not", nan, bad - nan, place_of(input, first)));
}

}  // namespace

ConstantPtr make_input(const SampleInput& input, DType given, Bytes bytes, int64_t sample) {
  if (given == DType::kFloat32) refuse_not_finite<float>(input, bytes, sample);
  if (given == DType::kFloat64) refuse_not_finite<double>(input, bytes, sample);
  if (input.rows > 0 && given == DType::kInt64) refuse_ids<int64_t>(input, bytes, sample);
  if (input.rows > 0 && given == DType::kInt32) refuse_ids<int32_t>(input, bytes, sample);
  if (filling(given, input) != Filling::kRounded)
    return Constant::owned(input.dtype, input.dims, std::move(bytes));
  std::vector<ConstantPtr> cast;
  const ConstantPtr wide = Constant::owned(given, input.dims, std::move(bytes));
  if (input.integers.scale > 0) return as_integers(wide, input.integers, input.name);
  if (!evaluate(CastAttrs{static_cast<int64_t>(input.dtype), 1}, {wide}, 1, &cast, false).ok())
    throw DataError(fmt::format("input '{}' cannot be rounded to {}", input.name, dtype_name(input.dtype)));
  return cast[0];
}

}  // namespace sinter::convert::detail

#include "converter/import/read/arrays.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <set>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/input_file.h"
#include "converter/files/pending_file.h"
#include "converter/import/read/decode_tensor.h"
#include "converter/import/read/npy.h"
#include "converter/import/read/onnx.pb.h"

namespace sinter::convert {
namespace {

struct ZipClose {
  void operator()(zip_t* z) const { zip_discard(z); }
};

Arrays read_npz(std::span<const std::byte> bytes, const std::string& what) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  std::unique_ptr<zip_t, ZipClose> zip(source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr);
  if (!zip) {
    zip_source_free(source);  // an archive that is not opened does not take it
    throw DataError(what + " is not a .npz file: it is not a zip archive; write it with numpy.savez");
  }
  Arrays arrays;
  const zip_int64_t count = zip_get_num_entries(zip.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(zip.get(), index, 0, &stat) != 0) throw DataError(what + ": its archive is damaged");
    std::string name = stat.name;
    // An entry cannot expand by more than deflate allows, nor be longer than the archive; a hostile size is
    // refused before it is allocated.
    if (stat.size / 1100 > std::min<zip_uint64_t>(stat.comp_size, bytes.size()) + 1)
      throw DataError(what + ": its archive is damaged");
    Bytes entry(stat.size);
    zip_file_t* file = zip_fopen_index(zip.get(), index, 0);
    const zip_int64_t got = file ? zip_fread(file, entry.data(), entry.size()) : -1;
    const bool clean = file && zip_fclose(file) == 0;
    if (got < 0 || static_cast<size_t>(got) != entry.size() || !clean)
      throw DataError(fmt::format("{}: its array '{}' is damaged", what, name));
    if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays.emplace_back(name, parse_npy(entry, fmt::format("{}: '{}'", what, name)));
  }
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  check_names(names, what);
  return arrays;
}

std::pair<std::string, ConstantPtr> read_pb(std::span<const std::byte> bytes, const std::string& what) {
  onnx_pb::TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw DataError(what + " is not an ONNX tensor");
  Diagnostics diagnostics;
  TensorDecoder decoder(nullptr, {}, {}, diagnostics);
  const ImportedTensor tensor = decoder.decode(proto, {}, {});
  if (diagnostics.refused()) throw DataError(fmt::format("{}: {}", what, diagnostics.all().front().message));
  if (!tensor.data)
    throw DataError(
        fmt::format("{}: {}", what, tensor.problem.empty() ? "not a tensor of numbers" : tensor.problem));
  return {tensor.name, tensor.data};
}

}  // namespace

ConstantPtr find_array(const Arrays& arrays, const std::string& name) {
  for (const auto& [n, array] : arrays)
    if (n == name) return array;
  if (const std::string stored = printable(name); stored != name) return find_array(arrays, stored);
  return nullptr;
}

std::optional<Dims> sample_of_stack(const Dims& stack, size_t rank) {
  if (stack.empty() || (stack.size() != rank && stack.size() != rank + 1)) return std::nullopt;
  Dims sample = stack;
  if (stack.size() == rank)
    sample[0] = 1;
  else
    sample.erase(sample.begin());
  return sample;
}

std::optional<int64_t> stacked_samples(const Dims& array, const Dims& sample) {
  return sample_of_stack(array, sample.size()) == sample ? std::optional(array[0]) : std::nullopt;
}

Arrays read_arrays(const std::filesystem::path& path) {
  return parse_arrays(bytes_of_file(path), path.extension().string(), path.string());
}

Arrays parse_arrays(std::span<const std::byte> bytes, std::string_view extension, const std::string& what) {
  if (extension == ".npy") return {{"", parse_npy(bytes, what)}};
  if (extension == ".pb") return {read_pb(bytes, what)};
  return read_npz(bytes, what);
}

void check_names(const std::vector<std::string>& names, const std::string& what) {
  std::set<std::string_view> known;
  for (const std::string& name : names)
    if (!known.insert(name).second)
      throw DataError(
          fmt::format("{} holds two arrays of the name '{}'; write each once", what, printable(name)));
}

ConstantPtr read_npy(const std::filesystem::path& path) {
  const Arrays arrays = read_arrays(path);
  if (arrays.size() != 1)
    throw DataError(fmt::format("{} holds {} arrays; one is expected", path.string(), arrays.size()));
  return arrays.front().second;
}

void check_arrays_path(const std::string& flag, const std::filesystem::path& path, size_t count) {
  if (is_stream(path) || path.extension() == ".npz" || (path.extension() == ".npy" && count == 1)) return;
  throw UsageError(
      path.extension() == ".npy"
          ? fmt::format("{} {}: a .npy file holds one array, but there are {}; give a name that ends in .npz",
                        flag, path.string(), count)
          : fmt::format("{} {}: arrays are written as .npz{}; give a name with this ending", flag,
                        path.string(), count == 1 ? " or .npy" : ""));
}

// 1 January 1980, as NumPy's savez writes it: the same arrays are the same bytes at any time.
constexpr zip_uint16_t kFirstDosDate = 1 << 5 | 1;

void write_arrays(const std::filesystem::path& path, const Arrays& arrays) {
  if (path.extension() == ".npy" && arrays.size() == 1)
    return write_whole(path, make_npy(*arrays.front().second));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* zip = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  if (zip == nullptr) throw std::runtime_error("the zip archive cannot be created");
  std::vector<Bytes> entries;  // alive until zip_close
  entries.reserve(arrays.size());
  std::set<std::string> names;
  for (const auto& [given, array] : arrays) {
    const std::string name = printable(given);
    if (!names.insert(name).second)
      throw DataError(
          fmt::format("{}: two arrays have the name '{}'; rename one in the model", path.string(), name));
    entries.push_back(make_npy(*array));
    zip_source_t* source = zip_source_buffer(zip, entries.back().data(), entries.back().size(), 0);
    const zip_int64_t index =
        zip_file_add(zip, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8 | ZIP_FL_OVERWRITE);
    if (index < 0)
      throw std::runtime_error(fmt::format("the array name '{}' cannot be stored in a .npz file", name));
    const auto entry = static_cast<zip_uint64_t>(index);
    zip_set_file_compression(zip, entry, ZIP_CM_STORE, 0);
    zip_file_set_dostime(zip, entry, 0, kFirstDosDate, 0);
  }
  if (zip_close(zip) != 0) throw std::runtime_error("the zip archive cannot be finished");
  zip_stat_t stat;
  zip_source_open(target);
  zip_source_stat(target, &stat);
  Bytes bytes(stat.size);
  zip_source_read(target, bytes.data(), bytes.size());
  zip_source_close(target);
  zip_source_free(target);
  write_whole(path, bytes);
}

}  // namespace sinter::convert

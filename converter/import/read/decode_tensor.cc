#include "converter/import/read/decode_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "converter/import/read/onnx.pb.h"
#include "converter/ir/dims.h"
#include "runtime/core/checked.h"
#include "runtime/core/tensor_view.h"

namespace sinter::convert {
namespace {

enum OnnxType : int64_t { kOnnxString = 8, kOnnxComplex64 = 14, kOnnxComplex128 = 15 };

template <class To, class List>
Bytes packed(const List& items) {
  Bytes out(static_cast<size_t>(items.size()) * sizeof(To));
  size_t i = 0;
  for (const auto item : items) {
    const To value = static_cast<To>(item);
    std::memcpy(out.data() + i++ * sizeof(To), &value, sizeof(To));
  }
  return out;
}

// int32_data holds everything up to 32 bits, signed or as bit patterns; sub-byte types one packed byte an
// entry.
template <class List>
std::string narrow(const List& items, int bits, Bytes* out) {
  const int64_t lowest = -(int64_t{1} << (bits - 1)), highest = (int64_t{1} << bits) - 1;
  for (const auto item : items)
    if (item < lowest || item > highest) return fmt::format("the value {} does not fit {} bits", item, bits);
  *out = bits == 32 ? packed<int32_t>(items) : bits == 16 ? packed<uint16_t>(items) : packed<uint8_t>(items);
  return {};
}

std::string typed_data(const onnx_pb::TensorProto& p, DType dtype, Bytes* out) {
  switch (dtype) {
    case DType::kFloat32:
      *out = packed<float>(p.float_data());
      return {};
    case DType::kFloat64:
      *out = packed<double>(p.double_data());
      return {};
    case DType::kInt64:
      *out = packed<int64_t>(p.int64_data());
      return {};
    case DType::kUint64:
      *out = packed<uint64_t>(p.uint64_data());
      return {};
    case DType::kUint32:
      for (const uint64_t v : p.uint64_data())
        if (v > std::numeric_limits<uint32_t>::max())
          return fmt::format("the value {} does not fit 32 bits", v);
      *out = packed<uint32_t>(p.uint64_data());
      return {};
    default:
      return narrow(p.int32_data(), is_sub_byte(dtype) ? 8 : bit_width(dtype), out);
  }
}

bool parse_number(const std::string& text, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

bool well_formed_bools(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes)
    if (static_cast<uint8_t>(b) > 1) return false;
  return true;
}

// `real`: with all links followed.
bool is_below(const std::filesystem::path& real, const std::filesystem::path& folder) {
  std::error_code fault;
  const std::filesystem::path of = std::filesystem::canonical(folder, fault);
  return !fault && std::mismatch(of.begin(), of.end(), real.begin(), real.end()).first == of.end();
}

}  // namespace

std::shared_ptr<const MappedFile> TensorDecoder::external(const std::string& location, Problem* problem) {
  const std::filesystem::path path(location);
  bool leaves = location.empty() || path.is_absolute() || location.find('\\') != std::string::npos ||
                location.find('\0') != std::string::npos;
  for (const auto& part : path) leaves |= part == "..";
  if (leaves) {
    problem->what = fmt::format("its external data '{}' is not a path inside the model's folder", location);
    return nullptr;
  }
  if (folders_.named.empty()) {
    problem->what =
        fmt::format("its data is in another file, '{}', and the model was not read from a file", location);
    return nullptr;
  }
  const auto found = opened_.find(location);
  if (found != opened_.end()) return found->second;
  std::shared_ptr<const MappedFile> file;
  try {
    // The checks concern the file that is open: links may be exchanged at any time.
    const InputFile input(folders_.named / path);
    const std::filesystem::path real = input.real_path();
    if (!is_below(real, folders_.named) && !is_below(real, folders_.actual)) {
      *problem = {fmt::format("its external data '{}' is a link that leaves the model's folder, to '{}'",
                              location, real.string()),
                  "if you trust the model, copy it and its data, without links, into one folder (cp -L)"};
      return nullptr;
    }
    file = MappedFile::open(input);
  } catch (const FileError& e) {
    problem->what = fmt::format("its external data cannot be read: {}", e.what());
    return nullptr;
  }
  opened_[location] = file;
  return file;
}

std::vector<std::filesystem::path> TensorDecoder::external_files() const {
  std::vector<std::filesystem::path> files;
  for (const auto& [location, file] : opened_) files.push_back(folders_.named / location);
  return files;
}

ImportedTensor TensorDecoder::decode(const onnx_pb::TensorProto& proto, const std::string& place,
                                     const std::string& op) {
  ImportedTensor t;
  t.name = proto.name();
  t.onnx_type = proto.data_type();
  t.dtype = dtype_from_onnx(proto.data_type());
  t.dims.assign(proto.dims().begin(), proto.dims().end());
  t.external = proto.data_location() == 1;
  const auto refused = [&](std::string reason, const std::string& remedy = {}) {
    t.problem = std::move(reason);
    diagnostics_->refuse(place, op, fmt::format("tensor '{}': {}", t.name, t.problem),
                         remedy.empty() ? "export the model again, with all of its data files" : remedy);
    return t;
  };
  for (const int64_t d : t.dims)
    if (d < 0) return refused(fmt::format("its dims {} are negative", to_string(t.dims)));
  int64_t expected = 0;
  int64_t elements = 1;
  for (const int64_t d : t.dims)
    if (!checked_mul(elements, d, &elements))
      return refused(fmt::format("its dims {} are too large", to_string(t.dims)));
  if (t.onnx_type == kOnnxString) {
    t.problem = "strings are not supported";
    t.strings.assign(proto.string_data().begin(), proto.string_data().end());
    if (static_cast<int64_t>(t.strings.size()) != elements)
      return refused(fmt::format("{} strings for dims {}", t.strings.size(), to_string(t.dims)));
    return t;
  }
  if (t.dtype == DType::kNone) {
    t.problem = fmt::format("its element type {} is not supported", onnx_type_name(t.onnx_type));
    return t;
  }
  if (!plausible_dims(t.dtype, t.dims) || !checked_bytes(t.dtype, t.dims, &expected))
    return refused(fmt::format("its dims {} are too large", to_string(t.dims)));

  std::shared_ptr<const void> owner = owner_;
  std::span<const std::byte> bytes;
  if (proto.data_location() == 1) {
    std::string location;
    uint64_t offset = 0, length = static_cast<uint64_t>(expected);
    for (const auto& entry : proto.external_data()) {
      bool good = true;
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") good = parse_number(entry.value(), &offset);
      if (entry.key() == "length") good = parse_number(entry.value(), &length);
      if (!good)
        return refused(fmt::format("its external {} '{}' is not a number", entry.key(), entry.value()));
    }
    Problem problem;
    const auto file = external(location, &problem);
    if (!file) return refused(problem.what, problem.remedy);
    if (offset > file->bytes.size() || length > file->bytes.size() - offset)
      return refused(
          fmt::format("its external data '{}' has {} bytes, but {} bytes behind the first {} are "
                      "needed",
                      location, file->bytes.size(), length, offset));
    owner = file;
    bytes = file->bytes.subspan(offset, length);
  } else if (proto.has_mapped_length()) {
    bytes = file_.subspan(proto.mapped_offset(), proto.mapped_length());
  } else if (proto.has_raw_data() && !(proto.raw_data().empty() && expected > 0)) {
    auto held = std::make_shared<const std::string>(proto.raw_data());
    bytes = std::as_bytes(std::span(held->data(), held->size()));
    owner = held;
  } else {
    Bytes data;
    const std::string fault = typed_data(proto, t.dtype, &data);
    if (!fault.empty()) return refused(fault);
    auto held = std::make_shared<const Bytes>(std::move(data));
    bytes = *held;
    owner = held;
  }
  if (bytes.size() != static_cast<size_t>(expected))
    return refused(fmt::format("{} bytes of data for {}, which needs {}", bytes.size(),
                               to_string(t.dtype, t.dims), expected));
  if (t.dtype == DType::kBool && !well_formed_bools(bytes)) {
    Bytes clean(bytes.begin(), bytes.end());
    for (std::byte& b : clean) b = static_cast<std::byte>(b != std::byte{0});
    t.data = Constant::owned(t.dtype, t.dims, std::move(clean));
  } else {
    t.data = Constant::mapped(t.dtype, t.dims, std::move(owner), bytes);
  }
  return t;
}

ImportedTensor TensorDecoder::decode(const onnx_pb::SparseTensorProto& proto, const std::string& place,
                                     const std::string& op) {
  constexpr int64_t kMaxDense = int64_t{1} << 30;
  ImportedTensor values = decode(proto.values(), place, op);
  const ImportedTensor indices = decode(proto.indices(), place, op);
  ImportedTensor t;
  t.name = values.name;
  t.onnx_type = values.onnx_type;
  t.dtype = values.dtype;
  t.dims.assign(proto.dims().begin(), proto.dims().end());
  t.problem = !values.problem.empty() ? values.problem : indices.problem;
  if (!t.problem.empty()) return t;
  const auto refused = [&](std::string reason) {
    t.problem = std::move(reason);
    diagnostics_->refuse(place, op, fmt::format("sparse tensor '{}': {}", t.name, t.problem),
                         "store it as a dense tensor");
    return t;
  };
  int64_t bytes = 0;
  if (!plausible_dims(t.dtype, t.dims) || !checked_bytes(t.dtype, t.dims, &bytes) || bytes > kMaxDense ||
      byte_width(t.dtype) == 0)
    return refused(fmt::format("{} cannot be stored dense", to_string(t.dtype, t.dims)));
  const int64_t count = values.data->size();
  const auto rank = static_cast<int64_t>(t.dims.size());
  const bool linear = indices.dims.size() == 1;
  if (indices.dtype != DType::kInt64 || values.dims.size() != 1 || indices.dims.empty() ||
      indices.dims[0] != count || (!linear && (indices.dims.size() != 2 || indices.dims[1] != rank)))
    return refused("its indices do not fit its values");
  const std::vector<int64_t> at = indices.data->as_int64s();
  const LoadedBytes source = values.data->load();
  const size_t width = byte_width(t.dtype);
  const int64_t elements = element_count(t.dims);
  Bytes dense(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = linear ? at[static_cast<size_t>(i)] : 0;
    for (int64_t axis = 0; !linear && axis < rank; ++axis) {
      const int64_t index = at[static_cast<size_t>(i * rank + axis)];
      if (index < 0 || index >= t.dims[static_cast<size_t>(axis)]) return refused("an index is out of range");
      position = position * t.dims[static_cast<size_t>(axis)] + index;
    }
    if (position < 0 || position >= elements) return refused("an index is out of range");
    std::memcpy(dense.data() + static_cast<size_t>(position) * width,
                source.bytes.data() + static_cast<size_t>(i) * width, width);
  }
  t.data = Constant::owned(t.dtype, t.dims, std::move(dense));
  return t;
}

}  // namespace sinter::convert

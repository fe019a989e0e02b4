// Arrays: named tensors in .npz, .npy and ONNX .pb files.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {

// The arrays of a file, in its order. bfloat16 and float8 cannot be told from uint16 and uint8 in these
// files.
using Arrays = std::vector<std::pair<std::string, ConstantPtr>>;

// The array of that name, or of its name in a .npz file (printable()), or null.
ConstantPtr find_array(const Arrays& arrays, const std::string& name);

// The dims of each sample of a stack, of samples of `rank` axes: those behind the first axis, with a 1 before
// them if the stack has no more axes. nullopt: it has another number of axes.
std::optional<Dims> sample_of_stack(const Dims& stack, size_t rank);
// The number of samples in an array as a stack of `sample`: [N, d1, ...] for [1, d1, ...], else [N] and the
// sample's dims. nullopt: it is none.
std::optional<int64_t> stacked_samples(const Dims& array, const Dims& sample);

// .npz (stored or deflated), .npy or .pb (an ONNX TensorProto; a nameless array has the name ""). Throws
// FileError where the file cannot be read, DataError where it is not such a file or holds what Sinter has no
// type for.
Arrays read_arrays(const std::filesystem::path& path);
// The same of a file's bytes: `extension` is ".npy", ".pb" or, anything else, an archive's. `what` names the
// source in errors.
Arrays parse_arrays(std::span<const std::byte> bytes, std::string_view extension, const std::string& what);
// Throws DataError where two arrays of an archive have one name.
void check_names(const std::vector<std::string>& names, const std::string& what);
ConstantPtr read_npy(const std::filesystem::path& path);

// Writes .npz, or .npy for one array if the path ends so. bfloat16 and float8 go out as uint16 and uint8
// bits. Leaves no partial file. Throws FileError.
void write_arrays(const std::filesystem::path& path, const Arrays& arrays);
// UsageError where `path`, as `flag` gives it, has no extension that write_arrays() supports for this number
// of arrays.
void check_arrays_path(const std::string& flag, const std::filesystem::path& path, size_t count);

}  // namespace sinter::convert

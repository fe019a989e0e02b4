// Parts of samples.cc: arrays read piece by piece, and how an array becomes an input.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/import/read/npy.h"
#include "converter/quantize/samples/samples.h"

namespace sinter::convert::detail {

// Bytes in order.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fewer only at the end. Throws DataError for damaged data, FileError where reading fails.
  virtual size_t read(void* to, size_t bytes) = 0;
};
// All bytes or DataError ("... is cut off").
void read_whole(ByteStream& from, void* to, size_t bytes, const std::string& what);
// The header of a .npy array that begins here; `begun` holds bytes that were already taken from the stream.
NpyHeader read_npy_header(ByteStream& from, const std::string& what, Bytes begun = {});

// One array of a file, its first `header` read.
struct OpenArray {
  std::string name;  // "": nameless
  NpyHeader header;
  std::unique_ptr<ByteStream> stream;  // at the data
  std::string what;                    // for messages
  std::string problem = {};            // why it cannot be read; matters only if it is used
};
// The arrays of a .npz, .npy or .pb file. Throws FileError and DataError.
std::vector<OpenArray> open_arrays(const std::filesystem::path& path);

// The conversion of an array of this type to an input: as it is, from bits, or rounded. nullopt: not at all.
enum class Filling { kSame, kBits, kRounded };
std::optional<Filling> filling(DType given, const SampleInput& wanted);
// `bytes` are one sample of type `given`. Throws DataError naming the sample where it holds NaN,
// infinities or ids without a row.
ConstantPtr make_input(const SampleInput& input, DType given, Bytes bytes, int64_t sample);

// Which array is which input, and everything that is wrong with them.
struct Matched {
  std::vector<int> array;  // per input: index into the arrays
  std::vector<Dims> dims;  // per input: of each sample, where inputs have ranges of sizes
  bool single = false;     // the arrays are one sample, not stacks
  int64_t count = 0;
  std::vector<std::string> problems;

  // An input with the dims of these samples.
  SampleInput sized(const std::vector<SampleInput>& inputs, size_t input) const {
    SampleInput result = inputs[input];
    result.dims = dims[input];
    return result;
  }
};
struct ArrayFact {
  std::string name;
  DType dtype = DType::kNone;
  Dims dims;
  std::string problem = {};
};
enum class Layout { kStack, kStackOrSingle, kSingle };
Matched match_arrays(const std::vector<ArrayFact>& arrays, const std::vector<SampleInput>& inputs,
                     Layout layout);

std::unique_ptr<SampleSource> open_command(const std::string& command, std::vector<SampleInput> inputs,
                                           const SampleOptions& options);

}  // namespace sinter::convert::detail

// The whole conversion, in this process: import, lowering, passes, narrow weights at times, planning,
// emission. Either it is refused with a reason, or the file that it gives passes the device's verifier.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "converter/convert.h"
#include "tests/fuzz/targets.h"

namespace sinter::fuzz {

Blob mutate_onnx(View bytes, size_t most, Random& random, const ByteMutator& by_bytes);

namespace {

// A folder in memory, one per process, removed when it ends.
class Folder {
 public:
  Folder() {
    std::error_code error;
    std::filesystem::path base = "/dev/shm";
    if (!std::filesystem::is_directory(base, error)) base = std::filesystem::temp_directory_path();
    path_ = base / ("sinter-fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void run_onnx(View bytes) {
  static const Folder folder;
  ++counts.inputs;
  const std::filesystem::path in = folder.path() / "in.onnx", out = folder.path() / "out.sinter";
  std::ofstream(in, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::error_code error;
  std::filesystem::remove(out, error);
  convert::Diagnostics diagnostics;
  convert::ConversionOptions options;
  // What multiplies stops early here: the same code, and many more inputs a second.
  options.lowering.most_operations = 5'000;
  options.plan_effort = 0.01;
  // How it is converted depends on the bytes, so that a file is always converted alike.
  uint64_t hash = bytes.size();
  for (const uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3u;
  constexpr const char* kTargets[] = {"x86_64+avx2", "aarch64", "armv7", "cortex-m4", "portable"};
  Random r(hash);
  std::string fault;
  options.targets = {*convert::parse_target(r.one_in(2) ? "x86_64" : r.pick(kTargets), &fault)};
  options.narrow_float64 = r.one_in(4);
  if (r.one_in(6)) options.prefer = &convert::kFloat16Half;
  options.stored_weights = !r.one_in(4);
  if (r.one_in(4)) options.quantize = r.one_in(2) ? "int8w" : r.one_in(2) ? "int4w" : "int3w";
  options.round_activations = r.one_in(4);
  const auto report = convert::convert_file(in, out, options, diagnostics);
  const bool written = std::filesystem::exists(out, error);
  if (!report && written) broken("a refused conversion leaves a file");
  if (!report) {
    if (diagnostics.all().empty()) broken("a refusal without a reason");
    return;
  }
  if (!written) broken("a conversion without a file");
  Blob file(std::filesystem::file_size(out));
  std::ifstream(out, std::ios::binary)
      .read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(file.size()));
  const char* why = nullptr;
  if (!accepted(file, &why)) broken("the converter writes a file that the loader refuses:", why);
}

}  // namespace

const Target kOnnxTarget{"onnx", run_onnx, mutate_onnx};

}  // namespace sinter::fuzz

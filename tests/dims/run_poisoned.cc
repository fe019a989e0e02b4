// Runs a .sinter file in memory that is full of one byte, so that what a run reads without having been given
// or computed shows in its results.
//
//   run_poisoned MODEL.sinter BYTE FOLDER NAME DIMS [NAME DIMS ...]
//
// Input NAME has the shape DIMS ("1,37") and the bytes of FOLDER/NAME.in. The padding of inputs is of that
// byte, too. Output NAME is written to FOLDER/NAME.out as a dense tensor of its lengths, and a line
// "NAME 1,37" to stdout. The model runs twice.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "sinter/backends.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "tests/format/model_builder.h"

namespace sinter {
namespace {

using testing::AlignedBytes;

[[noreturn]] void fail(const Status& status, const Model& model) {
  char text[400];
  model.format(status, text);
  std::fprintf(stderr, "%s\n", text);
  std::exit(1);
}
template <class T>
T& checked(Result<T>& result, const Model& model) {
  if (!result.ok()) fail(result.status(), model);
  return result.value();
}
void checked(const Status& status, const Model& model) {
  if (!status.ok()) fail(status, model);
}

struct Input {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
};

void run(Session& session, const Model& model, const std::vector<Input>& inputs, int byte) {
  for (uint32_t i = 0; i < model.input_count(); ++i)
    std::memset(session.input(i).data, byte, static_cast<size_t>(session.input(i).dense_bytes()));
  for (const Input& in : inputs)
    checked(session.write_input(static_cast<uint32_t>(model.find_input(in.name.c_str())),
                                std::as_bytes(std::span(in.bytes)), in.dims),
            model);
  checked(session.run(), model);
}

void write_outputs(const Session& session, const Model& model, const std::string& folder) {
  for (uint32_t i = 0; i < model.output_count(); ++i) {
    const TensorView view = session.output(i);
    size_t size = byte_width(view.dtype);
    std::string dims;
    for (int axis = 0; axis < view.rank; ++axis) {
      const int64_t length = session.output_length(i, axis);
      size *= static_cast<size_t>(length);
      dims += (axis > 0 ? "," : "") + std::to_string(length);
    }
    std::vector<char> bytes(size);
    checked(session.read_output(i, std::as_writable_bytes(std::span(bytes))), model);
    std::ofstream(folder + "/" + model.output(i).name + ".out", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(size));
    std::printf("%s %s\n", model.output(i).name, dims.c_str());
  }
}

int main_of(int argc, char** argv) {
  const std::string folder = argv[3];
  const int byte = std::atoi(argv[2]);
  std::vector<Input> inputs;
  for (int i = 4; i + 1 < argc; i += 2) {
    Input& in = inputs.emplace_back();
    in.name = argv[i];
    std::istringstream dims(argv[i + 1]);
    for (std::string size; std::getline(dims, size, ',');) in.dims.push_back(std::stoll(size));
    std::ifstream file(folder + "/" + in.name + ".in", std::ios::binary);
    in.bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  Model model;
  Result<FileMap> map = FileMap::open(argv[1], FileMap::Mode::kMapped);
  const std::span<const std::byte> file = checked(map, model).bytes();
  const OpenOptions open{.kernels = reference_kernels()};
  Result<size_t> bytes = Model::open_bytes(file, open);
  const AlignedBytes model_memory(checked(bytes, model));
  Result<Model> opened = Model::open(file, model_memory.span(), open);
  model = checked(opened, model);
  const SessionOptions options{.backends = default_backends()};
  Result<Requirements> needs = Session::requirements(model, options);
  const AlignedBytes memory(checked(needs, model).bytes);
  std::memset(memory.data(), byte, memory.size());
  Result<Session> session = Session::create(model, memory.span(), options);
  for (int round = 0; round < 2; ++round) run(checked(session, model), model, inputs, byte);
  write_outputs(session.value(), model, folder);
  return 0;
}

}  // namespace
}  // namespace sinter

int main(int argc, char** argv) {
  if (argc >= 4) return sinter::main_of(argc, argv);
  std::fprintf(stderr, "usage: run_poisoned MODEL.sinter BYTE FOLDER [NAME DIMS ...]\n");
  return 2;
}

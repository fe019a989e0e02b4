// sinter_run_model: runs a model on one thread, where the sinter program does not run.
//
//     sinter_run_model MODEL.sinter RUNS [INPUTS.bin [OUTPUTS.bin]]
//
// INPUTS.bin holds the bytes of all inputs one after another, OUTPUTS.bin gets those of all outputs; without
// inputs every byte is 0x31 (0.16 in float16, 2.6e-9 in float32). Prints which backends compute how many
// steps. Under an emulator that counts instructions, one run costs (count at 2 N runs - count at N) / N.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/device/setup.h"
#include "sinter/file_map.h"

namespace {

using sinter::device::fail;
using sinter::device::must;
using sinter::device::take;

void count_backends(const sinter::Session& session, uint32_t steps) {
  const auto count = [&](const char* name) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < steps; ++i) n += std::strcmp(session.step_backend(i), name) == 0 ? 1 : 0;
    if (n > 0) std::printf("%s %u  ", name, n);
  };
  for (const sinter::Backend* backend : sinter::default_backends()) count(backend->name());
  count("reference");
  std::printf("of %u steps\n", steps);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: sinter_run_model MODEL.sinter RUNS [INPUTS.bin [OUTPUTS.bin]]\n");
    return 2;
  }
  const sinter::FileMap map = must(argv[1], sinter::FileMap::open(argv[1]));
  const sinter::OpenOptions options{.kernels = sinter::reference_kernels()};
  const size_t open_bytes = must("not a model", sinter::Model::open_bytes(map.bytes(), options));
  const sinter::Model model =
      must("the model was refused", sinter::Model::open(map.bytes(), take(open_bytes), options));

  const sinter::SessionOptions session_options{.backends = sinter::default_backends(),
                                               .packed_in_file = sinter::packed_in_file()};
  const sinter::Requirements need =
      must("the session was refused", sinter::Session::requirements(model, session_options));
  sinter::Session session =
      must("the session was refused", sinter::Session::create(model, take(need.bytes), session_options));
  std::printf("arena %zu, prepared %zu, session %zu bytes\n", need.arena, need.prepared, need.bytes);
  count_backends(session, model.step_count());

  for (long run = std::atol(argv[2]); run > 0; --run) {
    std::FILE* in = argc > 3 ? std::fopen(argv[3], "rb") : nullptr;
    for (uint32_t i = 0; i < session.input_count(); ++i) {
      const sinter::TensorView x = session.input(i);
      const auto bytes = static_cast<size_t>(x.dense_bytes());
      if (argc <= 3) {
        std::memset(x.data, 0x31, bytes);
      } else if (in == nullptr || std::fread(x.data, 1, bytes, in) != bytes) {
        std::fprintf(stderr, "%s: too short\n", argv[3]);
        return 5;
      }
    }
    if (in != nullptr) std::fclose(in);
    if (const sinter::Status status = session.run(); !status.ok()) fail("the run failed", status);
  }
  if (argc <= 4) return 0;
  std::FILE* out = std::fopen(argv[4], "wb");
  if (out == nullptr) return 6;
  for (uint32_t i = 0; i < session.output_count(); ++i) {
    const sinter::TensorView y = session.output(i);
    std::fwrite(y.data, 1, static_cast<size_t>(y.dense_bytes()), out);
  }
  return std::fclose(out) == 0 ? 0 : 6;
}

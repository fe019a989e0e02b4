// Runs the embedded model in exactly the memory that its header states, and compares the first output with
// that of the file, which all reference kernels may compute.
//
//     embedded FILE.sinter
#include <cstdio>
#include <cstring>

#include "net.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"

namespace {

alignas(sinter::kBufferAlignment) std::byte exact[NET_MEMORY_BYTES];
alignas(sinter::kBufferAlignment) std::byte ample[1 << 20];

int fail(const char* what, const sinter::Status& status) {
  char text[200];
  sinter::format_status(status, text);
  return std::printf("%s: %s\n", what, text), 1;
}

// Bytes of the first output, or none where something fails.
std::span<const std::byte> run(sinter::Session& session) {
  const sinter::TensorView in = session.input(0);
  for (int64_t i = 0; i < in.size(); ++i) in.as<float>()[i] = static_cast<float>(i % 17);
  if (!session.run().ok()) return {};
  const sinter::TensorView out = session.output(0);
  return {out.data, static_cast<size_t>(out.dense_bytes())};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sinter;
  if (argc != 2) return 2;
  const OpenOptions in_flash{.kernels = net_kernels(), .stable = true};
  auto model = Model::open(std::as_bytes(std::span(net_model)), exact, in_flash);
  if (!model.ok()) return fail("open", model.status());
  auto needs = Session::requirements(*model, {.backend = "reference"});
  if (!needs.ok() || needs->bytes != NET_SESSION_BYTES || model->retained_bytes() != NET_RETAINED_BYTES ||
      Model::open_bytes(std::as_bytes(std::span(net_model)), in_flash).value() != NET_OPEN_BYTES)
    return std::printf("the header states other sizes than the runtime\n"), 1;
  const std::span<std::byte> rest = std::span(exact).subspan(model->retained_bytes());
  auto session = Session::create(*model, rest, {.backend = "reference"});
  if (!session.ok()) return fail("create", session.status());

  auto file = FileMap::open(argv[1]);
  if (!file.ok()) return fail("file", file.status());
  auto whole = Model::open(file->bytes(), ample, {.kernels = reference_kernels()});
  if (!whole.ok()) return fail("open the file", whole.status());
  auto other =
      Session::create(*whole, std::span(ample).subspan(whole->retained_bytes()), {.backend = "reference"});
  if (!other.ok()) return fail("create from the file", other.status());
  const auto here = run(*session), there = run(*other);
  if (here.size() != NET_OUTPUT_0_BYTES || here.size() != there.size() ||
      std::memcmp(here.data(), there.data(), here.size()) != 0)
    return std::printf("the embedded model and the file differ\n"), 1;
  std::printf("the embedded model gives the bits of the file\n");
  return 0;
}

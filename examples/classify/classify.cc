// classify: runs a digits model on one image and prints the class.
//
//     classify MODEL.sinter
//
// Shows what an application needs: the file's bytes (mapped here; flash would do), the fast kernels of the
// build, one static arena from which the model and the session take everything, and no heap of its own. If
// the arena is too small, it reports how many bytes to build with; if a kernel that the plan counts on is
// missing, which and why.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <span>

#include "sinter/backends.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"

namespace {

alignas(sinter::kBufferAlignment) std::byte arena[ARENA_BYTES];

// A two, in sixteenths of black.
constexpr float kImage[64] = {
    0, 2, 15, 16, 12, 0,  0, 0,  //
    0, 8, 11, 8,  16, 0,  0, 0,  //
    0, 3, 1,  7,  13, 0,  0, 0,  //
    0, 0, 0,  10, 8,  0,  0, 0,  //
    0, 0, 0,  15, 5,  0,  0, 0,  //
    0, 0, 7,  15, 0,  0,  0, 0,  //
    0, 0, 14, 11, 6,  5,  2, 0,  //
    0, 1, 16, 16, 16, 16, 9, 0,  //
};

int fail(const char* what, const sinter::Status& status) {
  char text[200];
  sinter::format_status(status, text);
  std::fprintf(stderr, "%s: %s\n", what, text);
  return 1;
}

void report(void* model, const sinter::Fallback& f) {
  char reason[200];
  sinter::format_status(f.reason, reason);
  std::fprintf(stderr, "step %u (%s) runs on %s instead of %s: %s\n", static_cast<unsigned>(f.step),
               static_cast<const sinter::Model*>(model)->step_op(f.step, f.program), f.backend, f.expected,
               reason);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: classify MODEL.sinter\n");
    return 2;
  }
  auto map = sinter::FileMap::open(argv[1]);
  if (!map.ok()) return fail(argv[1], map.status());
  const std::span<const std::byte> file = map->bytes();

  const sinter::OpenOptions options{.kernels = sinter::reference_kernels()};
  auto open_bytes = sinter::Model::open_bytes(file, options);
  if (!open_bytes.ok()) return fail("not a model", open_bytes.status());
  if (*open_bytes > sizeof arena) {
    std::fprintf(stderr, "the arena is too small to open the model: build with ARENA_BYTES=%zu\n",
                 *open_bytes);
    return 3;
  }
  auto model = sinter::Model::open(file, arena, options);
  if (!model.ok()) return fail("the model was refused", model.status());

  const std::span<std::byte> rest = std::span<std::byte>(arena).subspan(model->retained_bytes());
  sinter::SessionOptions session_options{.backends = sinter::default_backends()};
  auto need = sinter::Session::requirements(*model, session_options);
  if (!need.ok()) return fail("the session was refused", need.status());
  if (need->bytes > rest.size()) {
    std::fprintf(stderr, "the arena is too small: build with ARENA_BYTES=%zu\n",
                 model->retained_bytes() + need->bytes);
    return 3;
  }
  session_options.on_fallback = {&*model, report};
  auto session = sinter::Session::create(*model, rest, session_options);
  if (!session.ok()) return fail("the session was refused", session.status());

  const sinter::TensorView image = session->input("image");
  const sinter::TensorView probabilities = session->output("probabilities");
  if (image.dtype != sinter::DType::kFloat32 || image.size() != 64 ||
      probabilities.dtype != sinter::DType::kFloat32 || probabilities.size() != 10) {
    std::fprintf(stderr,
                 "not a digits model: the input must be image[1,1,8,8], the output probabilities[1,10]\n");
    return 1;
  }
  std::copy_n(kImage, 64, image.as<float>());
  if (const sinter::Status status = session->run(); !status.ok()) return fail("the run failed", status);
  const float* p = probabilities.as<float>();
  const auto best = std::max_element(p, p + 10) - p;
  std::printf("class %d, probability %.4f, arena %zu of %zu bytes, %u steps fall back\n",
              static_cast<int>(best), p[best], model->retained_bytes() + need->bytes, sizeof arena,
              static_cast<unsigned>(session->fallbacks()));
  return 0;
}

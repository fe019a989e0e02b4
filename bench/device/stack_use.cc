// sinter_stack_use: how much stack opening a model, creating a session and a run take.
//
//     sinter_stack_use MODEL.sinter [BACKEND]
//
// On one thread, with the planned backends or BACKEND. A step that fails ends the program.
#include <cstdio>
#include <optional>

#include "bench/device/painted_stack.h"
#include "bench/device/setup.h"
#include "sinter/file_map.h"

using sinter::device::fail;
using sinter::device::must;
using sinter::device::take;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: sinter_stack_use MODEL.sinter [BACKEND]\n");
    return 2;
  }
  const sinter::FileMap map = must(argv[1], sinter::FileMap::open(argv[1]));
  const sinter::OpenOptions open{.kernels = sinter::reference_kernels()};
  sinter::device::PaintedStack stack;

  const std::span<std::byte> memory = take(must(argv[1], sinter::Model::open_bytes(map.bytes(), open)));
  sinter::Model model;
  sinter::Status status;
  const size_t opening = stack.used([&] {
    auto opened = sinter::Model::open(map.bytes(), memory, open);
    if (opened.ok())
      model = *opened;
    else
      status = opened.status();
  });
  if (!status.ok()) fail("the model was refused", status);

  sinter::SessionOptions options{.backends = sinter::default_backends()};
  if (argc > 2) options.backend = argv[2];
  size_t bytes = 0;
  const size_t measuring = stack.used([&] {
    auto needs = sinter::Session::requirements(model, options);
    if (needs.ok())
      bytes = needs->bytes;
    else
      status = needs.status();
  });
  if (!status.ok()) fail("the session was refused", status);

  const std::span<std::byte> own = take(bytes);
  std::optional<sinter::Session> session;
  const size_t creating = stack.used([&] {
    session.reset();
    auto created = sinter::Session::create(model, own, options);
    if (created.ok())
      session.emplace(std::move(*created));
    else
      status = created.status();
  });
  if (!status.ok()) fail("the session was refused", status);
  const size_t running = stack.used([&] { status = session->run(); });
  if (!status.ok()) fail("the run failed", status);
  std::printf("open %zu, requirements %zu, create %zu, run %zu bytes of stack\n", opening, measuring,
              creating, running);
  return 0;
}

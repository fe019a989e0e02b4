// A library that exports one function and uses all of Sinter: every backend, threads.
#include "sinter/backends.h"
#include "sinter/sinter.h"
#include "sinter/thread_pool.h"

extern "C" __attribute__((visibility("default"))) int exported(const std::byte* file, size_t size,
                                                               std::byte* memory, size_t bytes) {
  auto model = sinter::Model::open({file, size}, {memory, bytes}, {.kernels = sinter::reference_kernels()});
  if (!model.ok()) return 1;
  sinter::PthreadPool pool(2);
  const sinter::SessionOptions options{.backends = sinter::default_backends(), .threads = &pool};
  auto session =
      sinter::Session::create(*model, std::span(memory, bytes).subspan(model->retained_bytes()), options);
  return session.ok() && session->run().ok() ? 0 : 1;
}

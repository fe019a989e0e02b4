// How much of the stack a function takes: it runs on a thread of its own, whose stack is painted beforehand.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace sinter::device {

class PaintedStack {
 public:
  PaintedStack() : stack_(static_cast<unsigned char*>(std::aligned_alloc(kPage, kBytes))) {
    if (stack_ == nullptr) std::abort();
    empty_ = touched([] {});
  }
  PaintedStack(const PaintedStack&) = delete;
  PaintedStack& operator=(const PaintedStack&) = delete;
  ~PaintedStack() { std::free(stack_); }

  // Bytes from the call of `f` down to the deepest byte that it changes. `f` runs twice: the dynamic linker
  // resolves functions on the stack of their first call.
  template <class F>
  size_t used(F f) {
    (void)touched(f);
    return touched(f) - empty_;
  }

 private:
  static constexpr size_t kPage = 4096, kBytes = size_t{1} << 20;
  static constexpr unsigned char kPaint = 0xa7;

  template <class F>
  size_t touched(F f) {
    std::memset(stack_, kPaint, kBytes);
    pthread_attr_t attributes;
    pthread_t thread;
    const auto call = [](void* function) -> void* {
      (*static_cast<F*>(function))();
      return nullptr;
    };
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstack(&attributes, stack_, kBytes) != 0 ||
        pthread_create(&thread, &attributes, call, &f) != 0 || pthread_join(thread, nullptr) != 0)
      std::abort();
    pthread_attr_destroy(&attributes);
    size_t clean = 0;
    while (clean < kBytes && stack_[clean] == kPaint) ++clean;
    return kBytes - clean;
  }

  unsigned char* stack_;
  size_t empty_ = 0;  // what a thread takes that does nothing
};

}  // namespace sinter::device

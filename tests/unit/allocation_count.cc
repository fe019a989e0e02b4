// malloc and its kin are interposed through glibc's own names; operator new calls malloc. Under a sanitizer,
// which has interposed them already, operator new is all that is counted.
#include "tests/unit/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> count{0};
}

int64_t sinter::testing::allocation_count() { return count.load(); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

void* operator new(size_t size) {
  ++count;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
// std::stable_sort's.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

#else

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++count;
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  ++count;
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  ++count;
  return __libc_realloc(p, size);
}
void* memalign(size_t alignment, size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  ++count;
  *out = __libc_memalign(alignment, size);
  return *out != nullptr || size == 0 ? 0 : 12;
}
}

#endif

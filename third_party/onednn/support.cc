#include "third_party/onednn/support.h"

#include <stdlib.h>

#include <cstdint>
#include <new>

#include "oneapi/dnnl/dnnl_threadpool.h"
#include "oneapi/dnnl/dnnl_threadpool_iface.hpp"

namespace {

// ---- memory of a run

// Blocks are freed in any order; their bytes are used again once the last one is free.
struct Region {
  char* base;
  size_t size, used, blocks;
};
thread_local Region region;

// Before each block: the bytes in use before it was taken, and behind it.
struct Header {
  size_t before, after;
};

void* take(size_t bytes, size_t alignment) {
  if (region.base == nullptr) return nullptr;
  const size_t least = alignment > alignof(Header) ? alignment : alignof(Header);
  const uintptr_t base = reinterpret_cast<uintptr_t>(region.base);
  const uintptr_t from = base + region.used + sizeof(Header);
  const size_t start = static_cast<size_t>((from + least - 1) / least * least - base);
  if (start > region.size || bytes > region.size - start) return nullptr;
  auto* header = reinterpret_cast<Header*>(region.base + start) - 1;
  *header = {region.used, (start + bytes + alignof(Header) - 1) / alignof(Header) * alignof(Header)};
  region.used = header->after;
  ++region.blocks;
  return region.base + start;
}

// Whether the block was the region's.
bool give_back(void* block) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(block), base = reinterpret_cast<uintptr_t>(region.base);
  if (region.base == nullptr || at < base || at - base >= region.size) return false;
  const Header* header = static_cast<Header*>(block) - 1;
  if (header->after == region.used) region.used = header->before;
  if (--region.blocks == 0) region.used = 0;
  return true;
}

// ---- threads

thread_local bool in_task = false;

struct Adapter final : dnnl::threadpool_interop::threadpool_iface {
  explicit Adapter(const sinter_onednn_threads* t) : threads(t) {}
  int get_num_threads() const override { return threads->parts; }
  bool get_in_parallel() const override { return in_task; }
  uint64_t get_flags() const override { return 0; }
  void parallel_for(int n, const std::function<void(int, int)>& fn) override {
    struct Closure {
      const std::function<void(int, int)>& fn;
      int count;
    } closure{fn, n};
    threads->run(
        threads->context, n,
        [](void* at, int index) {
          const auto& c = *static_cast<const Closure*>(at);
          const bool before = in_task;
          in_task = true;
          c.fn(index, c.count);
          in_task = before;
        },
        &closure);
  }
  const sinter_onednn_threads* threads;
};
static_assert(sizeof(Adapter) <= sizeof(sinter_onednn_threads::adapter));

}  // namespace

extern "C" {

void sinter_onednn_enter(void* memory, size_t bytes) { region = {static_cast<char*>(memory), bytes, 0, 0}; }

size_t sinter_onednn_leave() {
  const size_t blocks = region.blocks;
  region = {};
  return blocks;
}

dnnl_status_t sinter_onednn_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine,
                                          sinter_onednn_threads* threads) {
  return dnnl_threadpool_interop_stream_create(stream, engine, new (threads->adapter) Adapter(threads));
}

// What the library's own references to these functions are renamed to.
void* sinter_onednn_malloc(size_t bytes) {
  void* block = take(bytes, alignof(max_align_t));
  return block != nullptr ? block : malloc(bytes);
}
int sinter_onednn_posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = take(bytes, alignment);
  return *block != nullptr ? 0 : posix_memalign(block, alignment, bytes);
}
void sinter_onednn_free(void* block) {
  if (!give_back(block)) free(block);
}
void* sinter_onednn_new(size_t bytes) {
  void* block = take(bytes, alignof(max_align_t));
  return block != nullptr ? block : ::operator new(bytes);
}
void* sinter_onednn_new_array(size_t bytes) {
  void* block = take(bytes, alignof(max_align_t));
  return block != nullptr ? block : ::operator new[](bytes);
}
void sinter_onednn_delete(void* block) {
  if (!give_back(block)) ::operator delete(block);
}
void sinter_onednn_delete_sized(void* block, size_t) { sinter_onednn_delete(block); }
void sinter_onednn_delete_array(void* block) {
  if (!give_back(block)) ::operator delete[](block);
}
void sinter_onednn_delete_array_sized(void* block, size_t) { sinter_onednn_delete_array(block); }

// The library takes nothing from the environment.
char* sinter_onednn_getenv(const char*) { return nullptr; }
}

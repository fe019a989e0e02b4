#include "platforms/xnnpack/memory.h"

#include <pthread.h>

#include "runtime/core/tensor_view.h"

namespace sinter::xnnpack {
namespace {

constexpr size_t kScratch = size_t{64} << 10;
alignas(kBufferAlignment) std::byte scratch[kScratch];
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // held by a Creation
Creation* current = nullptr;
pthread_t owner;

// A thread that runs an operator meanwhile must not be served.
Creation* creation() {
  return __atomic_load_n(&current, __ATOMIC_ACQUIRE) != nullptr && pthread_equal(owner, pthread_self())
             ? current
             : nullptr;
}

void* allocate(void*, size_t bytes) {
  Creation* c = creation();
  return c != nullptr ? c->allocate(bytes, false) : nullptr;
}
void* reallocate(void*, void* at, size_t bytes) {
  Creation* c = creation();
  return c != nullptr && at == nullptr ? c->allocate(bytes, true) : nullptr;
}
void* aligned_allocate(void*, size_t alignment, size_t bytes) {
  return alignment <= kBufferAlignment ? allocate(nullptr, bytes) : nullptr;
}
void release(void*, void*) {}

constexpr xnn_allocator kAllocator = {nullptr, allocate, reallocate, release, aligned_allocate, release};

size_t look_up(void* context, const xnn_weights_cache_look_up_key*) {
  return static_cast<Creation*>(context)->claims_packed() ? 0 : SIZE_MAX;
}
void* reserve_space(void* context, size_t bytes) { return static_cast<Creation*>(context)->reserve(bytes); }
size_t look_up_or_insert(void* context, const xnn_weights_cache_look_up_key*, void* at, size_t bytes) {
  static_cast<Creation*>(context)->insert(at, bytes);
  return 0;
}
bool is_finalized(void*) { return true; }
void* offset_to_addr(void*, size_t) { return scratch; }
xnn_status delete_cache(void*) { return xnn_status_success; }

}  // namespace

Status initialize() {
  SINTER_CHECK(xnn_initialize(&kAllocator) == xnn_status_success,
               unsupported("XNNPACK does not support this processor"));
  return ok_status();
}

const void* Creation::any_bytes() { return scratch; }

Creation::Creation(BumpArena* arena) : arena_(arena) {
  cache_ = {this, look_up, reserve_space, look_up_or_insert, is_finalized, offset_to_addr, delete_cache};
  pthread_mutex_lock(&mutex);
  owner = pthread_self();
  __atomic_store_n(&current, this, __ATOMIC_RELEASE);
}

Creation::~Creation() {
  __atomic_store_n(&current, static_cast<Creation*>(nullptr), __ATOMIC_RELEASE);
  pthread_mutex_unlock(&mutex);
}

void Creation::restart() {
  used_ = bytes_ = last_ = 0;
  refused_ = refused_weights_ = packed_ = false;
}

xnn_weights_cache_t Creation::cache(bool packed) {
  packed_ = packed;
  return arena_ != nullptr ? nullptr : &cache_;
}

void* Creation::allocate(size_t bytes, bool grows) {
  if (arena_ != nullptr) return arena_->allocate(align_up(bytes, kBufferAlignment), kBufferAlignment);
  const size_t size = align_up(bytes, kBufferAlignment);
  last_ = size;
  bytes_ += size;
  if (grows || size > kScratch - used_) return refused_ = true, nullptr;
  used_ += size;
  return scratch + used_ - size;
}

void* Creation::reserve(size_t bytes) {
  void* at = allocate(bytes, false);
  if (at == nullptr) refused_weights_ = true;
  return at;
}

// Weights that were reserved have been counted.
void Creation::insert(void* at, size_t bytes) {
  if (at == nullptr) bytes_ += align_up(bytes, kBufferAlignment);
}

}  // namespace sinter::xnnpack

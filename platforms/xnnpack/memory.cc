#include "platforms/xnnpack/memory.h"

#include <pthread.h>

#include <cstring>

#include "runtime/core/tensor_view.h"

namespace sinter::xnnpack {
namespace {

constexpr size_t kScratch = size_t{64} << 10;
alignas(kBufferAlignment) std::byte scratch[kScratch];
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // held by a Creation
Creation* current = nullptr;
pthread_t owner;

// A thread that runs an operator during a creation must not be served.
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

// There is one cache for all operators: it serves the creation in progress as well.
size_t look_up(void*, const xnn_weights_cache_look_up_key*) {
  Creation* c = creation();
  return c != nullptr && c->find() ? 0 : SIZE_MAX;
}
void* reserve_space(void*, size_t bytes) {
  Creation* c = creation();
  return c != nullptr ? c->reserve(bytes) : nullptr;
}
size_t look_up_or_insert(void*, const xnn_weights_cache_look_up_key*, void* at, size_t bytes) {
  if (Creation* c = creation(); c != nullptr) c->insert(at, bytes);
  return 0;
}
bool is_finalized(void*) { return true; }
void* offset_to_addr(void*, size_t) {
  const Creation* c = creation();
  return c != nullptr ? c->weights_address() : nullptr;
}
xnn_status delete_cache(void*) { return xnn_status_success; }

xnn_weights_cache_provider cache_of_weights = {nullptr,      look_up,        reserve_space, look_up_or_insert,
                                               is_finalized, offset_to_addr, delete_cache};

}  // namespace

Status initialize() {
  SINTER_RETURN_UNLESS(xnn_initialize(&kAllocator) == xnn_status_success,
                       unsupported("XNNPACK does not support this processor"));
  return ok_status();
}

const void* Creation::any_bytes() {
  const Creation* c = creation();
  return c != nullptr && c->mode_ == Mode::kPrepare ? c->scratch_.data() : scratch;
}

Creation::Creation(Mode mode, BumpArena* arena, std::span<const std::byte> packed,
                   std::span<std::byte> memory)
    : mode_(mode), arena_(arena), packed_(packed), scratch_(memory) {
  pthread_mutex_lock(&mutex);
  owner = pthread_self();
  __atomic_store_n(&current, this, __ATOMIC_RELEASE);
}

Creation::Creation() : Creation(Mode::kMeasure, nullptr, {}, {}) {}
Creation::Creation(std::span<std::byte> packed) : Creation(Mode::kPack, nullptr, packed, packed) {}
Creation::Creation(BumpArena* arena, std::span<const std::byte> packed, std::span<std::byte> memory)
    : Creation(Mode::kPrepare, arena, packed, memory) {}

Creation::~Creation() {
  __atomic_store_n(&current, static_cast<Creation*>(nullptr), __ATOMIC_RELEASE);
  pthread_mutex_unlock(&mutex);
}

void Creation::restart() {
  used_ = bytes_ = last_ = 0;
  refused_ = refused_weights_ = claims_ = false;
}

xnn_weights_cache_t Creation::cache(bool claims) {
  claims_ = claims;
  return &cache_of_weights;
}

void* Creation::allocate(size_t bytes, bool grows) {
  const size_t size = align_up(bytes, kBufferAlignment);
  if (mode_ == Mode::kPrepare) return arena_->allocate(size, kBufferAlignment);
  last_ = size;
  bytes_ += size;
  if (grows || size > kScratch - used_) return refused_ = true, nullptr;
  used_ += size;
  return scratch + used_ - size;
}

void Creation::note_weights(size_t bytes) {
  if (weights_ != 0) return;
  weights_ = align_up(bytes, kBufferAlignment);
  always_packs_ = !searched_;
}

// Operators that do not search pack in any case.
bool Creation::find() {
  searched_ = true;
  return mode_ == Mode::kPrepare || (mode_ == Mode::kMeasure && claims_);
}

void* Creation::reserve(size_t bytes) {
  if (mode_ != Mode::kMeasure) return bytes <= scratch_.size() ? scratch_.data() : nullptr;
  note_weights(bytes);
  void* at = allocate(bytes, false);
  if (at == nullptr) refused_weights_ = true;
  return at;
}

// Reserved weights are counted already. The library rounds sizes up to 16 bytes on ARM, to 64 elsewhere.
void Creation::insert(void* at, size_t bytes) {
  if (mode_ == Mode::kPack) {
    done_ = at == scratch_.data() && align_up(bytes, kBufferAlignment) == scratch_.size();
    if (done_) std::memset(scratch_.data() + bytes, 0, scratch_.size() - bytes);
  }
  if (mode_ != Mode::kMeasure || at != nullptr) return;
  note_weights(bytes);
  bytes_ += align_up(bytes, kBufferAlignment);
}

void* Creation::weights_address() const {
  return mode_ == Mode::kMeasure ? scratch : const_cast<std::byte*>(packed_.data());
}

}  // namespace sinter::xnnpack

// The handles of the C API, and functions that all of its files use.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "application/entry_sessions.h"
#include "application/input_marks.h"
#include "application/memory.h"
#include "application/step_clock.h"
#include "application/worker.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "sinter/sinter_c.h"
#include "sinter/thread_pool.h"

struct sinter_model {
  sinter::Model model;
  sinter::FileMap map;
  size_t bytes = 0;
  bool on_heap = false;
};

struct sinter_pool {
  sinter_pool(int threads, const sinter::ThreadSettings& settings) : pool(threads, settings) {}
  sinter::PthreadPool pool;
};

struct sinter_arena {
  explicit sinter_arena(std::span<std::byte> memory) : arena(memory) {}
  sinter::SharedArena arena;
  bool on_heap = false;
};

struct sinter_packed_weights {
  sinter::PackedWeights packed;
  bool on_heap = false;
};

namespace sinter::c {

static_assert(SINTER_MAX_RANK == kMaxRank && SINTER_ALIGNMENT == kBufferAlignment &&
              SINTER_READ_PADDING == kReadPadding && SINTER_MAX_DEVICES == kMaxDevices &&
              sizeof(sinter_arena) <= SINTER_ARENA_HANDLE);
static_assert(SINTER_BOOL == static_cast<int>(DType::kBool) &&
              SINTER_INTERNAL == static_cast<int>(Code::kInternal) &&
              SINTER_CANCELLED == static_cast<int>(Code::kCancelled));

inline const Status kNull = invalid("a required argument is NULL");

// A pool of the application's threads.
class OwnPool final : public ThreadPool {
 public:
  void set(const sinter_own_pool& own) { own_ = own; }
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    own_.parallel_for(own_.context, task, context, count, grain);
  }
  int thread_count() const override { return own_.threads; }

 private:
  sinter_own_pool own_ = {};
};

inline sinter_code result(const Status& status, sinter_error* error, const Model& model = {}) {
  if (error != nullptr) {
    error->code = static_cast<int32_t>(status.code);
    error->text[0] = '\0';
    if (!status.ok()) model.format(status, error->text);
  }
  return static_cast<sinter_code>(status.code);
}

constexpr size_t kMaxStructure = 4096;  // no version's structure is larger

// Returns the caller's options, with the defaults for options that its header did not have.
template <class Options>
Status complete(const Options* given, Options* options) {
  *options = {};
  if (given == nullptr) return ok_status();
  SINTER_RETURN_UNLESS(given->size >= sizeof(size_t) && given->size <= kMaxStructure,
                       invalid("the options' size is %a; initialise them by the macro SINTER_..._INIT",
                               static_cast<int64_t>(given->size)));
  std::memcpy(options, given, std::min(given->size, sizeof(Options)));
  return ok_status();
}

constexpr size_t handle_bytes(size_t size) { return align_up(size, kBufferAlignment); }
constexpr size_t kModelHandle = handle_bytes(sizeof(sinter_model));

// Takes a block for a handle and its memory: the caller's or one from the heap.
inline Status take_block(void* given, size_t given_bytes, size_t bytes, std::byte** block) {
  if (given != nullptr) {
    SINTER_RETURN_UNLESS(given_bytes >= bytes,
                         error(Code::kOutOfMemory, "%a bytes of memory are needed but %b were given",
                               static_cast<int64_t>(bytes), static_cast<int64_t>(given_bytes)));
    SINTER_RETURN_UNLESS(reinterpret_cast<uintptr_t>(given) % kBufferAlignment == 0,
                         invalid("the memory must be aligned to %a bytes", kBufferAlignment));
    *block = static_cast<std::byte*>(given);
    return ok_status();
  }
  *block = allocate_aligned(bytes);
  SINTER_RETURN_UNLESS(*block != nullptr, error(Code::kOutOfMemory, "%a bytes of memory cannot be allocated",
                                                static_cast<int64_t>(bytes)));
  return ok_status();
}

template <class Handle>
void destroy(Handle* handle) {
  if (handle == nullptr) return;
  const bool on_heap = handle->on_heap;
  handle->~Handle();
  if (on_heap) free_aligned(handle);
}

inline void describe(const PortInfo& port, void* data, sinter_tensor* tensor) {
  *tensor = {};
  tensor->name = port.name;
  tensor->type = static_cast<int32_t>(port.dtype);
  tensor->rank = static_cast<int32_t>(port.dims.size());
  std::copy(port.dims.begin(), port.dims.end(), tensor->dims);
  TensorView view;
  view.dtype = port.dtype;
  view.set_shape(port.dims);
  tensor->bytes = static_cast<size_t>(view.dense_bytes());
  tensor->data = data;
}

inline void describe(const StateInfo& state, void* data, sinter_tensor* tensor) {
  describe(PortInfo{state.input, state.dtype, state.dims}, data, tensor);
}

}  // namespace sinter::c

struct sinter_session {
  sinter::EntrySessions sessions;
  sinter::Model model;
  sinter::c::OwnPool own_pool;
  sinter_observer observer = {};
  bool observes = false;
  sinter::StepObserver step_observer;
  mutable sinter::InputMarks marks;  // in the block, behind the handle
  sinter::StepClock clock;
  void* clock_memory = nullptr;  // from the heap
  bool on_heap = false;

  // A run that sinter_start() has begun.
  sinter::Worker worker;
  std::atomic<bool> cancel{false};  // the sessions read it
  sinter_done done = nullptr;
  void* done_context = nullptr;
  sinter_error finished = {};  // its result

  ~sinter_session() {
    cancel.store(true, std::memory_order_relaxed);
    worker.close();
    sinter::free_aligned(clock_memory);
  }
  // Returns the session of the shape set in use, when no started run uses it.
  sinter::Session& session() const {
    worker.wait();
    return sessions.current();
  }
  uint32_t entry() const {
    worker.wait();
    return sessions.entry();
  }
  // Gives the sessions what lives in the handle.
  void attach();
  sinter::Status run();
};

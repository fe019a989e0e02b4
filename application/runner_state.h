// The state of a Runner: the model, which Runners share, the sessions of its shape sets, and its error.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "application/entry_sessions.h"
#include "application/input_marks.h"
#include "application/memory.h"
#include "application/step_clock.h"
#include "application/text.h"
#include "application/worker.h"
#include "sinter/file_map.h"
#include "sinter/runner.h"
#include "sinter/sinter.h"

namespace sinter {
namespace detail {

// Memory aligned to kBufferAlignment.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { free_aligned(data_); }
  Status allocate(size_t bytes) {
    data_ = allocate_aligned(bytes);
    bytes_ = data_ != nullptr ? bytes : 0;
    SINTER_RETURN_UNLESS(data_ != nullptr, error(Code::kOutOfMemory, "%a bytes of memory cannot be allocated",
                                                 static_cast<int64_t>(bytes)));
    return ok_status();
  }
  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// A model with packed weights, which Runners of one model share.
struct SharedModel {
  std::atomic<int> owners{1};
  FileMap map;
  Memory memory, packed_memory;
  Model model;
  PackedWeights packed;

  // Opens a file in memory; the other function maps a file and opens it.
  Status open(std::span<const std::byte> file, const RunnerOptions& options);
  Status open(const char* path, const RunnerOptions& options);
  Status pack(const SessionOptions& options);

  void release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

// The options that sessions and packed weights have in common. `pool`, a pool of its own if the caller has
// not given one and wants several threads, outlives all objects that are created with the result.
Status session_options(const RunnerOptions& options, std::unique_ptr<PthreadPool>* pool,
                       SessionOptions* result);

inline const Model kNoModel;
inline constexpr Status kNoMemory = error(Code::kOutOfMemory, "memory for the Runner cannot be allocated");

}  // namespace detail

struct Runner::State {
  static constexpr size_t kErrorText = 512;

  detail::SharedModel* shared = nullptr;
  std::unique_ptr<PthreadPool> own_pool;
  detail::Memory memory;  // for the sessions
  detail::Memory moving;  // for inputs that move along to another shape set
  EntrySessions sessions;
  Session none;
  std::unique_ptr<uint8_t[]> mark_memory;
  InputMarks marks;
  std::unique_ptr<detail::Memory> clock_memory;
  StepClock clock;
  StepObserver observer;
  Code code = Code::kOk;
  char text[kErrorText] = "";

  // A run that start() has begun.
  Worker worker;
  std::atomic<bool> cancel{false};  // the sessions read it
  void (*done)(void* context, Runner& runner) = nullptr;
  void* done_context = nullptr;

  ~State() {
    cancel.store(true, std::memory_order_relaxed);
    worker.close();
    sessions.destroy();
    own_pool.reset();
    if (shared != nullptr) shared->release();
  }
  bool opened() const { return sessions.count() > 0; }
  uint32_t entry() const { return sessions.entry(); }
  Session& session() const { return sessions.current(); }
  const Model& model() const { return shared != nullptr ? shared->model : detail::kNoModel; }
  bool fail(const Status& status, const char* path = nullptr) {
    code = status.code;
    Text out{text};
    if (path != nullptr) out.put("%s: ", path);
    model().format(status, out.rest());
    return false;
  }
  // Fails with "the model does not have an input 'imag'; its inputs are 'image', 'mask'".
  void fail_name(const char* kind, const char* name, bool input);
  // Fails with "input 'image' is float32[1,28,28], 784 elements, but 100 were given or asked for".
  void fail_values(const char* kind, const char* name, const TensorView& view, std::span<const int64_t> dims,
                   size_t width, size_t given, size_t has, bool typed);
  // "no shape set of the file has input 'x' as [2,3]; it has 'x' [1,3], 'y' [1]; 'x' [4,3], 'y' [4]".
  void fail_shape(const char* name, std::span<const int64_t> dims);
  // Returns whether another entry has these dims for input i, and the current entry's for other given inputs.
  bool fits(uint32_t other, uint32_t i, std::span<const int64_t> dims) const;
  // Returns the shape of input i of the current entry in the next run; `room` has kMaxRank numbers.
  std::span<const int64_t> shape_of(uint32_t i, int64_t* room) const;
  void switch_to(uint32_t other, uint32_t replaced);
  // Runs the session, unless an input was forgotten.
  bool run();
  Status start(void (*call)(void* context, Runner& runner), void* context);
  Status time_steps(bool on);
  // Takes threads and memory. With `packs`, packs the model's weights for all its Runners as well.
  Status create(const RunnerOptions& options, bool packs);
};

}  // namespace sinter

// Session: one caller's use of a model. All memory is handed in; after create() nothing is allocated.
//
//   sinter::SessionOptions options{.backends = backends, .threads = pool};
//   auto need = sinter::Session::requirements(model, options);     // need->bytes, exactly
//   auto session = sinter::Session::create(model, memory, options);
//   memcpy(session->input(0).data, x, ...); session->run(); use(session->output(0));
//
// Where outputs of one run are inputs of the next: an input may share memory with any output. So first copy
// all of these outputs out of the session, then write the first input:
//
//   for (i...) memcpy(kept[i], session->output(from[i]).data, bytes[i]);  // every one of them
//   for (i...) memcpy(session->input(to[i]).data, kept[i], bytes[i]);
//
// Copying output by output onto its input may overwrite an output that is still to be copied. Inputs and
// outputs that are bound to buffers of their own can be copied in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "runtime/backend/backend.h"
#include "sinter/model.h"

namespace sinter {

class PackedWeights;

namespace detail {
struct SessionState;
}

// Puts an input or output into the caller's memory: aligned to kBufferAlignment, with kReadPadding readable
// bytes after the tensor's, which may be anybody's. The tensor's own bytes belong to this binding alone:
// kInvalidArgument where they overlap those of another binding, the session's memory, the model's or its
// file. kUnsupported where the plan lets other values share that memory.
struct Binding {
  const char* name = nullptr;
  std::span<std::byte> buffer;
};

// A step that another backend computes than expected: than the first that the plan names for it or, with
// SessionOptions::backend, than that one. Neither elided steps nor If and Loop themselves are fallbacks;
// a step of a body is one fallback, however often it runs.
struct Fallback {
  uint32_t program = 0;
  uint32_t step = 0;
  const char* expected = "";  // the backend that was to compute it
  const char* backend = "";   // the one that does
  Status reason;              // why `expected` does not
};

// Called for each fallback when a session is measured and again when it is created.
struct FallbackObserver {
  void* context = nullptr;
  void (*report)(void* context, const Fallback& fallback) = nullptr;
};

// A block of a device's memory, as its backend addresses it: aligned to kBufferAlignment. The caller has it
// from Backend::memory() and keeps it.
struct DeviceBlock {
  const char* backend = nullptr;  // its name
  std::span<std::byte> block;
};

struct SessionOptions {
  // What this application links, besides the model's kernels. The profile assigns one to each step; those
  // that are missing are passed over. A backend serves one session at a time unless its documentation allows
  // more.
  std::span<Backend* const> backends = {};
  ThreadPool* threads = nullptr;
  const char* profile = nullptr;  // by name; null: Model::default_profile()
  // Use only this backend and, for what it refuses, the model's kernels ("reference": only these). What the
  // plan puts into the memory of another backend is then in host memory. Null: as planned.
  const char* backend = nullptr;
  uint32_t entry = 0;  // which of the model's shape sets
  std::span<const Binding> bindings = {};
  // Memory for the session on devices. What is missing here the session takes from the backends (one block
  // each, when it is created) and returns in destroy().
  std::span<const DeviceBlock> devices = {};
  // Refuse (kUnsupported, with the first such step and the reason) a session that has fallbacks.
  bool require_planned = false;
  // Of the same model; its bytes must live as long as the session. Null: the session packs its own.
  const PackedWeights* packed_weights = nullptr;
  FallbackObserver on_fallback = {};
};

inline constexpr size_t kMaxDevices = 15;  // of a profile

// Bytes of one block of a backend's own memory.
struct DeviceRequirements {
  const char* backend = "";  // its name
  size_t bytes = 0;          // all of the following
  size_t arena = 0;          // the regions that the converter planned there
  size_t prepared = 0;       // packed weights, what the backend keeps there
};

// Bytes of one block of host memory, aligned to kBufferAlignment, that a session needs; and what it needs in
// the memory of backends that have their own.
struct Requirements {
  size_t bytes = 0;     // all of the following
  size_t control = 0;   // step lists, operands, names of buffers
  size_t arena = 0;     // the entry's regions that the converter planned here: values, state, workspaces
  size_t prepared = 0;  // packed and widened weights, what backends keep, scratch to make them with
  size_t packed = 0;  // of `prepared`: weights that this session packs, each once for all steps that read it
  uint32_t device_count = 0;
  DeviceRequirements devices[kMaxDevices];

  std::span<const DeviceRequirements> on_devices() const { return {devices, device_count}; }
};

// A step as passed to an observer.
struct StepInfo {
  uint32_t program = 0;
  uint32_t step = 0;
  const char* backend = "";  // that computes it
  bool in_body = false;      // of a branch or a loop, not of the entry program
};

// Called around every step that runs, also those of branches and loop bodies. `after` may read the operands
// that are host memory (TensorView::memory 0); the device has done the step by then.
struct StepObserver {
  void* context = nullptr;
  void (*before)(void* context, const StepInfo& info) = nullptr;
  void (*after)(void* context, const StepInfo& info, const OpCall& call) = nullptr;
};

class Session {
 public:
  Session() = default;
  Session(Session&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  Session& operator=(Session&& other) noexcept;
  ~Session() { destroy(); }

  // What create() needs with the same options on this machine: nothing is estimated.
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options);
  // Chooses a kernel for every step, packs weights, sets state to its initial values. `memory` has at least
  // the required bytes, the first of which belong to the session until destroy(). Fails if a backend whose
  // memory the plan uses is not here, or has too little of it.
  static Result<Session> create(const Model& model, std::span<std::byte> memory,
                                const SessionOptions& options);
  void destroy();

  bool valid() const { return state_ != nullptr; }
  uint32_t input_count() const;
  uint32_t output_count() const;
  // Where to write an input before each run (its memory may be used again while running) and read an output
  // after, until the next run begins or an input is written. Dims are the public ones; dense.
  template <class Index>
  requires std::is_integral_v<Index>  // so that 0 is not a pointer
      TensorView input(Index i)
  const { return input_at(static_cast<uint32_t>(i)); }
  template <class Index>
  requires std::is_integral_v<Index> TensorView output(Index i)
  const { return output_at(static_cast<uint32_t>(i)); }
  // How many entries of an output's axis the last run used: fewer than its dim where the length depends on
  // data (the others are zero).
  int64_t output_length(uint32_t i, int axis) const;
  // dtype kNone if no port has that name.
  TensorView input(const char* name) const;
  TensorView output(const char* name) const;

  // Computes the outputs; nothing goes on when it returns. On failure (an index out of range, a loop beyond
  // its bound) they are undefined.
  Status run();
  // Sets state back to its initial values.
  void reset();

  // Index of the profile that the session runs.
  uint32_t profile() const;
  // Null: none. The observer must live until replaced. With one, the session waits for a device after each
  // step.
  void set_observer(const StepObserver* observer);
  // Name of the backend that computes a main-list step of the entry program; "elided" if nothing has to be
  // done.
  const char* step_backend(uint32_t step) const;
  // How many steps of all programs are fallbacks; SessionOptions::on_fallback has each with its reason.
  uint32_t fallbacks() const;
  const Model& model() const;

 private:
  TensorView input_at(uint32_t i) const;
  TensorView output_at(uint32_t i) const;

  detail::SessionState* state_ = nullptr;
};

}  // namespace sinter

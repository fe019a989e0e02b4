// Session: one caller's use of a model. The caller provides all memory; after create() nothing is allocated.
//
//   sinter::SessionOptions options{.backends = backends, .threads = pool};
//   auto need = sinter::Session::requirements(model, options);     // need->bytes, exactly
//   auto session = sinter::Session::create(model, memory, options);
//   memcpy(session->input(0).data, x, ...); session->run(); use(session->output(0));
//
// If outputs of one run are inputs of the next, convert the model with --state, and the session keeps them
// (docs/decoders.md#state). Where the application carries them, an input may share memory with any output.
// Therefore first copy all of these outputs out of the session, then write the inputs:
//
//   for (i...) memcpy(kept[i], session->output(from[i]).data, bytes[i]);  // every one of them
//   for (i...) memcpy(session->input(to[i]).data, kept[i], bytes[i]);
//
// Copying each output directly to its input may overwrite an output that has not been copied yet. Inputs and
// outputs that are bound to separate buffers can be copied in any order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "runtime/backend/backend.h"
#include "sinter/model.h"
#include "sinter/shared_arena.h"
#include "sinter/shared_state.h"

namespace sinter {

class PackedWeights;
namespace detail {
struct PackedInFile;
}

namespace detail {
struct SessionState;
}

// A Binding places an input or output in the caller's memory, aligned to kBufferAlignment, with kReadPadding
// readable bytes of any content after the tensor's. The tensor's own bytes belong to this binding alone,
// which is refused (kInvalidArgument) if they overlap those of another binding, the session's memory, the
// model's or its file. It is refused (kUnsupported) if other values share the planned memory.
//
// `device`: the buffer is in the device memory of this backend, by whose address it is given, so that nothing
// is copied between host and device for it. kUnsupported if the plan has the host compute or read the value.
struct Binding {
  const char* name = nullptr;
  std::span<std::byte> buffer;
  const char* device = nullptr;  // null: host memory
};
inline constexpr size_t kMaxBindings = 64;  // of one session

// A step that is not computed by the expected backend, which is SessionOptions::backend or, without it, the
// first that the plan names for the step. Neither elided steps nor If and Loop themselves are fallbacks; a
// step of a body is one fallback, however often it runs.
struct Fallback {
  uint32_t program = 0;
  uint32_t step = 0;
  const char* expected = "";  // the expected backend
  const char* backend = "";   // the backend that computes it
  Status reason;              // why `expected` does not compute it
};

// Called for each fallback when a session is measured and again when it is created.
struct FallbackObserver {
  void* context = nullptr;
  void (*report)(void* context, const Fallback& fallback) = nullptr;
};

// A block of device memory, as its backend addresses it: aligned to kBufferAlignment. The caller allocates it
// from Backend::memory() and owns it.
struct DeviceBlock {
  const char* backend = nullptr;  // its name
  std::span<std::byte> block;
};

// In SessionOptions::entry of PackedWeights: every shape set of the model.
inline constexpr uint32_t kEveryEntry = UINT32_MAX;

struct SessionOptions {
  // The backends that this application links, in addition to the model's kernels. The profile assigns
  // backends to each step; missing ones are skipped. A backend serves one session at a time unless its
  // documentation allows more.
  std::span<Backend* const> backends = {};
  ThreadPool* threads = nullptr;
  const char* profile = nullptr;  // by name; null: Model::default_profile()
  // Use only this backend and, for steps that it refuses, the model's kernels ("reference": only these).
  // Values planned in the device memory of another backend are then in host memory. Null: as planned.
  const char* backend = nullptr;
  uint32_t entry = 0;  // which of the model's shape sets (Model::find_entry)
  std::span<const Binding> bindings = {};
  // Device memory for the session. The session allocates missing blocks from the backends (one block each,
  // when it is created) and returns them in destroy().
  std::span<const DeviceBlock> devices = {};
  // Refuse (kUnsupported, with the first such step and the reason) a session that has fallbacks.
  bool require_planned = false;
  // Packed weights of the same model, whose bytes must live as long as the session. Null: the session packs
  // its own.
  const PackedWeights* packed_weights = nullptr;
  // packed_in_file() of packed_weights.h: the session reads packed weights that the model's file has for this
  // machine (pack_file.h) where they are, and packs the missing ones. Null: it packs all of its own, and a
  // program that packs nothing does not link the code that finds them.
  const detail::PackedInFile* packed_in_file = nullptr;
  // Memory for the values of a run, at least Requirements::shareable bytes, for sessions that never run at
  // once. Null: in the session's own memory. Values in device memory are not shared.
  SharedArena* arena = nullptr;
  // Memory for the state, at least Requirements::state bytes, for sessions of one model that continue each
  // other. Null: in the session's own memory. kUnsupported if state is in device memory.
  SharedState* state = nullptr;
  FallbackObserver on_fallback = {};
};

inline constexpr size_t kMaxDevices = 8;  // of one session

// The bytes of one block of a backend's device memory.
struct DeviceRequirements {
  const char* backend = "";  // its name
  size_t bytes = 0;          // all of the following
  size_t arena = 0;          // the regions that the converter planned there
  size_t state = 0;          // a part of `arena`, like Requirements::state
  size_t prepared = 0;       // packed weights, private memory of the backend
  size_t staging = 0;        // in addition: page-locked host memory of the backend for transfers
};

// The bytes of the block of host memory, aligned to kBufferAlignment, that a session needs, and the blocks
// that it needs in device memory.
struct Requirements {
  size_t bytes = 0;      // all of the following, but not `shareable` if SessionOptions::arena is set, nor
                         // `state` if SessionOptions::state is
  size_t control = 0;    // step lists, operands, names of buffers
  size_t arena = 0;      // the entry's regions that the converter planned here: values, state, workspaces
  size_t state = 0;      // a part of `arena`: regions that hold state, which must persist between runs
  size_t shareable = 0;  // the rest of `arena`: regions whose content matters only during a run
  size_t prepared = 0;   // packed and widened weights, memory of backends, scratch for preparing them
  size_t packed = 0;  // a part of `prepared`: weights that this session packs, each once for all its readers
  uint32_t device_count = 0;
  DeviceRequirements devices[kMaxDevices];

  std::span<const DeviceRequirements> on_devices() const { return {devices, device_count}; }
};

// A step as passed to an observer.
struct StepInfo {
  uint32_t program = 0;
  uint32_t step = 0;
  const char* backend = "";      // the backend that computes it
  const char* kernel = nullptr;  // the name of its kernel, if it has several for the operation
  bool in_body = false;          // the step is in a branch or a loop, not in the entry program
};

// Called around every step that runs, including those of branches and loop bodies. `after` may read the
// operands in host memory (TensorView::memory 0); the device has finished the step by then.
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

  // Returns the exact memory that create() needs with the same options on this machine.
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options);
  // Chooses a kernel for every step, packs weights, sets state to its initial values (unless another session
  // has begun it: SharedState). `memory` has at least the required bytes; the first of these belong to the
  // session until destroy(). Fails if a backend whose device memory the plan uses is missing or has too
  // little of it.
  static Result<Session> create(const Model& model, std::span<std::byte> memory,
                                const SessionOptions& options);
  void destroy();
  // Continues in new memory: creates a session there, as create() does with these options, copies the state
  // to it, and destroys the old one, whose memory is then free. Inputs and outputs are not copied. The old
  // and the new memory must not overlap. State that is shared stays where it is, if the options name the same
  // SharedState. On failure the session is as it was. Fails with kInvalidArgument if the profile or the entry
  // differ, and with kUnsupported if state is in device memory.
  Status move_to(std::span<std::byte> memory, const SessionOptions& options);

  bool valid() const { return state_ != nullptr; }
  uint32_t input_count() const;
  uint32_t output_count() const;
  // Returns the memory in which an input is written before each run (the run may reuse it) or an output is
  // read afterwards, until the next run begins or an input is written. It is dense and has the public dims
  // (the maxima of bounded axes).
  template <class Index>
  requires std::is_integral_v<Index>  // so that 0 is not a pointer
      TensorView input(Index i)
  const { return input_at(static_cast<uint32_t>(i)); }
  template <class Index>
  requires std::is_integral_v<Index> TensorView output(Index i)
  const { return output_at(static_cast<uint32_t>(i)); }
  // Returns the number of entries of an output's axis that the last run used: at most its dim, where the
  // length depends on data (the others are zero).
  int64_t output_length(uint32_t i, int axis) const;
  // ---- bounded axes, in a model that was converted with --dim NAME=MIN..MAX (Model::input_range). The
  // memory of an input, bound or not, has room for the maxima, and the run reads from each axis as many
  // entries as its length; the others may hold anything. Lengths are at their maxima until they are given,
  // and stay.

  // Sets the shape that the input has in the next runs. The caller writes it in place: element (i, j, ...) is
  // where it is in a tensor of the maxima. Fails with kInvalidArgument and changes nothing unless the model
  // takes it.
  Status set_shape(uint32_t i, std::span<const int64_t> dims);
  // Sets the shape, and copies the elements of a dense tensor of that shape.
  Status write_input(uint32_t i, std::span<const std::byte> values, std::span<const int64_t> dims);
  // Returns the entries of an axis of an input that the next run reads: the given number, or its dim.
  int64_t input_length(uint32_t i, int axis) const;
  // Copies an output of the last run to a dense tensor whose dims are its lengths (output_length). Fails with
  // kInvalidArgument if that tensor has another number of bytes.
  Status read_output(uint32_t i, std::span<std::byte> values) const;

  // Returns a view of dtype kNone if no port has that name.
  TensorView input(const char* name) const;
  TensorView output(const char* name) const;

  // Returns a state of the model (Model::state), which the session keeps from run to run. Between runs, the
  // caller may save it, or write a saved one to continue its stream. Its dtype is kNone if there is none, or
  // if it is in device memory.
  TensorView state(uint32_t i) const;

  // Computes the outputs and returns when all are ready. On failure (an index out of range, a loop beyond its
  // bound) they are undefined, and so is the state until reset(). It fails with kInvalidArgument and changes
  // nothing if another session that uses the same SharedArena or SharedState is running, or if inputs that
  // share a length (two dimensions of one name) were given different ones: both have to be given anew.
  Status run();
  // Starts a run without waiting for it, for sessions whose inputs, outputs and steps are all on one device:
  // the run begins when all work in the caller's stream is done, and later work in that stream begins when
  // the run is done. `stream` is one of the device's library (cuda: a CUstream or cudaStream_t). It fails
  // with kUnsupported if the host has a part in the run. Errors of a run are reported by wait() or the next
  // run(); wait() before bound buffers are freed.
  Status run_async(void* stream);
  // Waits for the runs that run_async() has started.
  Status wait();
  // Sets state back to its initial values.
  void reset();

  // Returns the index of the profile that the session runs.
  uint32_t profile() const;
  // Sets an observer, or none by null. It must live until it is replaced. With an observer, the session waits
  // for a device after each step.
  void set_observer(const StepObserver* observer);
  // Sets a flag by which another thread, or an interrupt, ends runs, or none by null: a run that finds it
  // true before a step, or before a trip of a loop, returns Code::kCancelled. It takes at most as long as the
  // longest step from then on. The session is usable afterwards as after any failed run: inputs are written
  // anew, outputs are undefined, and so is the state until reset() or until a saved one is written. The
  // caller sets the flag back; it must live until it is replaced. Runs of run_async() do not read it.
  void set_cancel(const std::atomic<bool>* flag);
  // Returns the name of the backend that computes a step of the entry program's main list; "elided" if the
  // step does nothing.
  const char* step_backend(uint32_t step) const;
  // Returns the number of fallback steps in all programs. SessionOptions::on_fallback receives each.
  uint32_t fallbacks() const;
  const Model& model() const;

 private:
  TensorView input_at(uint32_t i) const;
  TensorView output_at(uint32_t i) const;

  detail::SessionState* state_ = nullptr;
};

}  // namespace sinter

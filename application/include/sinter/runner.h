// Runner: a model file with its memory, threads and session in one object, for applications that may
// allocate.
//
//   auto net = sinter::Runner::open("net.sinter");
//   net.set("image", pixels);                            // std::vector<float>, std::array, std::span, ...
//   net.run();
//   for (float p : net.get<float>("probabilities")) ...  // a view, until the next run or set()
//   if (!net.ok()) std::fprintf(stderr, "%s\n", net.error());
//
// A Runner keeps its first failure: calls after it do nothing and return false or nothing, so that one check
// at the end suffices. clear_error() resumes after a failure of set(), run() or get().
//
// Applications that must not allocate, or place memory themselves, use Model and Session (sinter/session.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>

#include "sinter/packed_weights.h"
#include "sinter/session.h"
#include "sinter/step_time.h"
#include "sinter/thread_pool.h"

namespace sinter {

struct RunnerOptions {
  // The number of threads that a run uses, with the caller's, at most 1024; 0: one for each processor.
  int threads = 1;
  // The scheduling of the threads that the Runner starts. A refused setting is a failure.
  ThreadSettings thread_settings = {};
  // The application's own pool, which is used instead and outlives the Runner.
  ThreadPool* pool = nullptr;
  // The backends to use; empty: all that this build of Sinter has (default_backends()).
  std::span<Backend* const> backends = {};
  const char* backend = nullptr;  // like SessionOptions::backend
  const char* profile = nullptr;  // like SessionOptions::profile
  // The shape set to run; kEveryEntry: all sets of the file, between which set() with dims chooses, beginning
  // with the first. They share one arena and one state.
  uint32_t entry = kEveryEntry;
  bool require_planned = false;  // like SessionOptions::require_planned
  // The arena of SessionOptions::arena, for Runners that never run at once. It serves all shape sets.
  SharedArena* arena = nullptr;
  // Buffers of the application for inputs and outputs, which outlive the Runner (Binding). They need not be
  // passed to set() or get(). They belong to one shape set: give `entry` if the file has several.
  std::span<const Binding> bindings = {};
  // True: the file is read into memory instead of mapped; it may then be changed or removed.
  bool copy_file = false;
  bool check_digests = true;                 // like OpenOptions::check_digests
  std::span<const uint8_t> public_key = {};  // like OpenOptions::public_key
  CustomOps custom_ops = {};                 // like OpenOptions::custom_ops; outlives the Runner
};

// A Runner has one caller at a time. Another one of the same model (another()) can run on another thread.
class Runner {
 public:
  Runner() = default;  // empty: ok() is false
  Runner(Runner&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  Runner& operator=(Runner&& other) noexcept;
  ~Runner();

  // Opens the file. On failure ok() is false and error() states the reason.
  static Runner open(const char* path, const RunnerOptions& options = {});
  // Opens a file in memory, aligned to kBufferAlignment and unchanged as long as a Runner of it exists.
  static Runner open(std::span<const std::byte> file, const RunnerOptions& options = {});
  // Returns a second session of the same model, which shares its file, its memory and its packed weights.
  // Options of opening a file have no effect.
  Runner another(const RunnerOptions& options = {}) const;

  bool ok() const;
  explicit operator bool() const { return ok(); }
  // Returns a sentence that names the failed input, step or file; "" if nothing has failed. It lives as long
  // as the Runner.
  const char* error() const;
  Code code() const;
  void clear_error();

  // Copies `values` into the input: a contiguous range, or one value, of the input's element type, with as
  // many elements as the input has. Elements of 16-bit floats are given as their bits in uint16_t, bools as
  // bool.
  template <class Values>
  bool set(const char* name, const Values& values);
  // Copies `values` into an input of shape `dims`.
  // - Where the file has several shape sets: goes on with the first one in which the input has this shape and
  //   the inputs that were set since the last run have theirs, whose values are kept. A failure lists the
  //   shapes that the file has.
  // - Where axes of the input are bounded (Model::input_range): `values` is a dense tensor of shape `dims`,
  //   and the run computes with these lengths. Inputs that share a length are all set before a run. Without
  //   dims an input has its maxima.
  template <class Values>
  bool set(const char* name, const Values& values, std::span<const int64_t> dims);
  template <class Values>
  bool set(const char* name, const Values& values, std::initializer_list<int64_t> dims) {
    return set(name, values, std::span<const int64_t>(dims.begin(), dims.size()));
  }
  // Sets the shape, in the next runs, of an input with bounded axes that the caller writes in place
  // (Session::set_shape); chooses between shape sets like set().
  bool set_shape(const char* name, std::span<const int64_t> dims);
  bool set_shape(const char* name, std::initializer_list<int64_t> dims) {
    return set_shape(name, std::span<const int64_t>(dims.begin(), dims.size()));
  }
  // Copies the output to `values`, a contiguous range. The rules are those of set(). Where the last run used
  // a part of the output (output_length), a range of that many elements takes this part as a dense tensor.
  template <class Values>
  bool copy(const char* name, Values&& values);
  // Returns the output in place, valid until the next run() or set(). Empty on failure.
  template <class T>
  std::span<const T> get(const char* name);
  // Returns the input in place, to be written before a run. Empty on failure.
  template <class T>
  std::span<T> input(const char* name);

  // Returns the shape set that the next run computes, and to which shape(), get() and session() refer.
  uint32_t entry() const;
  // Goes on with a shape set by its number (Model::find_entry). Inputs have to be set anew; state stays.
  bool use_entry(uint32_t entry);

  // Computes the outputs; returns when they are ready. A run with an input that was never set in
  // its shape set fails with its name. A run may overwrite its inputs, so set each before every run. An input
  // that is bound, or whose address input() or session() has given, is the caller's care.
  bool run();
  bool reset();

  // Starts a run on a thread of the Runner's own, and returns. All other functions but cancel() and running()
  // wait for its end, so that get() gives its outputs. `done` is called on that thread when the run has
  // ended, well or not: runner.ok() tells. It may read the outputs, set inputs and start the next run, and
  // must not destroy the Runner. The destructor cancels the run and waits for it.
  bool start(void (*done)(void* context, Runner& runner) = nullptr, void* context = nullptr);
  void wait() const;     // for the end of a run that start() has begun, and of `done`
  bool running() const;  // whether there is one
  // Ends the run in progress, from any thread: it returns before its next step, or trip of a loop, with
  // Code::kCancelled, after at most the time of its longest step. Without a run it does nothing. Afterwards
  // inputs are set anew, outputs are undefined, and so is the state until reset(); clear_error() resumes.
  void cancel() const;

  // Adds up the time of each step in further runs, from zero, or no longer. It takes the place of
  // Session::set_observer(), and as with an observer every step runs by itself.
  bool time_steps(bool on = true);
  // Returns the time of a step so far, of program() or of the body of an If or Loop;
  // model().step_name(step, program) and step_op() describe it.
  StepTime step_time(uint32_t program, uint32_t step) const;
  // Returns the program that the next run computes (Model::step_count).
  uint32_t program() const;

  // Returns the dims of an input or output, for bounded axes the maxima; empty if there is none of that name.
  std::span<const int64_t> shape(const char* name) const;
  DType dtype(const char* name) const;  // kNone if there is none
  // Returns the entries of an output's axis that the last run used (Session::output_length).
  int64_t output_length(const char* name, int axis) const;

  // Returns the bytes of memory in total: the model's, the packed weights and those of the sessions of all
  // shape sets, without the file and a shared arena.
  size_t bytes() const;
  // Returns the session or the model, which offer more than this class, if the Runner was opened.
  Session& session();
  const Model& model() const;

 private:
  struct State;
  explicit Runner(State* state) : state_(state) {}
  static Runner with_state();
  bool choose(const char* name, std::span<const int64_t> dims);
  // Copies elements of one of these types, `width` bytes each.
  bool write(const char* name, uint32_t types, size_t width, std::span<const std::byte> values,
             std::span<const int64_t> dims);
  bool read(const char* name, uint32_t types, size_t width, std::span<std::byte> values);
  TensorView port(const char* name) const;
  enum class Port { kInput, kOutput };
  // Returns the number of the input or output if it has one of these types, of elements of `width` bytes; -1
  // after a failure.
  int find(const char* name, Port port, uint32_t types, size_t width);
  // Returns the memory of the input or output and its number of elements. Null after a failure.
  std::byte* memory_of(const char* name, Port port, uint32_t types, size_t width, size_t* count);

  State* state_ = nullptr;
};

namespace detail {

template <class T>
constexpr bool kIsElement = std::is_arithmetic_v<T> || std::is_same_v<T, std::byte>;

// The element types that a T can hold, one bit each; all types for std::byte.
template <class T>
requires kIsElement<T>
constexpr uint32_t element_types() {
  constexpr auto bit = [](DType type) { return uint32_t{1} << static_cast<int>(type); };
  if (std::is_same_v<T, std::byte>) return UINT32_MAX;
  if (std::is_same_v<T, bool>) return bit(DType::kBool);
  if (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? bit(DType::kFloat32) : sizeof(T) == 8 ? bit(DType::kFloat64) : 0;
  const bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1:
      return bit(is_signed ? DType::kInt8 : DType::kUint8);
    case 2:
      return is_signed ? bit(DType::kInt16)
                       : bit(DType::kUint16) | bit(DType::kFloat16) | bit(DType::kBFloat16);
    case 4:
      return bit(is_signed ? DType::kInt32 : DType::kUint32);
    default:
      return bit(is_signed ? DType::kInt64 : DType::kUint64);
  }
}

template <class Range>
using Element = std::remove_cv_t<std::ranges::range_value_t<Range>>;
template <class Range>
concept Elements =
    std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> && kIsElement<Element<Range>>;

}  // namespace detail

template <class Values>
bool Runner::set(const char* name, const Values& values) {
  if constexpr (detail::kIsElement<Values>) {
    return set(name, std::span<const Values>(&values, 1));
  } else {
    static_assert(detail::Elements<const Values>, "give numbers in a contiguous range, or one number");
    using T = detail::Element<const Values>;
    return write(name, detail::element_types<T>(), sizeof(T),
                 std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values))), shape(name));
  }
}

template <class Values>
bool Runner::set(const char* name, const Values& values, std::span<const int64_t> dims) {
  if constexpr (detail::kIsElement<Values>) {
    return set(name, std::span<const Values>(&values, 1), dims);
  } else {
    static_assert(detail::Elements<const Values>, "give numbers in a contiguous range, or one number");
    using T = detail::Element<const Values>;
    return choose(name, dims) &&
           write(name, detail::element_types<T>(), sizeof(T),
                 std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values))), dims);
  }
}

template <class Values>
bool Runner::copy(const char* name, Values&& values) {
  static_assert(detail::Elements<Values>, "give a contiguous range of numbers");
  using T = detail::Element<Values>;
  return read(name, detail::element_types<T>(), sizeof(T),
              std::as_writable_bytes(std::span(std::ranges::data(values), std::ranges::size(values))));
}

template <class T>
std::span<const T> Runner::get(const char* name) {
  size_t count = 0;
  const std::byte* from = memory_of(name, Port::kOutput, detail::element_types<T>(), sizeof(T), &count);
  return from != nullptr ? std::span<const T>(reinterpret_cast<const T*>(from), count) : std::span<const T>();
}

template <class T>
std::span<T> Runner::input(const char* name) {
  size_t count = 0;
  std::byte* to = memory_of(name, Port::kInput, detail::element_types<T>(), sizeof(T), &count);
  return to != nullptr ? std::span<T>(reinterpret_cast<T*>(to), count) : std::span<T>();
}

}  // namespace sinter

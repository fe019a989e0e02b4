#include "sinter/runner.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "application/entry_sessions.h"
#include "application/memory.h"
#include "application/text.h"
#include "sinter/backends.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"

namespace sinter {
namespace {

constexpr size_t kErrorText = 512;
const Model kNoModel;
const Status kNoMemory = error(Code::kOutOfMemory, "memory for the Runner cannot be allocated");
const Status kNotOpen = invalid("the Runner is not open, so that there cannot be another of its model");

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

// What the Runners of one model share.
struct SharedModel {
  std::atomic<int> owners{1};
  FileMap map;
  Memory memory, packed_memory;
  Model model;
  PackedWeights packed;

  void release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

void put_dims(Text& out, std::span<const int64_t> dims) {
  out.put("[");
  for (size_t i = 0; i < dims.size(); ++i)
    out.put("%s%lld", i > 0 ? "," : "", static_cast<long long>(dims[i]));
  out.put("]");
}

// Bytes for the inputs that can move along when a Runner goes on with another shape set: those with the same
// shape in two sets. The sets have one arena between them, where such inputs are at other places.
size_t most_moving_bytes(const Model& model) {
  size_t most = 0;
  for (uint32_t e = 0; e < model.entry_count(); ++e) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < model.input_count(e); ++i) {
      const PortInfo input = model.input(i, e);
      bool moves = false;
      for (uint32_t other = 0; other < model.entry_count(); ++other)
        moves = moves || (other != e && model.takes({input.name, input.dims}, other));
      TensorView view;
      view.dtype = input.dtype;
      view.set_shape(input.dims);
      if (moves) bytes += static_cast<size_t>(view.dense_bytes());
    }
    most = std::max(most, bytes);
  }
  return most;
}
// Of an input: "[1,1..128]".
void put_ranges(Text& out, const Model& model, uint32_t input, uint32_t entry) {
  out.put("[");
  for (size_t i = 0; i < model.input(input, entry).dims.size(); ++i) {
    const AxisRange range = model.input_range(input, static_cast<int>(i), entry);
    if (i > 0) out.put(",");
    if (range.minimum < range.maximum) out.put("%lld..", static_cast<long long>(range.minimum));
    out.put("%lld", static_cast<long long>(range.maximum));
  }
  out.put("]");
}

}  // namespace

struct Runner::State {
  SharedModel* shared = nullptr;
  PthreadPool* own_pool = nullptr;
  Memory memory;  // of the sessions
  Memory moving;  // for inputs that move along to another shape set
  EntrySessions sessions;
  Session none;
  std::unique_ptr<bool[]> given;  // by input of the current entry: set since the last run
  Code code = Code::kOk;
  char text[kErrorText] = "";

  ~State() {
    sessions.destroy();
    delete own_pool;
    if (shared != nullptr) shared->release();
  }
  bool opened() const { return sessions.count() > 0; }
  uint32_t entry() const { return sessions.entry(); }
  Session& session() const { return sessions.current(); }
  const Model& model() const { return shared != nullptr ? shared->model : kNoModel; }
  bool fail(const Status& status, const char* path = nullptr) {
    code = status.code;
    Text out{text};
    if (path != nullptr) out.put("%s: ", path);
    model().format(status, out.rest());
    return false;
  }
  // "the model does not have an input 'imag'; its inputs are 'image', 'mask'".
  void fail_name(const char* kind, const char* name, bool input);
  // "input 'image' is float32[1,28,28], 784 elements, but 100 were given or asked for".
  void fail_values(const char* kind, const char* name, const TensorView& view, std::span<const int64_t> dims,
                   size_t width, size_t given, size_t has, bool typed);
  // "no shape set of the file has input 'x' as [2,3]; it has 'x' [1,3], 'y' [1]; 'x' [4,3], 'y' [4]".
  void fail_shape(const char* name, std::span<const int64_t> dims);
  // Whether another entry has these dims for input i, and the current entry's for the others that are given.
  bool fits(uint32_t other, uint32_t i, std::span<const int64_t> dims) const;
  // That input i of the current entry has in the next run; `room`: kMaxRank numbers.
  std::span<const int64_t> shape_of(uint32_t i, int64_t* room) const;
  void switch_to(uint32_t other, uint32_t replaced);
  void forget_given() { std::fill_n(given.get(), model().input_count(entry()), false); }
  Status open_model(std::span<const std::byte> file, const RunnerOptions& options);
  // Takes threads and memory; `packs`: the model's packed weights as well, for all its Runners.
  Status create(const RunnerOptions& options, bool packs);
};

void Runner::State::fail_name(const char* kind, const char* name, bool input) {
  code = Code::kInvalidArgument;
  const uint32_t entry = this->entry();
  const uint32_t count = input ? model().input_count(entry) : model().output_count(entry);
  Text out{text};
  out.put("the model does not have an %s '%s'; its %ss are", kind, name != nullptr ? name : "", kind);
  for (uint32_t i = 0; i < count; ++i)
    out.put("%s '%s'", i > 0 ? "," : "", (input ? model().input(i, entry) : model().output(i, entry)).name);
}

void Runner::State::fail_values(const char* kind, const char* name, const TensorView& view,
                                std::span<const int64_t> dims, size_t width, size_t given, size_t has,
                                bool typed) {
  code = Code::kInvalidArgument;
  Text out{text};
  out.put("%s '%s' is %s", kind, name, dtype_name(view.dtype));
  put_dims(out, dims);
  const auto number = [](auto n) { return static_cast<long long>(n); };  // Windows has no %zu
  if (!typed)
    out.put(", but elements of another type, of %lld bytes, were given or asked for", number(width));
  else
    out.put(", %lld elements, but %lld were given or asked for", number(has), number(given));
}

void Runner::State::fail_shape(const char* name, std::span<const int64_t> dims) {
  code = Code::kInvalidArgument;
  Text out{text};
  bool others = false;
  for (uint32_t j = 0; j < model().input_count(entry()); ++j)
    others = others || (given[j] && std::strcmp(model().input(j, entry()).name, name) != 0);
  const uint32_t first = sessions.first();
  out.put("no shape set %s has input '%s' as ", sessions.count() == 1 ? "that is open" : "of the file", name);
  put_dims(out, dims);
  out.put("%s; give one of these shapes:", others ? " with the other inputs as they were set" : "");
  for (uint32_t e = first; sessions.has(e); ++e)
    for (uint32_t i = 0; i < model().input_count(e); ++i) {
      out.put("%s '%s' ", i > 0 ? "," : e > first ? ";" : "", model().input(i, e).name);
      put_ranges(out, model(), i, e);
    }
}

bool Runner::State::fits(uint32_t other, uint32_t i, std::span<const int64_t> dims) const {
  const Model& of = model();
  if (of.input_count(other) != of.input_count(entry())) return false;
  for (uint32_t j = 0; j < of.input_count(entry()); ++j) {
    if (j != i && !given[j]) continue;
    const PortInfo here = of.input(j, entry()), there = of.input(j, other);
    if (std::strcmp(here.name, there.name) != 0 || here.dtype != there.dtype) return false;
    int64_t room[kMaxRank];
    const std::span<const int64_t> wanted = j == i ? dims : shape_of(j, room);
    if (!of.takes({there.name, wanted}, other)) return false;
    // What was set moves along as it is in memory.
    if (j != i && !std::equal(here.dims.begin(), here.dims.end(), there.dims.begin(), there.dims.end()))
      return false;
  }
  return true;
}

std::span<const int64_t> Runner::State::shape_of(uint32_t i, int64_t* room) const {
  const int rank = session().input(i).rank;
  for (int axis = 0; axis < rank; ++axis) room[axis] = session().input_length(i, axis);
  return {room, static_cast<size_t>(rank)};
}

void Runner::State::switch_to(uint32_t other, uint32_t replaced) {
  Session &from = session(), &to = sessions.of(other);
  // All are read before any is written: their places in the arena overlap.
  for (const bool writes : {false, true}) {
    std::byte* kept = moving.span().data();
    for (uint32_t j = 0; j < model().input_count(entry()); ++j) {
      if (j == replaced || !given[j]) continue;
      const TensorView input = writes ? to.input(j) : from.input(j);
      const auto bytes = static_cast<size_t>(input.dense_bytes());
      if (bytes > 0) std::memcpy(writes ? input.data : kept, writes ? kept : input.data, bytes);
      kept += bytes;
      int64_t room[kMaxRank];
      if (writes) (void)to.set_shape(j, shape_of(j, room));  // which fits() has found to be possible
    }
  }
  sessions.use(other);
}

Status Runner::State::open_model(std::span<const std::byte> file, const RunnerOptions& options) {
  const OpenOptions open{.kernels = reference_kernels(),
                         .check_digests = options.check_digests,
                         .public_key = options.public_key,
                         .custom_ops = options.custom_ops};
  const Result<size_t> bytes = Model::open_bytes(file, open);
  SINTER_RETURN_IF_ERROR(bytes.status());
  SINTER_RETURN_IF_ERROR(shared->memory.allocate(*bytes));
  const Result<Model> opened = Model::open(file, shared->memory.span(), open);
  SINTER_RETURN_IF_ERROR(opened.status());
  shared->model = *opened;
  return ok_status();
}

Status Runner::State::create(const RunnerOptions& options, bool packs) {
  const Model& of = shared->model;
  const bool every = options.entry == kEveryEntry;
  SINTER_RETURN_UNLESS(every || options.entry < of.entry_count(),
                       invalid("the model has no entry %a; it has %b", options.entry, of.entry_count()));
  SINTER_RETURN_UNLESS(
      options.threads >= 0,
      invalid("a Runner cannot have %a threads; give 0 for all processors", options.threads));
  SessionOptions with{.backends = options.backends.empty() ? default_backends() : options.backends,
                      .threads = options.pool,
                      .profile = options.profile,
                      .backend = options.backend,
                      .entry = options.entry,
                      .bindings = options.bindings,
                      .require_planned = options.require_planned};
  with.arena = options.arena;
  if (options.pool == nullptr && options.threads != 1) {
    own_pool = new (std::nothrow) PthreadPool(options.threads, options.thread_settings);
    SINTER_RETURN_UNLESS(own_pool != nullptr, kNoMemory);
    SINTER_RETURN_IF_ERROR(own_pool->status());
    with.threads = own_pool;
  }
  if (packs) {
    const Result<Requirements> needs = PackedWeights::requirements(shared->model, with);
    SINTER_RETURN_IF_ERROR(needs.status());
    SINTER_RETURN_IF_ERROR(shared->packed_memory.allocate(needs.value().bytes));
    const Result<PackedWeights> packed =
        PackedWeights::create(shared->model, shared->packed_memory.span(), with);
    SINTER_RETURN_IF_ERROR(packed.status());
    shared->packed = packed.value();
  }
  with.packed_weights = &shared->packed;
  const Result<Requirements> needs = EntrySessions::requirements(of, with);
  SINTER_RETURN_IF_ERROR(needs.status());
  SINTER_RETURN_IF_ERROR(memory.allocate(needs.value().bytes));
  uint32_t most_inputs = 0;
  for (uint32_t e = 0; e < of.entry_count(); ++e) most_inputs = std::max(most_inputs, of.input_count(e));
  given.reset(new (std::nothrow) bool[most_inputs]());
  SINTER_RETURN_UNLESS(given != nullptr, kNoMemory);
  if (every && of.entry_count() > 1) SINTER_RETURN_IF_ERROR(moving.allocate(most_moving_bytes(of)));
  return sessions.create(of, needs.value(), memory.span(), with);
}

Runner& Runner::operator=(Runner&& other) noexcept {
  if (this != &other) {
    delete state_;
    state_ = other.state_;
    other.state_ = nullptr;
  }
  return *this;
}

Runner::~Runner() { delete state_; }

Runner Runner::open(const char* path, const RunnerOptions& options) {
  Runner runner = with_state();
  if (!runner.ok()) return runner;
  Result<FileMap> map =
      FileMap::open(path, options.copy_file ? FileMap::Mode::kCopied : FileMap::Mode::kMapped);
  Status status = map.status();
  if (status.ok()) {
    runner.state_->shared->map = std::move(map.value());
    status = runner.state_->open_model(runner.state_->shared->map.bytes(), options);
  }
  if (status.ok()) status = runner.state_->create(options, true);
  if (!status.ok()) runner.state_->fail(status, path);
  return runner;
}

Runner Runner::open(std::span<const std::byte> file, const RunnerOptions& options) {
  Runner runner = with_state();
  if (!runner.ok()) return runner;
  Status status = runner.state_->open_model(file, options);
  if (status.ok()) status = runner.state_->create(options, true);
  if (!status.ok()) runner.state_->fail(status);
  return runner;
}

Runner Runner::another(const RunnerOptions& options) const {
  if (state_ == nullptr || !state_->opened()) {
    Runner runner = with_state();
    if (runner.ok()) runner.state_->fail(kNotOpen);
    return runner;
  }
  auto* state = new (std::nothrow) State;
  if (state == nullptr) return Runner();
  state_->shared->owners.fetch_add(1, std::memory_order_relaxed);
  state->shared = state_->shared;
  if (const Status status = state->create(options, false); !status.ok()) state->fail(status);
  return Runner(state);
}

Runner Runner::with_state() {
  auto* state = new (std::nothrow) State;
  if (state == nullptr) return Runner();
  state->shared = new (std::nothrow) SharedModel;
  if (state->shared == nullptr) state->fail(kNoMemory);
  return Runner(state);
}

bool Runner::ok() const { return state_ != nullptr && state_->code == Code::kOk; }
Code Runner::code() const { return state_ != nullptr ? state_->code : Code::kInvalidArgument; }
const char* Runner::error() const {
  return state_ != nullptr ? state_->text : "the Runner is empty; open() gives one";
}
void Runner::clear_error() {
  if (state_ == nullptr || !state_->opened()) return;
  state_->code = Code::kOk;
  state_->text[0] = '\0';
}

int Runner::find(const char* name, Port port, uint32_t types, size_t width) {
  if (!ok()) return -1;
  State& s = *state_;
  const bool in = port == Port::kInput;
  const char* const kind = in ? "input" : "output";
  const int i = name == nullptr ? -1
                : in            ? s.model().find_input(name, s.entry())
                                : s.model().find_output(name, s.entry());
  if (i < 0) return s.fail_name(kind, name, in), -1;
  const TensorView view = in ? s.session().input(i) : s.session().output(i);
  if ((types >> static_cast<int>(view.dtype) & 1) != 0) return i;
  s.fail_values(kind, name, view, {view.dims, static_cast<size_t>(view.rank)}, width, 0, 0, false);
  return -1;
}

std::byte* Runner::memory_of(const char* name, Port port, uint32_t types, size_t width, size_t* count) {
  const int i = find(name, port, types, width);
  if (i < 0) return nullptr;
  State& s = *state_;
  const TensorView view = port == Port::kInput ? s.session().input(i) : s.session().output(i);
  const bool raw = types == UINT32_MAX;
  *count = static_cast<size_t>(raw ? view.dense_bytes() : view.size());
  if (port == Port::kInput) s.given[static_cast<size_t>(i)] = true;
  return view.data;
}

bool Runner::write(const char* name, uint32_t types, size_t width, std::span<const std::byte> values,
                   std::span<const int64_t> dims) {
  const int i = find(name, Port::kInput, types, width);
  if (i < 0) return false;
  State& s = *state_;
  const auto input = static_cast<uint32_t>(i);
  const TensorView view = s.session().input(input);
  size_t elements = byte_width(view.dtype) / width;  // more than one where bytes are given
  for (const int64_t dim : dims) elements *= static_cast<size_t>(dim);
  if (values.size() != elements * width)
    return s.fail_values("input", name, view, dims, width, values.size() / width, elements, true), false;
  const Status status = s.session().write_input(input, values, dims);
  if (!status.ok()) return s.fail(status);
  return s.given[input] = true;
}

bool Runner::read(const char* name, uint32_t types, size_t width, std::span<std::byte> values) {
  const int i = find(name, Port::kOutput, types, width);
  if (i < 0) return false;
  State& s = *state_;
  const auto output = static_cast<uint32_t>(i);
  const TensorView view = s.session().output(output);
  if (values.size() == static_cast<size_t>(view.dense_bytes())) {
    if (!values.empty()) std::memcpy(values.data(), view.data, values.size());
    return true;
  }
  int64_t used[kMaxRank];
  size_t bytes = byte_width(view.dtype);
  for (int axis = 0; axis < view.rank; ++axis) {
    used[axis] = s.session().output_length(output, axis);
    bytes *= static_cast<size_t>(used[axis]);
  }
  if (values.size() != bytes) {
    s.fail_values("output", name, view, {used, static_cast<size_t>(view.rank)}, width, values.size() / width,
                  bytes / width, true);
    return false;
  }
  const Status status = s.session().read_output(output, values);
  return status.ok() || s.fail(status);
}

bool Runner::set_shape(const char* name, std::span<const int64_t> dims) {
  if (!choose(name, dims)) return false;
  State& s = *state_;
  const auto input = static_cast<uint32_t>(s.model().find_input(name, s.entry()));
  const Status status = s.session().set_shape(input, dims);
  if (status.ok()) s.given[input] = true;
  return status.ok() || s.fail(status);
}

bool Runner::run() {
  if (!ok()) return false;
  const Status status = state_->session().run();
  state_->forget_given();
  return status.ok() || state_->fail(status);
}

bool Runner::reset() {
  if (!ok()) return false;
  state_->sessions.reset();
  return true;
}

bool Runner::choose(const char* name, std::span<const int64_t> dims) {
  if (!ok()) return false;
  State& s = *state_;
  const int i = name != nullptr ? s.model().find_input(name, s.entry()) : -1;
  if (i < 0) return s.fail_name("input", name, true), false;
  const auto input = static_cast<uint32_t>(i);
  if (s.model().takes({name, dims}, s.entry())) return true;
  for (uint32_t e = s.sessions.first(); s.sessions.has(e); ++e)
    if (s.fits(e, input, dims)) return s.switch_to(e, input), true;
  return s.fail_shape(name, dims), false;
}

uint32_t Runner::entry() const { return state_ != nullptr ? state_->entry() : 0; }

bool Runner::use_entry(uint32_t entry) {
  if (!ok()) return false;
  State& s = *state_;
  if (!s.sessions.has(entry))
    return s.fail(invalid("shape set %a is not open; %b are", entry, s.sessions.count()));
  s.forget_given();
  s.sessions.use(entry);
  return true;
}

TensorView Runner::port(const char* name) const {
  if (state_ == nullptr || !state_->opened()) return {};
  const TensorView input = state_->session().input(name);
  return input.present() ? input : state_->session().output(name);
}

std::span<const int64_t> Runner::shape(const char* name) const {
  if (state_ == nullptr || !state_->opened()) return {};
  const Model& model = state_->model();
  const uint32_t entry = state_->entry();
  const int in = model.find_input(name, entry), out = model.find_output(name, entry);
  if (in >= 0) return model.input(static_cast<uint32_t>(in), entry).dims;
  if (out >= 0) return model.output(static_cast<uint32_t>(out), entry).dims;
  return {};
}

DType Runner::dtype(const char* name) const { return port(name).dtype; }

int64_t Runner::output_length(const char* name, int axis) const {
  if (state_ == nullptr || !state_->opened()) return 0;
  const int out = state_->model().find_output(name, state_->entry());
  return out >= 0 ? state_->session().output_length(static_cast<uint32_t>(out), axis) : 0;
}

size_t Runner::bytes() const {
  if (state_ == nullptr || state_->shared == nullptr) return 0;
  return state_->shared->memory.span().size() + state_->shared->packed_memory.span().size() +
         state_->memory.span().size() + state_->moving.span().size();
}

Session& Runner::session() { return state_->opened() ? state_->session() : state_->none; }
const Model& Runner::model() const { return state_ != nullptr ? state_->model() : kNoModel; }

}  // namespace sinter

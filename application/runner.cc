#include "sinter/runner.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

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

}  // namespace

struct Runner::State {
  SharedModel* shared = nullptr;
  PthreadPool* own_pool = nullptr;
  Memory memory;
  Session session;
  uint32_t entry = 0;
  Code code = Code::kOk;
  char text[kErrorText] = "";

  ~State() {
    session.destroy();
    delete own_pool;
    if (shared != nullptr) shared->release();
  }
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
  void fail_values(const char* kind, const char* name, const TensorView& view, size_t width, size_t given,
                   size_t has, bool typed);
  Status open_model(std::span<const std::byte> file, const RunnerOptions& options);
  // Takes threads and memory; `packs`: the model's packed weights as well, for all its Runners.
  Status create(const RunnerOptions& options, bool packs);
};

void Runner::State::fail_name(const char* kind, const char* name, bool input) {
  code = Code::kInvalidArgument;
  const uint32_t entry = this->entry;
  const uint32_t count = input ? model().input_count(entry) : model().output_count(entry);
  Text out{text};
  out.put("the model does not have an %s '%s'; its %ss are", kind, name != nullptr ? name : "", kind);
  for (uint32_t i = 0; i < count; ++i)
    out.put("%s '%s'", i > 0 ? "," : "", (input ? model().input(i, entry) : model().output(i, entry)).name);
}

void Runner::State::fail_values(const char* kind, const char* name, const TensorView& view, size_t width,
                                size_t given, size_t has, bool typed) {
  code = Code::kInvalidArgument;
  Text out{text};
  out.put("%s '%s' is %s[", kind, name, dtype_name(view.dtype));
  for (int i = 0; i < view.rank; ++i)
    out.put("%s%lld", i > 0 ? "," : "", static_cast<long long>(view.dims[i]));
  if (!typed)
    out.put("], but elements of another type, of %zu bytes, were given or asked for", width);
  else
    out.put("], %zu elements, but %zu were given or asked for", has, given);
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
  entry = options.entry;
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
  const Result<Requirements> needs = Session::requirements(shared->model, with);
  SINTER_RETURN_IF_ERROR(needs.status());
  SINTER_RETURN_IF_ERROR(memory.allocate(needs.value().bytes));
  Result<Session> created = Session::create(shared->model, memory.span(), with);
  SINTER_RETURN_IF_ERROR(created.status());
  session = std::move(created.value());
  return ok_status();
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
  if (state_ == nullptr || !state_->session.valid()) {
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
  if (state_ == nullptr || !state_->session.valid()) return;
  state_->code = Code::kOk;
  state_->text[0] = '\0';
}

std::byte* Runner::memory_of(const char* name, Port port, uint32_t types, size_t width, size_t* count) {
  if (!ok()) return nullptr;
  const Session& session = state_->session;
  const TensorView view = port == Port::kInput ? session.input(name) : session.output(name);
  const char* const kind = port == Port::kInput ? "input" : "output";
  if (!view.present()) {
    state_->fail_name(kind, name, port == Port::kInput);
    return nullptr;
  }
  const bool raw = types == UINT32_MAX;
  const auto has = static_cast<size_t>(raw ? view.dense_bytes() : view.size());
  const bool typed = (types >> static_cast<int>(view.dtype) & 1) != 0;
  if (!typed || (*count != detail::kAnyCount && *count != has)) {
    state_->fail_values(kind, name, view, width, *count, has, typed);
    return nullptr;
  }
  *count = has;
  return view.data;
}

bool Runner::run() {
  if (!ok()) return false;
  const Status status = state_->session.run();
  return status.ok() || state_->fail(status);
}

bool Runner::reset() {
  if (!ok()) return false;
  state_->session.reset();
  return true;
}

TensorView Runner::port(const char* name) const {
  if (state_ == nullptr || !state_->session.valid()) return {};
  const TensorView input = state_->session.input(name);
  return input.present() ? input : state_->session.output(name);
}

std::span<const int64_t> Runner::shape(const char* name) const {
  if (state_ == nullptr || !state_->session.valid()) return {};
  const Model& model = state_->model();
  const int in = model.find_input(name, state_->entry), out = model.find_output(name, state_->entry);
  if (in >= 0) return model.input(static_cast<uint32_t>(in), state_->entry).dims;
  if (out >= 0) return model.output(static_cast<uint32_t>(out), state_->entry).dims;
  return {};
}

DType Runner::dtype(const char* name) const { return port(name).dtype; }

int64_t Runner::output_length(const char* name, int axis) const {
  if (state_ == nullptr || !state_->session.valid()) return 0;
  const int out = state_->model().find_output(name, state_->entry);
  return out >= 0 ? state_->session.output_length(static_cast<uint32_t>(out), axis) : 0;
}

size_t Runner::bytes() const {
  if (state_ == nullptr || state_->shared == nullptr) return 0;
  return state_->shared->memory.span().size() + state_->shared->packed_memory.span().size() +
         state_->memory.span().size();
}

Session& Runner::session() { return state_->session; }
const Model& Runner::model() const { return state_ != nullptr ? state_->model() : kNoModel; }

}  // namespace sinter

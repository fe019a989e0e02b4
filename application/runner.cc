#include "sinter/runner.h"

#include <cstring>
#include <new>
#include <utility>

#include "application/runner_state.h"

namespace sinter {
namespace {

const Status kNotOpen = invalid("the Runner is not open, so that there cannot be another of its model");

}  // namespace

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
  Status status = runner.state_->shared->open(path, options);
  if (status.ok()) status = runner.state_->create(options, true);
  if (!status.ok()) runner.state_->fail(status, path);
  return runner;
}

Runner Runner::open(std::span<const std::byte> file, const RunnerOptions& options) {
  Runner runner = with_state();
  if (!runner.ok()) return runner;
  Status status = runner.state_->shared->open(file, options);
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
  state->shared = new (std::nothrow) detail::SharedModel;
  if (state->shared == nullptr) state->fail(detail::kNoMemory);
  return Runner(state);
}

void Runner::wait() const {
  if (state_ != nullptr) state_->worker.wait();
}
bool Runner::ok() const {
  wait();
  return state_ != nullptr && state_->code == Code::kOk;
}
Code Runner::code() const {
  wait();
  return state_ != nullptr ? state_->code : Code::kInvalidArgument;
}
const char* Runner::error() const {
  wait();
  return state_ != nullptr ? state_->text : "the Runner is empty; open() gives one";
}
void Runner::clear_error() {
  wait();
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
  if (port == Port::kInput) {
    s.marks.set(s.entry(), static_cast<uint32_t>(i));
    s.marks.give_address(s.entry(), static_cast<uint32_t>(i));
  }
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
  s.marks.set(s.entry(), input);
  return true;
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
  if (status.ok()) s.marks.set(s.entry(), input);
  return status.ok() || s.fail(status);
}

bool Runner::run() {
  if (!ok()) return false;
  state_->cancel.store(false, std::memory_order_relaxed);
  return state_->run();
}

bool Runner::start(void (*done)(void* context, Runner& runner), void* context) {
  if (!ok()) return false;
  const Status status = state_->start(done, context);
  return status.ok() || state_->fail(status);
}

bool Runner::running() const { return state_ != nullptr && state_->worker.busy(); }

void Runner::cancel() const {
  if (state_ != nullptr) state_->cancel.store(true, std::memory_order_relaxed);
}

bool Runner::time_steps(bool on) {
  if (!ok()) return false;
  const Status status = state_->time_steps(on);
  return status.ok() || state_->fail(status);
}
StepTime Runner::step_time(uint32_t program, uint32_t step) const {
  wait();
  return state_ != nullptr ? state_->clock.time_of(program, step) : StepTime();
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

uint32_t Runner::entry() const {
  wait();
  return state_ != nullptr ? state_->entry() : 0;
}

uint32_t Runner::program() const {
  wait();
  if (state_ == nullptr || !state_->opened()) return 0;
  return state_->model().entry_program(state_->entry(), state_->session().profile());
}

bool Runner::use_entry(uint32_t entry) {
  if (!ok()) return false;
  State& s = *state_;
  if (!s.sessions.has(entry))
    return s.fail(invalid("shape set %a is not open; %b are", entry, s.sessions.count()));
  s.marks.forget_all();
  s.sessions.use(entry);
  return true;
}

TensorView Runner::port(const char* name) const {
  wait();
  if (state_ == nullptr || !state_->opened()) return {};
  const TensorView input = state_->session().input(name);
  return input.present() ? input : state_->session().output(name);
}

std::span<const int64_t> Runner::shape(const char* name) const {
  wait();
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
  wait();
  if (state_ == nullptr || !state_->opened()) return 0;
  const int out = state_->model().find_output(name, state_->entry());
  return out >= 0 ? state_->session().output_length(static_cast<uint32_t>(out), axis) : 0;
}

size_t Runner::bytes() const {
  if (state_ == nullptr || state_->shared == nullptr) return 0;
  return state_->shared->memory.span().size() + state_->shared->packed_memory.span().size() +
         state_->memory.span().size() + state_->moving.span().size();
}

Session& Runner::session() {
  wait();
  if (!state_->opened()) return state_->none;
  state_->marks.give_all_addresses();
  return state_->session();
}
const Model& Runner::model() const { return state_ != nullptr ? state_->model() : detail::kNoModel; }

}  // namespace sinter

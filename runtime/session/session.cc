// The public functions of a session, and run().
#include "sinter/session.h"

#include <cstring>
#include <utility>

#include "runtime/core/byte_range.h"
#include "runtime/session/session_creator.h"

namespace sinter {

using detail::RunStep;
using detail::SessionCreator;

namespace {

// Holds a SharedArena or SharedState, if there is one, while a session uses it.
class Hold {
 public:
  explicit Hold(SharedMemory* shared) : shared_(shared), taken_(shared == nullptr || shared->take()) {}
  ~Hold() {
    if (shared_ != nullptr && taken_) shared_->give_back();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  // Ok, or `taken`.
  Status status(const Status& taken) const { return taken_ ? ok_status() : taken; }

 private:
  SharedMemory* shared_;
  bool taken_;
};
constexpr Status kArenaTaken = invalid(
    "another session that shares the arena is running or is being created; run them one after the other, or "
    "give each its own arena");
constexpr Status kStateTaken = invalid(
    "another session that shares the state is running or is being created; run them one after the other, or "
    "give each its own state");

TensorView port_at(const detail::SessionState& session, uint32_t i) {
  return detail::view_of(session.ports[i], detail::flatbuffer_start(session.model));
}

}  // namespace

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    destroy();
    state_ = other.state_;
    other.state_ = nullptr;
  }
  return *this;
}

Result<Requirements> Session::requirements(const Model& model, const SessionOptions& options) {
  return detail::requirements_on(model, options, detail::Pointers::kHere);
}

Result<Requirements> detail::requirements_on(const Model& model, const SessionOptions& options,
                                             Pointers pointers) {
  Requirements needs;
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  SINTER_RETURN_IF_ERROR(SessionCreator(model, options, pointers).measure(&needs));
  return needs;
}

Result<Session> Session::create(const Model& model, std::span<std::byte> memory,
                                const SessionOptions& options) {
  SINTER_RETURN_UNLESS(model.valid(), invalid("the model is empty"));
  const Hold arena(options.arena);
  SINTER_RETURN_IF_ERROR(arena.status(kArenaTaken));
  const Hold kept(options.state);
  SINTER_RETURN_IF_ERROR(kept.status(kStateTaken));
  Session session;
  SINTER_RETURN_IF_ERROR(SessionCreator(model, options).create(memory, &session.state_));
  if (options.state == nullptr || !options.state->begun()) session.reset();
  if (options.state != nullptr) options.state->begin(model.state(), session.profile());
  SINTER_RETURN_IF_ERROR(detail::finish_devices(*session.state_));
  return session;
}

void Session::destroy() {
  if (state_ == nullptr) return;
  (void)detail::finish_devices(*state_);
  for (const detail::StepList* list = &state_->main; list != nullptr; list = list->next)
    for (uint32_t i = 0; i < list->count; ++i) {
      const RunStep& step = list->steps[i];
      if (step.backend == RunStep::kNoBackend) continue;
      PreparedStep prepared{step.run, step.state};
      state_->backends[step.backend]->release(prepared);
    }
  for (uint32_t i = 0; i < state_->device_count; ++i) {
    const detail::DeviceState& device = state_->devices[i];
    if (device.queue != nullptr) device.backend->close_queue(device.queue);
    if (device.staging != nullptr) device.backend->memory()->free_staging(device.staging);
    if (device.owned) device.backend->memory()->free(device.block);
  }
  for (uint32_t i = 0; i < state_->backend_count; ++i) state_->backends[i]->close();
  state_ = nullptr;
}

Status Session::move_to(std::span<std::byte> memory, const SessionOptions& options) {
  SINTER_RETURN_UNLESS(state_ != nullptr, invalid("the session is empty; create one"));
  SINTER_RETURN_UNLESS(!ByteRange(state_, state_->bytes).overlaps({memory.data(), memory.size()}),
                       invalid("the new memory overlaps the session's; give separate memory"));
  const Model model = state_->model;
  Result<Session> created = create(model, memory, options);
  SINTER_RETURN_IF_ERROR(created.status());
  const detail::SessionState& next = *created.value().state_;
  SINTER_RETURN_UNLESS(
      next.entry == state_->entry && next.profile == state_->profile,
      invalid("a session keeps its profile and its entry when it is moved; give those that it has"));
  bool on_device = next.states != state_->states;
  for (uint32_t i = 0; i < state_->device_count; ++i) on_device |= !state_->devices[i].initial.empty();
  for (uint32_t i = 0; i < next.device_count; ++i) on_device |= !next.devices[i].initial.empty();
  SINTER_RETURN_UNLESS(
      !on_device, unsupported("a session with state in device memory cannot be moved; create another one"));
  SINTER_RETURN_IF_ERROR(detail::finish_devices(*state_));
  // The list of initial values names every state, in the plan's order.
  for (uint32_t i = 0; i < next.states; ++i)
    if (next.copies[i].bytes > 0 && next.copies[i].to != state_->copies[i].to)
      std::memcpy(next.copies[i].to, state_->copies[i].to, next.copies[i].bytes);
  for (uint32_t i = 0; i < next.given_count; ++i) next.given[i].now = state_->given[i].now;
  const StepObserver* observer = state_->observer;
  const std::atomic<bool>* cancel = state_->cancel;
  *this = std::move(created.value());
  set_observer(observer);
  set_cancel(cancel);
  return ok_status();
}

uint32_t Session::input_count() const { return state_->inputs; }
uint32_t Session::output_count() const { return state_->outputs; }
TensorView Session::input_at(uint32_t i) const {
  return i < state_->inputs ? port_at(*state_, i) : TensorView{};
}
TensorView Session::output_at(uint32_t i) const {
  return i < state_->outputs ? port_at(*state_, state_->inputs + i) : TensorView{};
}
TensorView Session::state(uint32_t i) const {
  if (i >= state_->named_states) return {};
  const TensorView view = port_at(*state_, state_->inputs + state_->outputs + i);
  return view.memory == 0 ? view : TensorView{};
}
TensorView Session::input(const char* name) const {
  return input(static_cast<uint32_t>(state_->model.find_input(name, state_->entry)));
}
TensorView Session::output(const char* name) const {
  return output(static_cast<uint32_t>(state_->model.find_output(name, state_->entry)));
}

int64_t Session::output_length(uint32_t i, int axis) const {
  const TensorView output = output_at(i);
  if (axis < 0 || axis >= output.rank) return 0;
  const int64_t planned = output.dims[axis];
  const std::byte* used = nullptr;
  for (uint32_t e = 0; e < state_->length_count; ++e)
    if (state_->lengths[e].output == i && state_->lengths[e].axis == axis) used = state_->lengths[e].used;
  if (used == nullptr) return planned;
  int64_t n = 0;
  std::memcpy(&n, used, sizeof(n));
  return n < 0 ? 0 : n > planned ? planned : n;
}

Status Session::run() {
  const Hold arena(state_->arena);
  SINTER_RETURN_IF_ERROR(arena.status(kArenaTaken));
  const Hold kept(state_->shared_state);
  SINTER_RETURN_IF_ERROR(kept.status(kStateTaken));
  SINTER_RETURN_IF_ERROR(detail::place_lengths(*state_));
  detail::CallRoom room;
  state_->room = &room;
  const Status status = detail::run_steps(*state_, state_->main);
  state_->room = nullptr;
  if (!status.ok()) [[unlikely]] {
    (void)detail::finish_devices(*state_);  // what is under way; the first error counts
    return status;
  }
  return detail::copy_all({state_->copies + state_->states, state_->updates});
}

Status Session::run_async(void* stream) {
  SINTER_RETURN_UNLESS(
      state_->device_count == 1 && !state_->host_takes_part && state_->states == 0,
      unsupported("the host has a part in the run; bind all inputs and outputs to device memory, "
                  "or call run()"));
  SINTER_RETURN_UNLESS(state_->given_count == 0,
                       unsupported("the host gives the run the lengths of its inputs; call run()"));
  DeviceQueue& queue = *state_->devices[0].queue;
  SINTER_RETURN_IF_ERROR(queue.begin_after(stream));
  const RunStep* end = state_->main.steps + state_->main.count;
  for (const RunStep* step = state_->main.steps; step != end; step += 1 + step->fused) {
    if (step->run == detail::run_wait) continue;
    RunContext none;
    SINTER_RETURN_IF_ERROR(step->run(step->state, {}, none));
  }
  return queue.end_before(stream);
}

Status Session::wait() { return detail::finish_devices(*state_); }

void Session::reset() {
  for (uint32_t i = 0; i < state_->states; ++i) {
    const detail::CopyItem& item = state_->copies[i];
    if (item.from != nullptr)
      std::memcpy(item.to, item.from, item.bytes);
    else if (item.bytes > 0)
      std::memset(item.to, 0, item.bytes);
  }
  detail::reset_devices(*state_);
}

void Session::set_observer(const StepObserver* observer) {
  state_->observer = observer;
  for (uint32_t i = 0; i < state_->device_count; ++i)
    state_->devices[i].queue->set_stepwise(observer != nullptr);
}

void Session::set_cancel(const std::atomic<bool>* flag) {
  state_->cancel = flag != nullptr ? flag : &detail::kNeverCancelled;
}

const char* Session::step_backend(uint32_t step) const {
  for (uint32_t i = 0; i < state_->main.count; ++i) {
    const RunStep& run = state_->main.steps[i];
    if (run.step == step)
      return run.backend == RunStep::kNoBackend ? "session" : state_->backends[run.backend]->name();
  }
  return "elided";
}

uint32_t Session::profile() const { return state_->profile; }
uint32_t Session::fallbacks() const { return state_->fallbacks; }

const Model& Session::model() const { return state_->model; }

}  // namespace sinter

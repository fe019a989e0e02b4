// The public face of a session, and run().
#include "sinter/session.h"

#include <cstring>

#include "runtime/session/session_state.h"

namespace sinter {

using detail::Creator;
using detail::RunStep;

namespace detail {

Status run_steps(SessionState& session, std::span<RunStep> steps) {
  if (session.observer == nullptr) {
    for (RunStep& step : steps) {
      const Status status = step.run(step.state, step.call, step.context);
      if (!status.ok()) [[unlikely]]
        return status.at(Where::kStep, static_cast<int32_t>(step.info.step));
    }
    return ok_status();
  }
  const StepObserver& observer = *session.observer;
  for (RunStep& step : steps) {
    if (observer.before != nullptr) observer.before(observer.context, step.info);
    const Status status = step.run(step.state, step.call, step.context);
    if (!status.ok()) return status.at(Where::kStep, static_cast<int32_t>(step.info.step));
    if (observer.after != nullptr) observer.after(observer.context, step.info, step.call);
  }
  return ok_status();
}

}  // namespace detail

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    destroy();
    state_ = other.state_;
    other.state_ = nullptr;
  }
  return *this;
}

Result<Requirements> Session::requirements(const Model& model, const SessionOptions& options) {
  Requirements needs;
  SINTER_CHECK(model.valid(), invalid("the model is empty"));
  SINTER_RETURN_IF_ERROR(Creator(model, options).measure(&needs));
  return needs;
}

Result<Session> Session::create(const Model& model, std::span<std::byte> memory,
                                const SessionOptions& options) {
  SINTER_CHECK(model.valid(), invalid("the model is empty"));
  Session session;
  SINTER_RETURN_IF_ERROR(Creator(model, options).create(memory, &session.state_));
  session.reset();
  return session;
}

void Session::destroy() {
  if (state_ == nullptr) return;
  for (detail::Frame* frame = state_->frames; frame != nullptr; frame = frame->next)
    for (RunStep& step : frame->steps)
      if (step.backend != nullptr) {
        PreparedStep prepared{step.run, step.state};
        step.backend->release(prepared);
      }
  for (size_t i = 0; i < state_->open_count; ++i) state_->open[i]->close();
  state_ = nullptr;
}

uint32_t Session::input_count() const { return static_cast<uint32_t>(state_->inputs.size()); }
uint32_t Session::output_count() const { return static_cast<uint32_t>(state_->outputs.size()); }
TensorView Session::input_at(uint32_t i) const {
  return i < state_->inputs.size() ? state_->inputs[i] : TensorView{};
}
TensorView Session::output_at(uint32_t i) const {
  return i < state_->outputs.size() ? state_->outputs[i] : TensorView{};
}
TensorView Session::input(const char* name) const {
  return input(static_cast<uint32_t>(state_->model.find_input(name, state_->program_index)));
}
TensorView Session::output(const char* name) const {
  return output(static_cast<uint32_t>(state_->model.find_output(name, state_->program_index)));
}

int64_t Session::output_extent(uint32_t i, int axis) const {
  if (i >= state_->outputs.size() || axis < 0 || axis >= state_->outputs[i].rank) return 0;
  const int64_t planned = state_->outputs[i].dims[axis];
  const std::byte* used = state_->extents[i].used[axis];
  if (used == nullptr) return planned;
  int64_t n = 0;
  std::memcpy(&n, used, sizeof(n));
  return n < 0 ? 0 : n > planned ? planned : n;
}

Status Session::run() {
  const Status status = detail::run_steps(*state_, state_->steps);
  if (!status.ok()) [[unlikely]]
    return status;
  detail::copy_all(state_->updates);
  return status;
}

void Session::reset() {
  for (const detail::CopyItem& item : state_->initial) {
    if (item.from != nullptr)
      std::memcpy(item.to, item.from, item.bytes);
    else if (item.bytes > 0)
      std::memset(item.to, 0, item.bytes);
  }
}

void Session::set_observer(const StepObserver* observer) { state_->observer = observer; }

const char* Session::step_backend(uint32_t step) const {
  for (const RunStep& run : state_->steps)
    if (run.info.step == step) return run.info.backend;
  return "elided";
}

const Model& Session::model() const { return state_->model; }

}  // namespace sinter

// The C API of runs: in the caller's thread or in one of the session's own, observed, timed, cancelled.
#include <utility>

#include "application/c/handles.h"
#include "application/log.h"

namespace sinter::c {
namespace {

void notify(const sinter_session& session, void (*call)(void*, const sinter_step*), const StepInfo& info) {
  if (call == nullptr || !session.observes) return;
  const sinter_step step{info.program, info.step, info.backend, info.in_body ? 1 : 0};
  call(session.observer.context, &step);
}
void before_step(void* context, const StepInfo& info) {
  auto& session = *static_cast<sinter_session*>(context);
  notify(session, session.observer.before, info);
  session.clock.before(info);
}
void after_step(void* context, const StepInfo& info, const OpCall&) {
  auto& session = *static_cast<sinter_session*>(context);
  session.clock.after(info);
  notify(session, session.observer.after, info);
}

Status start(sinter_session& session, sinter_done done, void* context) {
  SINTER_RETURN_IF_ERROR(session.worker.ready());
  SINTER_RETURN_IF_ERROR(session.marks.check(session.model, session.entry()));
  session.cancel.store(false, std::memory_order_relaxed);
  session.done = done, session.done_context = context;
  return session.worker.start(
      [](void* self) {
        auto& of = *static_cast<sinter_session*>(self);
        (void)result(of.run(), &of.finished, of.model);
        if (of.done == nullptr) return;
        const sinter_error error = of.finished;  // the next run may be started
        of.done(of.done_context, &of, &error);
      },
      &session);
}

void end_clock(sinter_session& session) {
  session.clock.end();
  free_aligned(std::exchange(session.clock_memory, nullptr));
}

Status time_steps(sinter_session& session, void* memory, size_t bytes) {
  const size_t needed = StepClock::bytes(session.model);
  session.worker.wait();
  end_clock(session);
  std::byte* block = nullptr;
  SINTER_RETURN_IF_ERROR(take_block(memory, bytes, needed, &block));
  if (memory == nullptr) session.clock_memory = block;
  session.clock.begin(session.model, {block, needed});
  session.attach();
  return ok_status();
}

Status step_time(const sinter_session& session, uint32_t program, uint32_t step, sinter_step_time* out) {
  const size_t size = out->size;
  SINTER_RETURN_UNLESS(
      size >= sizeof(size_t) && size <= kMaxStructure,
      invalid("the time's size is %a; set it to sizeof(sinter_step_time)", static_cast<int64_t>(size)));
  session.worker.wait();
  SINTER_RETURN_UNLESS(
      session.clock.running(),
      invalid("the session does not time its steps; call sinter_time_steps() before its runs"));
  SINTER_RETURN_UNLESS(program < session.model.program_count() && step < session.model.step_count(program),
                       invalid("the model does not have a step %b in a program %a", program, step));
  const StepTime time = session.clock.time_of(program, step);
  const sinter_step_time all = {size,       time.backend, time.kernel, time.runs, time.nanoseconds,
                                time.least, time.most};
  std::memcpy(out, &all, std::min(size, sizeof all));
  return ok_status();
}

}  // namespace
}  // namespace sinter::c

void sinter_session::attach() {
  const bool observed = observes || clock.running();
  step_observer = {this, sinter::c::before_step, sinter::c::after_step};
  for (sinter::Session& s : sessions.all()) {
    s.set_cancel(&cancel);
    s.set_observer(observed ? &step_observer : nullptr);
  }
}

sinter::Status sinter_session::run() {
  SINTER_RETURN_IF_ERROR(marks.check(model, sessions.entry()));
  const sinter::Status status = sessions.current().run();
  marks.forget();
  return status;
}

using namespace sinter::c;

extern "C" {

sinter_code sinter_run(sinter_session* session, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  session->worker.wait();
  session->cancel.store(false, std::memory_order_relaxed);
  const sinter::Status status = session->run();
  if (status.ok() && error == nullptr) return SINTER_OK;
  return result(status, error, session->model);
}
sinter_code sinter_start(sinter_session* session, sinter_done done, void* context, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  return result(start(*session, done, context), error, session->model);
}
sinter_code sinter_finish(sinter_session* session, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  session->worker.wait();
  if (error != nullptr) *error = session->finished;
  return static_cast<sinter_code>(session->finished.code);
}
int32_t sinter_running(const sinter_session* session) {
  return session != nullptr && session->worker.busy() ? 1 : 0;
}
void sinter_cancel(sinter_session* session) {
  if (session != nullptr) session->cancel.store(true, std::memory_order_relaxed);
}
sinter_code sinter_run_async(sinter_session* session, void* stream, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  return result(session->session().run_async(stream), error, session->model);
}
sinter_code sinter_wait(sinter_session* session, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  return result(session->session().wait(), error, session->model);
}
void sinter_reset(sinter_session* session) {
  if (session == nullptr) return;
  session->worker.wait();
  session->sessions.reset();
}

void sinter_session_observe(sinter_session* session, const sinter_observer* given) {
  if (session == nullptr) return;
  session->worker.wait();
  session->observes = given != nullptr && complete(given, &session->observer).ok();
  session->attach();
}

size_t sinter_time_steps_bytes(const sinter_session* session) {
  return session != nullptr ? sinter::StepClock::bytes(session->model) : 0;
}
sinter_code sinter_time_steps(sinter_session* session, void* memory, size_t bytes, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  return result(time_steps(*session, memory, bytes), error);
}
void sinter_time_steps_end(sinter_session* session) {
  if (session == nullptr) return;
  session->worker.wait();
  end_clock(*session);
  session->attach();
}
sinter_code sinter_session_step_time(const sinter_session* session, uint32_t program, uint32_t step,
                                     sinter_step_time* time, sinter_error* error) {
  if (session == nullptr || time == nullptr) return result(kNull, error);
  return result(step_time(*session, program, step, time), error);
}
uint32_t sinter_session_program(const sinter_session* session) {
  if (session == nullptr) return 0;
  return session->model.entry_program(session->entry(), session->session().profile());
}

void sinter_set_log(sinter_log write, void* context) { sinter::set_log(write, context); }

}  // extern "C"

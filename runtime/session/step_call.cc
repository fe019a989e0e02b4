// A session's small records become the call that a kernel gets just before it runs.
#include <cstddef>
#include <cstring>

#include "runtime/session/session_state.h"

namespace sinter::detail {
namespace {

// Fills a view; its entries beyond the rank stay as they were.
inline void expand(const Operand& o, const std::byte* model, TensorView* view) {
  view->data = o.data;
  // dtype, rank, constant, memory: one word in both.
  static_assert(offsetof(TensorView, memory) == offsetof(TensorView, dtype) + 3 &&
                offsetof(Operand, memory) == offsetof(Operand, dtype) + 3);
  std::memcpy(reinterpret_cast<std::byte*>(view) + offsetof(TensorView, dtype),
              reinterpret_cast<const std::byte*>(&o) + offsetof(Operand, dtype), 4);
  const auto* dims = reinterpret_cast<const int64_t*>(model + o.dims);
  if (o.strides == 0) {
    auto stride = static_cast<int64_t>(byte_width(o.dtype));
    for (int i = o.rank - 1; i >= 0; --i) {
      const int64_t dim = dims[i];
      view->dims[i] = dim;
      view->strides[i] = stride;
      stride *= dim;
    }
    return;
  }
  const auto* strides = reinterpret_cast<const int64_t*>(model + o.strides);
  for (int i = 0; i < o.rank; ++i) view->dims[i] = dims[i], view->strides[i] = strides[i];
}

OpCall call_of(const SessionState& session, const RunStep& step, const std::byte* model) {
  CallRoom& room = *session.room;
  const uint32_t count = step.inputs + step.outputs;
  if (step.call == CallUse::kKept) return step.kept->call;
  auto* views = count <= kStackOperands ? reinterpret_cast<TensorView*>(room.operands) : session.views;
  for (uint32_t i = 0; i < count; ++i) expand(step.operands[i], model, views + i);
  const void* attributes = &room.attributes;
  if (step.keeps_attributes) {
    attributes = step.attributes.kept;
  } else {
    // Verified when the model was opened.
    (void)decode_attrs(*reinterpret_cast<const fb::Step*>(model + step.attributes.table), &room.attributes);
  }
  return {step.op, attributes, {views, step.inputs}, {views + step.inputs, step.outputs}};
}

RunContext context_of(const SessionState& session, const RunStep& step) {
  return {{step.workspace, step.workspace_bytes}, session.threads_of(step.pool)};
}

// Returns the status of a run that is cancelled before this step.
[[gnu::cold, gnu::noinline]] Status cancelled_before(const RunStep& step, const StepList& list) {
  return step.step == RunStep::kNoStep ? kCancelled : kCancelled.at_step(step.step, list.program);
}

Status run_observed(SessionState& session, const StepList& list, const StepObserver& observer) {
  const std::byte* model = flatbuffer_start(session.model);
  for (uint32_t i = 0; i < list.count; ++i) {
    const RunStep& step = list.steps[i];
    if (session.cancelled()) return cancelled_before(step, list);
    if (step.step == RunStep::kNoStep) {
      RunContext none;
      SINTER_RETURN_IF_ERROR(step.run(step.state, {}, none));
      continue;
    }
    const bool control = step.backend == RunStep::kNoBackend;
    StepInfo info{list.program, step.step, "session", nullptr, list.program != session.main.program};
    if (!control) {
      const Backend& backend = *session.backends[step.backend];
      info.backend = backend.name(), info.kernel = backend.kernel_name({step.run, step.state});
    }
    if (observer.before != nullptr) observer.before(observer.context, info);
    RunContext context = context_of(session, step);
    OpCall call = call_of(session, step, model);
    Status status = step.run(step.state, call, context);
    if (status.ok())
      status =
          control ? finish_devices(session) : finish_devices_of(session, *session.backends[step.backend]);
    if (!status.ok()) return status.at_step(step.step, list.program);
    if (control) call = call_of(session, step, model);  // its own steps have used the room
    if (observer.after != nullptr) observer.after(observer.context, info, call);
  }
  return ok_status();
}

}  // namespace

const std::byte* flatbuffer_start(const Model& model) { return model.state()->flatbuffer; }

TensorView view_of(const Operand& operand, const std::byte* model) {
  TensorView view;
  expand(operand, model, &view);
  return view;
}

Status run_steps(SessionState& session, const StepList& list) {
  const StepObserver* observer = session.observer;
  if (observer != nullptr) return run_observed(session, list, *observer);
  const std::byte* model = flatbuffer_start(session.model);
  const OpCall nothing;
  RunContext no_context;
  for (RunStep *step = list.steps, *end = step + list.count; step != end; step += 1 + step->fused) {
    if (session.cancelled()) [[unlikely]]
      return cancelled_before(*step, list);
    Status status;
    if (step->call == CallUse::kKept) {
      status = step->run(step->state, step->kept->call, step->kept->context);
    } else if (step->call == CallUse::kUnused) {
      status = step->run(step->state, nothing, no_context);
    } else {
      RunContext context = context_of(session, *step);
      status = step->run(step->state, call_of(session, *step, model), context);
    }
    if (!status.ok()) [[unlikely]]
      return step->step == RunStep::kNoStep ? status : status.at_step(step->step, list.program);
  }
  return ok_status();
}

}  // namespace sinter::detail

// The C API of threads, sessions and packed weights.
#include <utility>

#include "application/c/options.h"
#include "sinter/backends.h"

namespace sinter::c {
namespace {

// As much of them as the caller's header has.
Status write_requirements(const Requirements& needs, size_t handle, sinter_requirements* out) {
  const size_t size = out->size;
  SINTER_RETURN_UNLESS(size >= sizeof(size_t) && size <= kMaxStructure,
                       invalid("the requirements' size is %a; set it to sizeof(sinter_requirements)",
                               static_cast<int64_t>(size)));
  sinter_requirements all = {};
  all.size = size;
  all.bytes = needs.bytes + handle;
  all.control = needs.control;
  all.arena = needs.arena;
  all.prepared = needs.prepared;
  all.packed = needs.packed;
  all.device_count = needs.device_count;
  for (uint32_t i = 0; i < needs.device_count; ++i) {
    const DeviceRequirements& d = needs.devices[i];
    all.devices[i] = {d.backend, d.bytes, d.arena, d.prepared, d.staging};
  }
  std::memcpy(out, &all, std::min(size, sizeof all));
  return ok_status();
}

constexpr size_t kSessionHandle = handle_bytes(sizeof(sinter_session));
constexpr size_t kPackedHandle = handle_bytes(sizeof(sinter_packed_weights));

Status create_session(const sinter_model& model, const sinter_session_options* options,
                      sinter_session** session) {
  Converted call;
  SINTER_RETURN_IF_ERROR(call.convert(model.model, options));
  const Result<sinter::Requirements> needs = Session::requirements(model.model, call.options);
  SINTER_RETURN_IF_ERROR(needs.status());
  std::byte* block = nullptr;
  SINTER_RETURN_IF_ERROR(
      take_block(call.given.memory, call.given.memory_bytes, kSessionHandle + needs->bytes, &block));
  auto* handle = new (block) sinter_session;
  handle->on_heap = call.given.memory == nullptr;
  handle->entry = call.options.entry;
  if (call.given.own_pool != nullptr) {
    handle->own_pool.set(*call.given.own_pool);
    call.options.threads = &handle->own_pool;
  }
  call.reports = call.given.on_fallback != nullptr;  // once: measuring would report them as well
  Result<sinter::Session> created =
      Session::create(model.model, {block + kSessionHandle, needs->bytes}, call.options);
  if (!created.ok()) {
    destroy(handle);
    return created.status();
  }
  handle->session = std::move(created.value());
  *session = handle;
  return ok_status();
}

Status create_packed(const sinter_model& model, const sinter_session_options* options,
                     sinter_packed_weights** packed) {
  Converted call;
  SINTER_RETURN_IF_ERROR(call.convert(model.model, options));
  const Result<sinter::Requirements> needs = PackedWeights::requirements(model.model, call.options);
  SINTER_RETURN_IF_ERROR(needs.status());
  std::byte* block = nullptr;
  SINTER_RETURN_IF_ERROR(
      take_block(call.given.memory, call.given.memory_bytes, kPackedHandle + needs->bytes, &block));
  auto* handle = new (block) sinter_packed_weights;
  handle->on_heap = call.given.memory == nullptr;
  const Result<sinter::PackedWeights> created =
      PackedWeights::create(model.model, {block + kPackedHandle, needs->bytes}, call.options);
  if (!created.ok()) {
    destroy(handle);
    return created.status();
  }
  handle->packed = *created;
  *packed = handle;
  return ok_status();
}

enum class Port { kInput, kOutput };

Status port_at(const sinter_session& session, Port port, uint32_t index, sinter_tensor* tensor) {
  const Session& of = session.session;
  const bool in = port == Port::kInput;
  const uint32_t count = in ? of.input_count() : of.output_count();
  SINTER_RETURN_UNLESS(index < count, invalid(in ? "the model has %a inputs, not number %b"
                                                 : "the model has %a outputs, not number %b",
                                              count, index));
  describe(in ? of.model().input(index, session.entry) : of.model().output(index, session.entry),
           (in ? of.input(index) : of.output(index)).data, tensor);
  return ok_status();
}

Status find_port(const sinter_session& session, Port port, const char* name, sinter_tensor* tensor) {
  const Model& model = session.session.model();
  const bool in = port == Port::kInput;
  const int i = in ? model.find_input(name, session.entry) : model.find_output(name, session.entry);
  SINTER_RETURN_UNLESS(
      i >= 0, invalid(in ? "the model does not have an input '%s'" : "the model does not have an output '%s'",
                      name_of(name)));
  return port_at(session, port, static_cast<uint32_t>(i), tensor);
}

Status check_values(const sinter_session& session, const sinter_tensor& tensor, Port port, sinter_type type,
                    size_t bytes) {
  const Model& model = session.session.model();
  const bool in = port == Port::kInput;
  const int index =
      in ? model.find_input(tensor.name, session.entry) : model.find_output(tensor.name, session.entry);
  const auto at = [&](const Status& status) { return status.at(in ? Where::kInput : Where::kOutput, index); };
  SINTER_RETURN_UNLESS(tensor.type == static_cast<int32_t>(type),
                       at(invalid("its type is %A but the values are %B", tensor.type, type)));
  SINTER_RETURN_UNLESS(tensor.bytes == bytes,
                       at(invalid("it has %a bytes but the values have %b",
                                  static_cast<int64_t>(tensor.bytes), static_cast<int64_t>(bytes))));
  return ok_status();
}

void notify(const sinter_session& session, void (*call)(void*, const sinter_step*), const StepInfo& info) {
  if (call == nullptr) return;
  const sinter_step step{info.program, info.step, info.backend, info.in_body ? 1 : 0};
  call(session.observer.context, &step);
}
void before_step(void* context, const StepInfo& info) {
  const auto& session = *static_cast<const sinter_session*>(context);
  notify(session, session.observer.before, info);
}
void after_step(void* context, const StepInfo& info, const OpCall&) {
  const auto& session = *static_cast<const sinter_session*>(context);
  notify(session, session.observer.after, info);
}

}  // namespace
}  // namespace sinter::c

using namespace sinter::c;

extern "C" {

sinter_pool* sinter_pool_create(int32_t threads) {
  return threads >= 0 ? new (std::nothrow) sinter_pool(threads, {}) : nullptr;
}
sinter_code sinter_pool_create_with(int32_t threads, const sinter_thread_settings* settings,
                                    sinter_pool** pool, sinter_error* error) {
  if (pool == nullptr) return result(kNull, error);
  *pool = nullptr;
  sinter_thread_settings given;
  if (const sinter::Status s = complete(settings, &given); !s.ok()) return result(s, error);
  if (threads < 0)
    return result(sinter::invalid("a pool cannot have %a threads; give 0 for all processors", threads),
                  error);
  if (given.processors == nullptr && given.processor_count != 0) return result(kNull, error);
  auto* made = new (std::nothrow)
      sinter_pool(threads, {{given.processors, given.processor_count}, given.nice, given.realtime});
  if (made == nullptr)
    return result(sinter::error(sinter::Code::kOutOfMemory, "memory for the pool cannot be allocated"),
                  error);
  const sinter::Status status = made->pool.status();
  if (status.ok())
    *pool = made;
  else
    delete made;
  return result(status, error);
}
size_t sinter_fastest_processors(int32_t* processors, size_t count) {
  return processors != nullptr ? static_cast<size_t>(sinter::fastest_processors({processors, count})) : 0;
}
void sinter_pool_destroy(sinter_pool* pool) { delete pool; }
int32_t sinter_pool_threads(const sinter_pool* pool) {
  return pool != nullptr ? pool->pool.thread_count() : 1;
}

sinter_code sinter_session_requirements(const sinter_model* model, const sinter_session_options* options,
                                        sinter_requirements* requirements, sinter_error* error) {
  if (model == nullptr || requirements == nullptr) return result(kNull, error);
  Converted call;
  if (const sinter::Status s = call.convert(model->model, options); !s.ok())
    return result(s, error, model->model);
  call.reports = call.given.on_fallback != nullptr;
  const sinter::Result<sinter::Requirements> needs =
      sinter::Session::requirements(model->model, call.options);
  sinter::Status status = needs.status();
  if (status.ok()) status = write_requirements(*needs, kSessionHandle, requirements);
  return result(status, error, model->model);
}

sinter_code sinter_session_create(const sinter_model* model, const sinter_session_options* options,
                                  sinter_session** session, sinter_error* error) {
  if (model == nullptr || session == nullptr) return result(kNull, error);
  return result(create_session(*model, options, session), error, model->model);
}
void sinter_session_destroy(sinter_session* session) { destroy(session); }

sinter_code sinter_packed_requirements(const sinter_model* model, const sinter_session_options* options,
                                       sinter_requirements* requirements, sinter_error* error) {
  if (model == nullptr || requirements == nullptr) return result(kNull, error);
  Converted call;
  if (const sinter::Status s = call.convert(model->model, options); !s.ok())
    return result(s, error, model->model);
  const sinter::Result<sinter::Requirements> needs =
      sinter::PackedWeights::requirements(model->model, call.options);
  sinter::Status status = needs.status();
  if (status.ok()) status = write_requirements(*needs, kPackedHandle, requirements);
  return result(status, error, model->model);
}

sinter_code sinter_packed_create(const sinter_model* model, const sinter_session_options* options,
                                 sinter_packed_weights** packed, sinter_error* error) {
  if (model == nullptr || packed == nullptr) return result(kNull, error);
  return result(create_packed(*model, options, packed), error, model->model);
}
void sinter_packed_destroy(sinter_packed_weights* packed) { destroy(packed); }

sinter_code sinter_session_input(const sinter_session* session, const char* name, sinter_tensor* input,
                                 sinter_error* error) {
  if (session == nullptr || name == nullptr || input == nullptr) return result(kNull, error);
  return result(find_port(*session, Port::kInput, name, input), error);
}
sinter_code sinter_session_output(const sinter_session* session, const char* name, sinter_tensor* output,
                                  sinter_error* error) {
  if (session == nullptr || name == nullptr || output == nullptr) return result(kNull, error);
  return result(find_port(*session, Port::kOutput, name, output), error);
}
sinter_code sinter_session_input_at(const sinter_session* session, uint32_t index, sinter_tensor* input,
                                    sinter_error* error) {
  if (session == nullptr || input == nullptr) return result(kNull, error);
  return result(port_at(*session, Port::kInput, index, input), error);
}
sinter_code sinter_session_output_at(const sinter_session* session, uint32_t index, sinter_tensor* output,
                                     sinter_error* error) {
  if (session == nullptr || output == nullptr) return result(kNull, error);
  return result(port_at(*session, Port::kOutput, index, output), error);
}
int64_t sinter_session_output_length(const sinter_session* session, const char* name, int32_t axis) {
  if (session == nullptr || name == nullptr) return 0;
  const int i = session->session.model().find_output(name, session->entry);
  return i >= 0 ? session->session.output_length(static_cast<uint32_t>(i), axis) : 0;
}

sinter_code sinter_set(sinter_session* session, const char* name, sinter_type type, const void* data,
                       size_t bytes, sinter_error* error) {
  if (session == nullptr || name == nullptr || (data == nullptr && bytes > 0)) return result(kNull, error);
  sinter_tensor tensor;
  sinter::Status status = find_port(*session, Port::kInput, name, &tensor);
  if (status.ok()) status = check_values(*session, tensor, Port::kInput, type, bytes);
  if (status.ok() && bytes > 0) std::memcpy(tensor.data, data, bytes);
  return result(status, error, session->session.model());
}
sinter_code sinter_get(const sinter_session* session, const char* name, sinter_type type, void* data,
                       size_t bytes, sinter_error* error) {
  if (session == nullptr || name == nullptr || (data == nullptr && bytes > 0)) return result(kNull, error);
  sinter_tensor tensor;
  sinter::Status status = find_port(*session, Port::kOutput, name, &tensor);
  if (status.ok()) status = check_values(*session, tensor, Port::kOutput, type, bytes);
  if (status.ok() && bytes > 0) std::memcpy(data, tensor.data, bytes);
  return result(status, error, session->session.model());
}

sinter_code sinter_run(sinter_session* session, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  const sinter::Status status = session->session.run();
  if (status.ok() && error == nullptr) return SINTER_OK;
  return result(status, error, session->session.model());
}
sinter_code sinter_run_async(sinter_session* session, void* stream, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  return result(session->session.run_async(stream), error, session->session.model());
}
sinter_code sinter_wait(sinter_session* session, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  return result(session->session.wait(), error, session->session.model());
}
void sinter_reset(sinter_session* session) {
  if (session != nullptr) session->session.reset();
}

uint32_t sinter_session_profile(const sinter_session* session) {
  return session != nullptr ? session->session.profile() : 0;
}
uint32_t sinter_session_fallbacks(const sinter_session* session) {
  return session != nullptr ? session->session.fallbacks() : 0;
}
const char* sinter_session_step_backend(const sinter_session* session, uint32_t step) {
  return session != nullptr ? session->session.step_backend(step) : nullptr;
}

void sinter_session_observe(sinter_session* session, const sinter_observer* given) {
  if (session == nullptr) return;
  if (given == nullptr || !complete(given, &session->observer).ok()) {
    session->session.set_observer(nullptr);
    return;
  }
  session->step_observer = {session, before_step, after_step};
  session->session.set_observer(&session->step_observer);
}

const char* sinter_backend_name(uint32_t index) {
  const auto all = sinter::default_backends();
  return index < all.size() ? all[index]->name() : nullptr;
}

}  // extern "C"

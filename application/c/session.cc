// The C API of threads, sessions and packed weights.
#include <utility>

#include "application/c/options.h"
#include "application/log.h"
#include "application/text.h"
#include "sinter/backends.h"
#include "sinter/pack_file.h"

namespace sinter::c {
namespace {

// Writes as many of the numbers as the caller's header has.
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
  all.state = needs.state;
  all.shareable = needs.shareable;
  for (uint32_t i = 0; i < needs.device_count; ++i) {
    const DeviceRequirements& d = needs.devices[i];
    all.devices[i] = {d.backend, d.bytes, d.arena, d.prepared, d.staging};
  }
  std::memcpy(out, &all, std::min(size, sizeof all));
  return ok_status();
}

// The differences between the functions of sessions and of packed weights.
struct SessionTraits {
  using Handle = sinter_session;
  // Returns the bytes between the handle and the memory of the object.
  static size_t marks(const Model& model) { return handle_bytes(InputMarks::bytes(model)); }
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options) {
    return EntrySessions::requirements(model, options);
  }
  static void prepare(Handle* handle, const Model& model, Converted* call) {
    handle->model = model;
    call->logs_fallbacks = logs();
    handle->marks.begin(
        model, call->options,
        {reinterpret_cast<uint8_t*>(handle) + handle_bytes(sizeof(Handle)), InputMarks::bytes(model)});
    if (call->given.own_pool == nullptr) return;
    handle->own_pool.set(*call->given.own_pool);
    call->options.threads = &handle->own_pool;
  }
  static Status create(Handle* handle, const Model& model, const Requirements& needs,
                       std::span<std::byte> memory, const SessionOptions& options) {
    SINTER_RETURN_IF_ERROR(handle->sessions.create(model, needs, memory, options));
    handle->attach();
    if (logs()) log_session(handle->session(), needs);
    return ok_status();
  }
};
struct PackedTraits {
  using Handle = sinter_packed_weights;
  static size_t marks(const Model&) { return 0; }
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options) {
    return PackedWeights::requirements(model, options);
  }
  static void prepare(Handle*, const Model&, Converted*) {}
  static Status create(Handle* handle, const Model& model, const Requirements&, std::span<std::byte> memory,
                       const SessionOptions& options) {
    Result<PackedWeights> created = PackedWeights::create(model, memory, options);
    SINTER_RETURN_IF_ERROR(created.status());
    handle->packed = *created;
    return ok_status();
  }
};
template <class Traits>
size_t bytes_before(const Model& model) {
  return handle_bytes(sizeof(typename Traits::Handle)) + Traits::marks(model);
}

template <class Traits>
sinter_code requirements(const sinter_model* model, const sinter_session_options* options,
                         sinter_requirements* needs, sinter_error* error) {
  if (model == nullptr || needs == nullptr) return result(kNull, error);
  Converted call;
  Status status = call.convert(model->model, options);
  if (status.ok()) {
    call.reports = call.given.on_fallback != nullptr;
    const Result<Requirements> found = Traits::requirements(model->model, call.options);
    status =
        found.ok() ? write_requirements(*found, bytes_before<Traits>(model->model), needs) : found.status();
  }
  return result(status, error, model->model);
}

// A block for a handle and its memory, and the options with which the object is created.
template <class Traits>
struct Taken {
  Converted call;
  Requirements needs;
  typename Traits::Handle* handle = nullptr;
  std::span<std::byte> memory;

  Status take(const Model& model, const sinter_session_options* options) {
    SINTER_RETURN_IF_ERROR(call.convert(model, options));
    const Result<Requirements> found = Traits::requirements(model, call.options);
    SINTER_RETURN_IF_ERROR(found.status());
    needs = *found;
    std::byte* block = nullptr;
    const size_t before = bytes_before<Traits>(model);
    SINTER_RETURN_IF_ERROR(
        take_block(call.given.memory, call.given.memory_bytes, before + needs.bytes, &block));
    handle = new (block) typename Traits::Handle;
    handle->on_heap = call.given.memory == nullptr;
    Traits::prepare(handle, model, &call);
    call.reports = call.given.on_fallback != nullptr;  // once: measuring would report them as well
    memory = {block + before, needs.bytes};
    return ok_status();
  }
};

template <class Traits>
sinter_code create(const sinter_model* model, const sinter_session_options* options,
                   typename Traits::Handle** out, sinter_error* error) {
  if (model == nullptr || out == nullptr) return result(kNull, error);
  Taken<Traits> taken;
  Status status = taken.take(model->model, options);
  if (status.ok()) {
    status = Traits::create(taken.handle, model->model, taken.needs, taken.memory, taken.call.options);
    if (status.ok())
      *out = taken.handle;
    else
      destroy(taken.handle);
  }
  return result(status, error, model->model);
}

Status move(sinter_session** session, const sinter_session_options* options) {
  sinter_session& old = **session;
  old.worker.wait();
  // The options are converted before a handle is placed there.
  sinter_session_options given;
  SINTER_RETURN_IF_ERROR(complete(options, &given));
  const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  const std::span<const std::byte> block = old.sessions.block();
  SINTER_RETURN_UNLESS(given.memory == nullptr ||
                           address(given.memory) >= address(block.data()) + block.size() ||
                           address(&old) >= address(given.memory) + given.memory_bytes,
                       invalid("the new memory overlaps the session's; give separate memory"));
  Taken<SessionTraits> taken;
  SINTER_RETURN_IF_ERROR(taken.take(old.model, options));
  sinter_session* handle = taken.handle;
  if (const Status status =
          handle->sessions.move_from(old.sessions, old.model, taken.needs, taken.memory, taken.call.options);
      !status.ok()) {
    destroy(handle);
    return status;
  }
  handle->observer = old.observer, handle->observes = old.observes;
  handle->clock = old.clock, handle->clock_memory = std::exchange(old.clock_memory, nullptr);
  handle->attach();
  destroy(&old);
  *session = handle;
  return ok_status();
}

// Goes on with a shape set of the session, whose inputs have to be set anew.
void use_entry(sinter_session& session, uint32_t entry) {
  if (entry != session.entry()) session.marks.forget_all();
  session.sessions.use(entry);
}

Status select(sinter_session& session, const sinter_shape* shapes, size_t count) {
  const Model& model = session.model;
  const EntrySessions& all = session.sessions;
  for (size_t i = 0; i < count; ++i) {
    SINTER_RETURN_UNLESS(shapes[i].name != nullptr && shapes[i].rank >= 0 &&
                             (shapes[i].dims != nullptr || shapes[i].rank == 0),
                         kNull);
    SINTER_RETURN_UNLESS(model.find_input(shapes[i].name, session.entry()) >= 0,
                         invalid("the model does not have an input '%s'", name_of(shapes[i].name)));
  }
  const auto takes = [&](uint32_t entry) {
    return std::all_of(shapes, shapes + count, [&](const sinter_shape& s) {
      return model.takes({s.name, {s.dims, static_cast<size_t>(s.rank)}}, entry);
    });
  };
  uint32_t entry = all.first();
  while (all.has(entry) && !takes(entry)) ++entry;
  SINTER_RETURN_UNLESS(
      all.has(entry),
      invalid("no shape set of the session has inputs of these shapes; sinter_model_input() lists those of "
              "each of its %a sets",
              all.count()));
  use_entry(session, entry);
  return ok_status();
}

sinter_code pack_file(const char* from, const char* to, bool packed_only, uint32_t* count,
                      sinter_error* error) {
  if (from == nullptr || to == nullptr) return result(kNull, error);
  const sinter::PackReport report = sinter::pack_file(from, to, {}, packed_only);
  if (error != nullptr) {
    error->code = static_cast<int32_t>(report.code);
    sinter::Text text{error->text};
    text.put("%s", report.text);
  }
  if (report.ok() && count != nullptr) *count = report.count;
  return static_cast<sinter_code>(report.code);
}

}  // namespace
}  // namespace sinter::c

using namespace sinter::c;

extern "C" {

sinter_pool* sinter_pool_create(int32_t threads) {
  sinter_pool* pool = nullptr;
  (void)sinter_pool_create_with(threads, nullptr, &pool, nullptr);
  return pool;
}
sinter_code sinter_pool_create_with(int32_t threads, const sinter_thread_settings* settings,
                                    sinter_pool** pool, sinter_error* error) {
  if (pool == nullptr) return result(kNull, error);
  *pool = nullptr;
  sinter_thread_settings given;
  if (const sinter::Status s = complete(settings, &given); !s.ok()) return result(s, error);
  if (threads < 0 || threads > sinter::PthreadPool::kMostThreads)
    return result(sinter::invalid("a pool cannot have %a threads; give 1 to %b, or 0 for all processors",
                                  threads, sinter::PthreadPool::kMostThreads),
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
                                        sinter_requirements* needs, sinter_error* error) {
  return requirements<SessionTraits>(model, options, needs, error);
}
sinter_code sinter_session_create(const sinter_model* model, const sinter_session_options* options,
                                  sinter_session** session, sinter_error* error) {
  return create<SessionTraits>(model, options, session, error);
}
void sinter_session_destroy(sinter_session* session) { destroy(session); }
sinter_code sinter_session_move(sinter_session** session, const sinter_session_options* options,
                                sinter_error* error) {
  if (session == nullptr || *session == nullptr) return result(kNull, error);
  const sinter::Model model = (*session)->model;
  return result(move(session, options), error, model);
}

sinter_code sinter_session_select(sinter_session* session, const sinter_shape* shapes, size_t count,
                                  sinter_error* error) {
  if (session == nullptr || (shapes == nullptr && count > 0)) return result(kNull, error);
  return result(select(*session, shapes, count), error, session->model);
}
sinter_code sinter_session_use_entry(sinter_session* session, uint32_t entry, sinter_error* error) {
  if (session == nullptr) return result(kNull, error);
  const sinter::EntrySessions& sessions = session->sessions;
  if (!sessions.has(entry))
    return result(sinter::invalid("the session does not have shape set %a; it has %b from the first on",
                                  entry, sessions.count()),
                  error);
  use_entry(*session, entry);
  return result(sinter::ok_status(), error);
}
uint32_t sinter_session_entry(const sinter_session* session) {
  return session != nullptr ? session->entry() : 0;
}

sinter_code sinter_packed_requirements(const sinter_model* model, const sinter_session_options* options,
                                       sinter_requirements* needs, sinter_error* error) {
  return requirements<PackedTraits>(model, options, needs, error);
}
sinter_code sinter_packed_create(const sinter_model* model, const sinter_session_options* options,
                                 sinter_packed_weights** packed, sinter_error* error) {
  return create<PackedTraits>(model, options, packed, error);
}
void sinter_packed_destroy(sinter_packed_weights* packed) { destroy(packed); }
sinter_code sinter_pack_file(const char* from, const char* to, uint32_t* count, sinter_error* error) {
  return pack_file(from, to, false, count, error);
}
sinter_code sinter_pack_file_packed_only(const char* from, const char* to, uint32_t* count,
                                         sinter_error* error) {
  return pack_file(from, to, true, count, error);
}

sinter_code sinter_arena_create(void* memory, size_t bytes, sinter_arena** arena, sinter_error* error) {
  if (arena == nullptr) return result(kNull, error);
  std::byte* block = nullptr;
  const size_t all = memory != nullptr ? bytes : bytes + SINTER_ARENA_HANDLE;
  const sinter::Status status =
      all < bytes || all < SINTER_ARENA_HANDLE
          ? sinter::invalid("an arena cannot have %a bytes; its handle takes %b of the memory",
                            static_cast<int64_t>(bytes), SINTER_ARENA_HANDLE)
          : take_block(memory, bytes, memory != nullptr ? SINTER_ARENA_HANDLE : all, &block);
  if (status.ok()) {
    *arena = new (block) sinter_arena({block + SINTER_ARENA_HANDLE, all - SINTER_ARENA_HANDLE});
    (*arena)->on_heap = memory == nullptr;
  }
  return result(status, error);
}
void sinter_arena_destroy(sinter_arena* arena) { destroy(arena); }

uint32_t sinter_session_profile(const sinter_session* session) {
  return session != nullptr ? session->session().profile() : 0;
}
uint32_t sinter_session_fallbacks(const sinter_session* session) {
  return session != nullptr ? session->session().fallbacks() : 0;
}
const char* sinter_session_step_backend(const sinter_session* session, uint32_t step) {
  return session != nullptr ? session->session().step_backend(step) : nullptr;
}

const char* sinter_backend_name(uint32_t index) {
  const auto all = sinter::default_backends();
  return index < all.size() ? all[index]->name() : nullptr;
}

}  // extern "C"

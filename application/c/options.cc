#include "application/c/options.h"

#include "application/log.h"
#include "sinter/backends.h"

namespace sinter::c {
namespace {

void report(void* context, const Fallback& f) {
  const auto& call = *static_cast<const Converted*>(context);
  if (call.logs_fallbacks) log_fallback(*call.model, f);
  if (!call.reports) return;
  char reason[SINTER_ERROR_TEXT];
  call.model->format(f.reason, reason);
  const sinter_fallback fallback{f.program, f.step, f.expected, f.backend, reason};
  call.given.on_fallback(call.given.on_fallback_context, &fallback);
}

}  // namespace

Status Converted::convert(const Model& of, const sinter_session_options* from) {
  model = &of;
  SINTER_RETURN_IF_ERROR(complete(from, &given));
  options.backends = default_backends();
  if (given.backends != nullptr) {
    SINTER_RETURN_UNLESS(given.backend_count <= kMaxBackends, invalid("more than %a backends", kMaxBackends));
    for (size_t i = 0; i < given.backend_count; ++i) {
      const char* name = given.backends[i] != nullptr ? given.backends[i] : "";
      const auto all = default_backends();
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const Backend* b) { return std::strcmp(b->name(), name) == 0; });
      SINTER_RETURN_UNLESS(found != all.end(),
                           invalid("this build does not have a backend '%s'", name_of(name)));
      backends[i] = *found;
    }
    options.backends = {backends, given.backend_count};
  }
  SINTER_RETURN_UNLESS(given.pool == nullptr || given.own_pool == nullptr,
                       invalid("two thread pools were given; leave one out"));
  if (given.pool != nullptr) options.threads = &given.pool->pool;
  if (given.own_pool != nullptr) {
    SINTER_RETURN_UNLESS(given.own_pool->parallel_for != nullptr && given.own_pool->threads >= 1,
                         invalid("a thread pool needs parallel_for and at least one thread"));
    own_pool.set(*given.own_pool);
    options.threads = &own_pool;
  }
  options.profile = given.profile;
  options.backend = given.backend;
  SINTER_RETURN_UNLESS(given.entry < of.entry_count() || given.entry == kEveryEntry,
                       invalid("the model has %a shape sets, not number %b", of.entry_count(), given.entry));
  options.entry = given.entry;
  options.require_planned = given.require_planned != 0;
  SINTER_RETURN_UNLESS(given.binding_count <= kMaxBindings,
                       invalid("%b bindings were given; at most %a are possible", kMaxBindings,
                               static_cast<int64_t>(given.binding_count)));
  for (size_t i = 0; i < given.binding_count; ++i) {
    const sinter_binding& b = given.bindings[i];
    bindings[i] = {b.name, {static_cast<std::byte*>(b.data), b.bytes}, b.device};
  }
  options.bindings = {bindings, given.binding_count};
  SINTER_RETURN_UNLESS(given.device_count <= kMaxDevices, invalid("more than %a devices", kMaxDevices));
  for (size_t i = 0; i < given.device_count; ++i) {
    const sinter_device_block& b = given.devices[i];
    devices[i] = {b.backend, {static_cast<std::byte*>(b.data), b.bytes}};
  }
  options.devices = {devices, given.device_count};
  if (given.packed_weights != nullptr) options.packed_weights = &given.packed_weights->packed;
  options.packed_in_file = packed_in_file();
  if (given.arena != nullptr) options.arena = &given.arena->arena;
  if (given.on_fallback != nullptr || logs()) options.on_fallback = {this, report};
  return ok_status();
}

}  // namespace sinter::c

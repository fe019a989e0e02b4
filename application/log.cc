#include "application/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace sinter {
namespace {

struct Listener {
  LogWrite write = nullptr;
  void* context = nullptr;
};
constinit Listener listener;
constinit std::atomic_flag taken = ATOMIC_FLAG_INIT;  // by a thread that reads or writes `listener`

Listener exchange(const Listener* next) {
  while (taken.test_and_set(std::memory_order_acquire)) {
  }
  const Listener found = listener;
  if (next != nullptr) listener = *next;
  taken.clear(std::memory_order_release);
  return found;
}

// Returns whether a plan's target, such as "x86_64+avx2", is of this machine's architecture, or of any.
bool fits_this_machine(const char* target) {
  const auto begins = [&](const char* name) { return std::strncmp(target, name, std::strlen(name)) == 0; };
#if defined(__x86_64__) || defined(_M_X64)
  return begins("portable") || begins("x86_64");
#elif defined(__aarch64__)
  return begins("portable") || begins("aarch64");
#elif defined(__arm__)
  return begins("portable") || begins("armv7");
#else
  return begins("portable");
#endif
}

}  // namespace

void set_log(LogWrite write, void* context) {
  const Listener next{write, context};
  (void)exchange(&next);
}

bool logs() { return exchange(nullptr).write != nullptr; }

void log_message(LogLevel level, const char* format, ...) {
  const Listener to = exchange(nullptr);
  if (to.write == nullptr) return;
  char text[640];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  for (char* c = text; *c != '\0'; ++c)  // names of the model may have characters that a terminal obeys
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7F) *c = '?';
  to.write(to.context, level, text);
}

void log_fallback(const Model& model, const Fallback& f) {
  char reason[400];
  model.format(f.reason, reason);
  log_message(kLogWarning, "step %u '%s' (%s) is computed by %s instead of %s: %s", f.step,
              model.step_name(f.step, f.program), model.step_op(f.step, f.program), f.backend, f.expected,
              reason);
}

void log_session(const Session& session, const Requirements& needs) {
  const Model& model = session.model();
  log_message(kLogInfo, "a session runs the plan for %s: %lld bytes of memory, %lld of them packed weights",
              model.profile_target(session.profile()), static_cast<long long>(needs.bytes),
              static_cast<long long>(needs.packed));
  if (!fits_this_machine(model.profile_target(session.profile())))
    log_message(kLogWarning,
                "the file has no plan for this machine, so the plan for %s runs; convert the model with "
                "--target native",
                model.profile_target(session.profile()));
  if (session.fallbacks() > 0)
    log_message(kLogWarning, "%u steps are computed by other backends than planned", session.fallbacks());
}

}  // namespace sinter

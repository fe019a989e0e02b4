#include "tests/memory/watch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <new>

#ifdef __has_feature  // clang
#define SINTER_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SINTER_SANITIZED 1
#else
#define SINTER_SANITIZED 0
#endif
#if SINTER_SANITIZED || !defined(__GLIBC__)
#define SINTER_REPLACES_LIBC 0
#else
#define SINTER_REPLACES_LIBC 1
#endif
#if SINTER_REPLACES_LIBC && defined(__x86_64__) && defined(PR_SET_SYSCALL_USER_DISPATCH)
#define SINTER_CATCHES_CALLS 1
#else
#define SINTER_CATCHES_CALLS 0
#endif

namespace sinter::test {
namespace {

std::atomic<int64_t> allocations{0};  // ever
std::atomic<bool> watching{false};
std::atomic<int64_t> heap{0}, heap_bytes{0}, freed{0}, mappings{0}, locks{0}, system_calls{0};
std::atomic<const char*> first{nullptr};
int64_t first_system_call = -1;
bool alone_now = false;
pthread_t watcher;

void note(std::atomic<int64_t>& counter, const char* name) {
  if (!watching.load(std::memory_order_relaxed)) return;
  counter.fetch_add(1, std::memory_order_relaxed);
  const char* none = nullptr;
  first.compare_exchange_strong(none, name);
}
[[maybe_unused]] void note_lock(const char* name) {
  if (alone_now && watching.load(std::memory_order_relaxed) && pthread_equal(watcher, pthread_self()))
    note(locks, name);
}
void note_allocation(const char* name, size_t bytes) {
  if (watching.load(std::memory_order_relaxed)) heap_bytes += static_cast<int64_t>(bytes);
  allocations.fetch_add(1, std::memory_order_relaxed);
  note(heap, name);
}

#if SINTER_CATCHES_CALLS
// The kernel reads this byte at every system call of the thread: blocked ones come back as SIGSYS.
volatile char gate = SYSCALL_DISPATCH_FILTER_ALLOW;

// Counts the call and has it made again, now let through as all that follow: one is failure enough.
void on_call(int, siginfo_t* info, void* context) {
  gate = SYSCALL_DISPATCH_FILTER_ALLOW;
  if (first_system_call < 0) first_system_call = info->si_syscall;
  note(system_calls, "a system call");
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RAX] = info->si_syscall;
  registers[REG_RIP] -= 2;  // syscall is two bytes long
}

// Once per thread that watches; false where the kernel has no user dispatch.
bool catches_calls() {
  static thread_local const bool ready = [] {
    struct sigaction action {};
    action.sa_sigaction = on_call;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSYS, &action, nullptr) == 0 &&
           prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &gate) == 0;
  }();
  return ready;
}
#endif

}  // namespace

int64_t allocation_count() { return allocations.load(); }

std::string Seen::text() const {
  if (nothing()) return "nothing";
  std::string s = std::to_string(heap) + " allocations (" + std::to_string(heap_bytes) + " bytes), " +
                  std::to_string(freed) + " frees, " + std::to_string(mappings) + " mappings, " +
                  std::to_string(locks) + " locks, " + std::to_string(system_calls) +
                  " system calls; first " + (first != nullptr ? first : "?");
  if (first_system_call >= 0) s += " (number " + std::to_string(first_system_call) + ")";
  return s;
}

void watch_begin(bool alone) {
  heap = heap_bytes = freed = mappings = locks = system_calls = 0;
  first = nullptr;
  first_system_call = -1;
  alone_now = alone;
  watcher = pthread_self();
#if SINTER_CATCHES_CALLS
  const bool ready = alone && catches_calls();
  watching.store(true);
  if (ready) gate = SYSCALL_DISPATCH_FILTER_BLOCK;
#else
  watching.store(true);
#endif
}

Seen watch_end() {
#if SINTER_CATCHES_CALLS
  gate = SYSCALL_DISPATCH_FILTER_ALLOW;
#endif
  watching.store(false);
  return {heap, freed, mappings, locks, system_calls, heap_bytes, first, first_system_call};
}

int64_t seen_so_far() { return heap + freed + mappings + locks + system_calls; }

std::string watched_kinds() {
#if !SINTER_REPLACES_LIBC
  return "only operator new is counted: a sanitizer has replaced malloc, or the C library is not glibc";
#else
#if SINTER_CATCHES_CALLS
  if (catches_calls()) return "heap, mappings, locks and system calls are counted";
#endif
  return "heap, mappings and locks are counted; system calls are not, because this machine has no user "
         "dispatch";
#endif
}

int watched_runs(int usual) {
  static const int given = [] {
    const char* text = std::getenv("SINTER_MEMORY_RUNS");
    return text != nullptr ? std::atoi(text) : 0;
  }();
  return given > 0 ? given : usual;
}

}  // namespace sinter::test

using namespace sinter::test;  // NOLINT: what follows replaces the C library's own names

#if !SINTER_REPLACES_LIBC

void* operator new(size_t size) {
  note_allocation("operator new", size);
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
// std::stable_sort's.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  note_allocation("operator new", size);
  return std::malloc(size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

#else

#pragma GCC visibility push(default)

// operator new and delete call malloc and free. glibc has second names for the heap; the others are looked up
// before main, because dlsym allocates.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* p);

void* malloc(size_t size) {
  note_allocation("malloc", size);
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  note_allocation("calloc", n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  note_allocation("realloc", size);
  return __libc_realloc(p, size);
}
void* memalign(size_t alignment, size_t size) {
  note_allocation("memalign", size);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  note_allocation("aligned_alloc", size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  note_allocation("posix_memalign", size);
  *out = __libc_memalign(alignment, size);
  return *out != nullptr || size == 0 ? 0 : 12;
}
void free(void* p) {
  note(freed, "free");
  __libc_free(p);
}
}

namespace {
template <class F>
F* next(F*& cached, const char* name) {
  if (cached == nullptr) cached = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
  return cached;
}
}  // namespace

// Replaces a function of the C library by one that leaves a mark and calls it.
#define SINTER_REPLACE(mark, result, name, parameters, arguments)       \
  namespace {                                                           \
  using name##_function = result parameters;                            \
  name##_function* next_##name = nullptr;                               \
  [[gnu::constructor]] void find_##name() { next(next_##name, #name); } \
  }                                                                     \
  extern "C" result name parameters noexcept {                          \
    mark(#name);                                                        \
    return next(next_##name, #name) arguments;                          \
  }
#define SINTER_MAPPING(name) note(mappings, name)
SINTER_REPLACE(SINTER_MAPPING, void*, mmap, (void* at, size_t n, int prot, int flags, int fd, off_t from),
               (at, n, prot, flags, fd, from))
SINTER_REPLACE(SINTER_MAPPING, int, munmap, (void* at, size_t n), (at, n))
SINTER_REPLACE(SINTER_MAPPING, int, mprotect, (void* at, size_t n, int prot), (at, n, prot))
SINTER_REPLACE(SINTER_MAPPING, int, madvise, (void* at, size_t n, int advice), (at, n, advice))
SINTER_REPLACE(SINTER_MAPPING, int, brk, (void* at), (at))
SINTER_REPLACE(SINTER_MAPPING, void*, sbrk, (intptr_t n), (n))
SINTER_REPLACE(note_lock, int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
SINTER_REPLACE(note_lock, int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))
SINTER_REPLACE(note_lock, int, pthread_mutex_unlock, (pthread_mutex_t * m), (m))
SINTER_REPLACE(note_lock, int, pthread_rwlock_rdlock, (pthread_rwlock_t * m), (m))
SINTER_REPLACE(note_lock, int, pthread_rwlock_wrlock, (pthread_rwlock_t * m), (m))
SINTER_REPLACE(note_lock, int, pthread_spin_lock, (pthread_spinlock_t * m), (m))
SINTER_REPLACE(note_lock, int, pthread_cond_signal, (pthread_cond_t * c), (c))
SINTER_REPLACE(note_lock, int, pthread_cond_broadcast, (pthread_cond_t * c), (c))
SINTER_REPLACE(note_lock, int, sem_post, (sem_t * s), (s))

// The first use of a variable inside a function.
namespace {
using guard_function = int(void*);
guard_function* next_guard = nullptr;
[[gnu::constructor]] void find_guard() { next(next_guard, "__cxa_guard_acquire"); }
}  // namespace
// Not by its name, which the compiler has declared in its own way.
extern "C" int guard_acquire(void* variable) asm("__cxa_guard_acquire");
extern "C" int guard_acquire(void* variable) {
  note_lock("__cxa_guard_acquire");
  return next(next_guard, "__cxa_guard_acquire")(variable);
}

#pragma GCC visibility pop

#endif

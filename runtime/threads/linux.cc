// Processors and settings of threads by Linux's system calls and /sys.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "runtime/threads/system.h"

namespace sinter {
namespace {

constexpr int kProcessors = CPU_SETSIZE;

bool usable(cpu_set_t* set) { return sched_getaffinity(0, sizeof *set, set) == 0; }

// Returns the number in /sys/devices/system/cpu/cpuN/NAME; 0 if there is none.
long number_of(int processor, const char* name) {
  char path[96], text[32] = {};
  std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", processor, name);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = ::read(file, text, sizeof text - 1);
  ::close(file);
  return n > 0 ? std::strtol(text, nullptr, 10) : 0;
}

// Returns the relative speed of a processor, where the system states it; otherwise its clock.
long speed_of(int processor) {
  const long capacity = number_of(processor, "cpu_capacity");
  return capacity > 0 ? capacity : number_of(processor, "cpufreq/cpuinfo_max_freq");
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  return usable(&set) ? std::max(CPU_COUNT(&set), 1)
                      : std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

int fastest_processors(std::span<int> processors) {
  cpu_set_t set;
  if (!usable(&set)) return 0;
  long fastest = 0;
  for (int i = 0; i < kProcessors; ++i)
    if (CPU_ISSET(i, &set)) fastest = std::max(fastest, speed_of(i));
  size_t n = 0;
  for (int i = 0; i < kProcessors && n < processors.size(); ++i)
    if (CPU_ISSET(i, &set) && speed_of(i) == fastest) processors[n++] = i;
  return static_cast<int>(n);
}

Status check_settings(const ThreadSettings& settings) {
  for (const int p : settings.processors)
    SINTER_RETURN_UNLESS(
        p >= 0 && p < kProcessors,
        invalid("a thread cannot run on processor %a; numbers go from 0 to %b", p, kProcessors - 1));
  SINTER_RETURN_UNLESS(
      settings.nice >= -20 && settings.nice <= 19,
      invalid("a thread cannot have the nice value %a; give one from -20 to 19", settings.nice));
  SINTER_RETURN_UNLESS(
      settings.realtime >= 0 && settings.realtime <= 99,
      invalid(
          "a thread cannot have the real-time priority %a; give one from 1 to 99, or 0 for the usual policy",
          settings.realtime));
  return ok_status();
}

Status apply_settings(const ThreadSettings& settings, size_t i) {
  if (!settings.processors.empty()) {
    const int processor = settings.processors[i % settings.processors.size()];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    SINTER_RETURN_UNLESS(
        sched_setaffinity(0, sizeof set, &set) == 0,
        unsupported("the system does not let a thread run on processor %a (errno %b); choose among those of "
                    "this process, which `taskset -p` lists",
                    processor, errno));
  }
  // Linux applies this to the calling thread alone.
  if (settings.nice != 0)
    SINTER_RETURN_UNLESS(
        ::setpriority(PRIO_PROCESS, 0, settings.nice) == 0,
        unsupported("the system refuses the nice value %a to a thread (errno %b); lower values need "
                    "CAP_SYS_NICE or a higher RLIMIT_NICE",
                    settings.nice, errno));
  if (settings.realtime != 0) {
    sched_param parameters{};  // musl's has other fields
    parameters.sched_priority = settings.realtime;
    const int refused = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    SINTER_RETURN_UNLESS(
        refused == 0,
        unsupported("the system refuses the real-time priority %a to a thread (errno %b); it needs "
                    "CAP_SYS_NICE or a higher RLIMIT_RTPRIO",
                    settings.realtime, refused));
  }
  return ok_status();
}

}  // namespace sinter

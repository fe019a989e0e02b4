#include "converter/ir/resident_limit.h"

#include <fcntl.h>
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "converter/ir/large_bytes.h"

namespace sinter::convert {
namespace {

// The time between two measurements, in which a processor reads a few MB.
constexpr std::chrono::milliseconds kInterval{2};
// The heap is measured every kIntervalsOfHeap intervals, because freed memory is often taken again at once.
constexpr int kIntervalsOfHeap = 50;

// Gives freed memory that the heap has kept back to the system if it is more than `most_bytes`. Weights of
// many sizes in turn leave holes in the heap.
void trim_heap(size_t most_bytes) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 33))
  if (::mallinfo2().fordblks > most_bytes) ::malloc_trim(0);
#else
  (void)most_bytes;
#endif
}

}  // namespace

size_t resident_file_bytes() {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128] = {};
  const ssize_t n = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  unsigned long long all = 0, resident = 0, shared = 0;
  if (n <= 0 || std::sscanf(text, "%llu %llu %llu", &all, &resident, &shared) != 3) return 0;
  return static_cast<size_t>(shared) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

ResidentLimit::ResidentLimit(size_t most_bytes) {
  try {
    thread_ = std::thread([this, most_bytes] { watch(most_bytes); });
  } catch (const std::system_error&) {  // a later allocation reports that memory is missing
  }
}

ResidentLimit::~ResidentLimit() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ends_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ResidentLimit::watch(size_t most_bytes) {
  // The program and its libraries remain after a release. Runs go on meanwhile, so that more is measured: the
  // lowest of all measurements counts, unless several releases in a row leave more than the limit.
  constexpr int kReleases = 4;
  size_t always = SIZE_MAX - most_bytes;
  const auto release = [&] {
    size_t left = SIZE_MAX;
    int releases = 0;
    do {
      release_all_file_pages();
      left = std::min(left, resident_file_bytes());
    } while (++releases < kReleases && left > always + most_bytes);
    if (left < always || left > always + most_bytes) always = left;
  };
  release();
  std::unique_lock lock(mutex_);
  for (int n = 1; !ends_.wait_for(lock, kInterval, [this] { return end_; }); ++n) {
    if (resident_file_bytes() > always + most_bytes) release();
    if (n % kIntervalsOfHeap == 0) trim_heap(most_bytes);
  }
}

}  // namespace sinter::convert

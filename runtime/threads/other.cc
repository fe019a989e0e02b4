// Systems other than Linux: threads are left as the system makes them.
#include "runtime/threads/system.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <unistd.h>
#endif

#include <algorithm>

namespace sinter {

int usable_processors() {
#ifdef _WIN32
  SYSTEM_INFO info = {};
  GetSystemInfo(&info);
  return std::max(static_cast<int>(info.dwNumberOfProcessors), 1);
#else
  return std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1);
#endif
}

int fastest_processors(std::span<int>) { return 0; }

Status check_settings(const ThreadSettings&) {
  return unsupported("processors and priorities of threads are set on Linux only");
}

Status apply_settings(const ThreadSettings&, size_t) { return ok_status(); }

}  // namespace sinter

#include "converter/cli/process_facts.h"

#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace sinter::convert {

uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %llu kB", &kilobytes) == 1) return kilobytes * 1024;
  }
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace sinter::convert

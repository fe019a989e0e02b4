// libFuzzer's entry points for the target that SINTER_FUZZ_TARGET names.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

using sinter::fuzz::Blob;
const sinter::fuzz::Target& target() { return sinter::fuzz::SINTER_FUZZ_TARGET; }

void by_libfuzzer(Blob* bytes, size_t most) {
  const size_t size = bytes->size();
  if (size > most || most == 0) return bytes->resize(most);
  bytes->resize(most);
  bytes->resize(LLVMFuzzerMutate(bytes->data(), size, most));
}

void report() {
  const sinter::fuzz::Counts& c = sinter::fuzz::counts;
  std::fprintf(stderr, "fuzz: %llu inputs, %llu accepted, %llu runs completed\n",
               static_cast<unsigned long long>(c.inputs), static_cast<unsigned long long>(c.accepted),
               static_cast<unsigned long long>(c.ran));
}

// Time of this process, not of the clock: other work on the machine makes no input slow.
constexpr int kMostSeconds = 20;
void limit_time(int seconds) {
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}
void too_slow(int) {
  constexpr char kText[] = "fuzz: an input takes more than 20 s of processor time\n";
  (void)!write(2, kText, sizeof kText - 1);
  std::abort();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerInitialize(int*, char***) {
  std::atexit(report);
  std::signal(SIGPROF, too_slow);
  return 0;
}

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  limit_time(kMostSeconds);
  target().run({data, size});
  limit_time(0);
  return 0;
}

extern "C" __attribute__((visibility("default"))) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                                                                 size_t most, unsigned seed) {
  sinter::fuzz::Random random(seed);
  const Blob out = target().mutate({data, size}, most, random, by_libfuzzer);
  if (out.size() > most) return size;
  if (!out.empty()) std::memcpy(data, out.data(), out.size());
  return out.size();
}

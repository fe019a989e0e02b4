// Preloaded into a process whose libraries patch.py has rewritten: answers their CPUID as Zen 3, the largest
// AVX2 machine without AVX-VNNI, would. Where a library had CPUID it has UD0, which compilers never emit and
// which raises SIGILL. For check.py it counts in cap_counts what it does; with SINTER_CAP_WATCH it samples
// from the start, and prints the counts at the end.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { kEax, kEbx, kEcx, kEdx };

static const uint8_t kUd0[2] = {0x0f, 0xff};
// Bits of XCR0: opmasks, upper halves of zmm0 to zmm15, zmm16 to zmm31.
static const uint32_t kAvx512States = 1u << 5 | 1u << 6 | 1u << 7;
static const uint32_t kZmmState = 1u << 6;
static const uint32_t kAmxStates = 1u << 17 | 1u << 18;

static struct sigaction former;

// CPUID instructions; samples, and those of them with any registers of AVX-512 in use, with upper halves of
// zmm0 to zmm15 in use.
enum { kAnswers, kSamples, kWide, kZmm };
atomic_long cap_counts[4];

static void count(int which, long by) {
  atomic_fetch_add_explicit(&cap_counts[which], by, memory_order_relaxed);
}

static void hide(uint32_t leaf, uint32_t subleaf, uint32_t r[4]) {
  if (leaf == 7 && subleaf == 0) {
    // AVX-512: F, DQ, IFMA, PF, ER, CD, BW, VL.
    r[kEbx] &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
    // VBMI, VBMI2, GFNI, VNNI, BITALG, VPOPCNTDQ. Zen 3 has VAES and VPCLMULQDQ, which stay.
    r[kEcx] &= ~(1u << 1 | 1u << 6 | 1u << 8 | 1u << 11 | 1u << 12 | 1u << 14);
    // 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8.
    r[kEdx] &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
  } else if (leaf == 7 && subleaf == 1) {
    // AVX-VNNI, BF16, AMX-FP16, AVX-IFMA.
    r[kEax] &= ~(1u << 4 | 1u << 5 | 1u << 21 | 1u << 23);
    // AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10.
    r[kEdx] &= ~(1u << 4 | 1u << 5 | 1u << 8 | 1u << 10 | 1u << 19);
  } else if (leaf == 0xd && subleaf == 0) {
    // The sizes in EBX and ECX stay: XSAVE writes as much as before.
    r[kEax] &= ~(kAvx512States | kAmxStates);
  } else if ((leaf == 0xd && subleaf < 32 && ((kAvx512States | kAmxStates) >> subleaf & 1)) || leaf == 0x1d ||
             leaf == 0x1e || leaf == 0x24) {  // states, tiles, AVX10
    memset(r, 0, 4 * sizeof r[0]);
  }
}

static void answer(int number, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  if (memcmp((const void*)registers[REG_RIP], kUd0, sizeof kUd0) != 0) {
    if (former.sa_flags & SA_SIGINFO) {
      former.sa_sigaction(number, info, context);
    } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
      former.sa_handler(number);
    } else {
      signal(SIGILL, SIG_DFL);  // the instruction runs again, and ends the process
    }
    return;
  }
  const uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX];
  uint32_t r[4];
  __cpuid_count(leaf, subleaf, r[kEax], r[kEbx], r[kEcx], r[kEdx]);
  hide(leaf, subleaf, r);
  registers[REG_RAX] = r[kEax];
  registers[REG_RBX] = r[kEbx];
  registers[REG_RCX] = r[kEcx];
  registers[REG_RDX] = r[kEdx];
  registers[REG_RIP] += sizeof kUd0;
  count(kAnswers, 1);
}

// The kernel saves a thread's registers for a signal handler, and a bit for each group that is not in its
// initial state.
static void sample(int number, siginfo_t* info, void* context) {
  (void)number, (void)info;
  uint64_t in_use;
  memcpy(&in_use, (const char*)((ucontext_t*)context)->uc_mcontext.fpregs + 512, sizeof in_use);
  count(kSamples, 1);
  count(kWide, (in_use & kAvx512States) != 0);
  count(kZmm, (in_use & kZmmState) != 0);
}

// From now on, samples the registers at each tick of the kernel's clock in which the process computes.
void cap_watch(void) {
  struct sigaction action = {.sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGPROF, &action, NULL);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every, NULL);
}

static bool watches_all(void) { return getenv("SINTER_CAP_WATCH") != NULL; }

__attribute__((constructor)) static void install(void) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGILL, &action, &former);
  if (watches_all()) {
    cap_watch();
  }
}

__attribute__((destructor)) static void report(void) {
  if (watches_all()) {
    dprintf(2, "%ld %ld %ld %ld\n", cap_counts[kAnswers], cap_counts[kSamples], cap_counts[kWide],
            cap_counts[kZmm]);
  }
}

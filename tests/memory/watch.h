// Watches a stretch of code: what it takes from the heap, maps, locks and asks of the kernel. Executables
// that link sinter_watch replace malloc and its kin, operator new, mmap, brk and the pthread locks by
// functions that count.
//
//   const Seen seen = watched(true, [&] { ok = session.run().ok(); });
//   EXPECT_TRUE(seen.nothing()) << seen.text();
//
// Heap and mappings are counted for all threads, locks and system calls for the calling thread and only with
// `alone`. System calls are caught by the kernel's user dispatch (Linux 5.11, x86-64); elsewhere they are not
// counted, as watched_kinds() reports. Under a sanitizer, which has replaced these functions already, only
// operator new is.
#pragma once

#include <cstdint>
#include <string>

namespace sinter::test {

struct Seen {
  int64_t heap = 0, freed = 0, mappings = 0, locks = 0, system_calls = 0;
  int64_t heap_bytes = 0;       // requested in those calls
  const char* first = nullptr;  // the function seen first
  int64_t first_system_call = -1;

  bool nothing() const { return heap + freed + mappings + locks + system_calls == 0; }
  std::string text() const;
};

// Between these no test code should run but what is watched. Not nested.
void watch_begin(bool alone);
Seen watch_end();
// How much has been seen since watch_begin.
int64_t seen_so_far();

template <class F>
Seen watched(bool alone, F&& f) {
  watch_begin(alone);
  f();
  return watch_end();
}

// Which of the kinds this build and machine can see, as a sentence.
std::string watched_kinds();

// How often a step or a session is to be run while watched: SINTER_MEMORY_RUNS, else `usual`.
int watched_runs(int usual);

// Calls of operator new and malloc by this program so far, all threads.
int64_t allocation_count();

}  // namespace sinter::test

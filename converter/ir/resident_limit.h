// A limit of the memory that mapped files take while a model with more weights is run and quantized.
//
// A run reads all weights, packed ones too, and would keep all of them resident. They are in mappings whose
// pages may be released at any time (large_bytes.h), and each is read once in a run. A thread measures the
// resident bytes and releases all pages when they exceed the limit. Results do not change; the next reader of
// a page finds it in the system's cache, or on the disk where the machine is too small for that. The freed
// memory that the heap keeps is limited, too.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace sinter::convert {

// The most bytes of mapped files in memory, but for bytes that are read between two measurements.
inline constexpr size_t kResidentFileBytes = size_t{256} << 20;

class ResidentLimit {
 public:
  // Starts the thread; the limit has no effect where the system has no thread for it.
  explicit ResidentLimit(size_t most_bytes = kResidentFileBytes);
  ~ResidentLimit();
  ResidentLimit(const ResidentLimit&) = delete;
  ResidentLimit& operator=(const ResidentLimit&) = delete;

 private:
  void watch(size_t most_bytes);

  std::mutex mutex_;
  std::condition_variable ends_;
  bool end_ = false;
  std::thread thread_;
};

// Returns this process's resident bytes of mapped files (RssFile and RssShmem); 0: the system has no count.
size_t resident_file_bytes();

}  // namespace sinter::convert

// Bounds the memory that mapped files take while a model with more weights is run and quantized.
//
// A run reads all weights, packed ones too, and would keep all of them resident. They are in mappings whose
// pages may be released at any time (large_bytes.h), and each is read once in a run: a thread measures
// what is resident and releases all pages when it is more than the limit. What runs computes does not change;
// the next reader of a page finds it in the system's cache, or on the disk where the machine is too small for
// that. What the heap keeps of freed memory is limited, too.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace sinter::convert {

// Bytes of mapped files that are left in memory, but for what is read between two measurements.
inline constexpr size_t kResidentFileBytes = size_t{256} << 20;

class ResidentLimit {
 public:
  // Without effect where the system has no thread for it.
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

// Bytes of files that this process has mapped and resident (RssFile and RssShmem); 0: the system does not
// count them.
size_t resident_file_bytes();

}  // namespace sinter::convert

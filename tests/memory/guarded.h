// Memory between two inaccessible pages: reads or writes there end the program, and writes just past the
// bytes change a poison that clean() checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinter::test {

// Which end of the bytes touches a guard page. kEnd leaves `padding` readable bytes there and what
// aligning the first byte costs; kStart leaves none in front.
enum class Flush { kEnd, kStart };

class Guarded {
 public:
  Guarded() = default;
  // Aligned to kBufferAlignment, poisoned throughout.
  explicit Guarded(size_t bytes, Flush flush = Flush::kEnd, size_t padding = 64);
  ~Guarded();
  Guarded(Guarded&& other) noexcept { *this = static_cast<Guarded&&>(other); }
  Guarded& operator=(Guarded&& other) noexcept;

  std::byte* data() const { return data_; }
  std::span<std::byte> span() const { return {data_, bytes_}; }
  // All of it that can be touched, and the poison.
  std::span<std::byte> window() const { return window_; }
  static constexpr std::byte kPoison{0xa5};
  static bool is_poison(std::span<const std::byte> bytes);
  // Whether the poison around the bytes is as it was.
  bool clean() const;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::span<std::byte> window_;
};

}  // namespace sinter::test

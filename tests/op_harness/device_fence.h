// Memory of a device that kernels must not access: the bytes around a step's operands and between their
// elements. A platform whose device reports such accesses defines one of these objects in
// platforms/NAME/tests/harness/, which is built into the harness.
#pragma once

#include <cstddef>
#include <string_view>

namespace sinter::test {

class DeviceFence {
 public:
  using Set = void (*)(const std::byte* at, size_t bytes, bool on);
  DeviceFence(const char* backend, Set set);
  DeviceFence(const DeviceFence&) = delete;
  DeviceFence& operator=(const DeviceFence&) = delete;

  // Fences bytes of device memory off, or gives them back. Transfers may access them in any case.
  void set(const std::byte* at, size_t bytes, bool on) const { set_(at, bytes, on); }
  // Returns the fence of a backend; null if its device does not report accesses.
  static const DeviceFence* of(std::string_view backend);

 private:
  const char* backend_;
  Set set_;
};

}  // namespace sinter::test

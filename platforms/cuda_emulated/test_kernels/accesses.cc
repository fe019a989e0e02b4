#include "platforms/cuda_emulated/test_kernels/accesses.h"

namespace sinter::cuda::test_kernels {

int get(const int* from) { return *from; }
void put(int* to, int value) { *to = value; }
double get_double(const void* from) { return *static_cast<const double*>(from); }
std::byte get_byte(const std::byte* from) { return *from; }
void put_bytes(std::byte* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = std::byte{1};
}

}  // namespace sinter::cuda::test_kernels

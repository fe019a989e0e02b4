// Accesses to memory that are compiled like those of kernels, so that the emulator checks them.
#pragma once

#include <cstddef>

namespace sinter::cuda::test_kernels {

int get(const int* from);
void put(int* to, int value);
double get_double(const void* from);
std::byte get_byte(const std::byte* from);
void put_bytes(std::byte* to, size_t count);

}  // namespace sinter::cuda::test_kernels

// Random numbers, and attributes and shapes made of them, for cases.
#pragma once

#include <random>
#include <vector>

#include "runtime/core/op.h"
#include "tests/op_harness/tensor.h"

namespace sinter::test {

// Every third seed, or combination of many, in cross builds: an emulator takes minutes for all of them.
#if defined(SINTER_CROSS_BUILD)
inline constexpr uint64_t kSeedStep = 3;
#else
inline constexpr uint64_t kSeedStep = 1;
#endif

struct RandomCall {
  std::mt19937_64 engine;
  explicit RandomCall(uint64_t seed) : engine(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  bool half() { return from(0, 1) != 0; }
  Tensor values(Shape dims) { return noise<float>(std::move(dims), -1, 1, engine()); }
};

// strides, dilations, pads and a kernel for one or two axes.
struct Geometry {
  IntList kernel, strides, dilations, pads;
  Shape in;
  Geometry(RandomCall& r, int axes, int64_t most_kernel, int64_t most_dilation) {
    for (int i = 0; i < axes; ++i) {
      kernel.push(r.from(1, most_kernel));
      strides.push(r.from(1, 3));
      dilations.push(r.from(1, most_dilation));
      in.push_back((kernel[i] - 1) * dilations[i] + 1 + r.from(0, 12));
    }
    for (int i = 0; i < 2 * axes; ++i)
      pads.push(r.half() ? 0 : r.from(0, (kernel[i % axes] - 1) * dilations[i % axes]));
  }
  Shape with(int64_t batch, int64_t channels) const {
    Shape s = {batch};
    s.insert(s.end(), in.begin(), in.end());
    s.push_back(channels);
    return s;
  }
  Shape weights(int64_t first, int64_t last) const {
    Shape s;
    if (first > 0) s.push_back(first);
    s.insert(s.end(), kernel.begin(), kernel.end());
    s.push_back(last);
    return s;
  }
};

template <class A>
void clamp_some(RandomCall& r, A& a) {
  if (r.half()) a.act_min = 0;
  if (a.act_min == 0 && r.half()) a.act_max = 0.75;
}

}  // namespace sinter::test

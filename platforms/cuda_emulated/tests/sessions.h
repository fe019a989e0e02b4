// Sessions on the stand-in for the driver, and its counts.
#pragma once

#include "platforms/cuda/emulator/stand_in.h"
#include "platforms/cuda_emulated/cuda_emulated_backend.h"
#include "tests/memory/far_models.h"

namespace sinter::cuda {

using sinter::testing::expect_same_bits;
using sinter::testing::FarModel;
using sinter::testing::fill_x;
using sinter::testing::Running;

inline constinit CudaEmulatedBackend emulated;
inline Backend* const backends[] = {&emulated};
inline const SessionOptions kOnDevice{.backends = backends};

// The stand-in's counts since this was made.
class Counted {
 public:
  StandInCounts since() const {
    StandInCounts now = stand_in_counts();
    for (int64_t StandInCounts::*n :
         {&StandInCounts::allocations, &StandInCounts::frees, &StandInCounts::bytes,
          &StandInCounts::staging_allocations, &StandInCounts::staging_frees, &StandInCounts::uploads,
          &StandInCounts::downloads, &StandInCounts::launches, &StandInCounts::graphs,
          &StandInCounts::graph_launches, &StandInCounts::overlapping_launches,
          &StandInCounts::synchronizations})
      now.*n -= before_.*n;
    return now;
  }

 private:
  StandInCounts before_ = stand_in_counts();
};

// y = x, by `steps` steps of the device; with `host`, one of the host is halfway.
inline FarModel copies(int steps, bool host = false) {
  FarModel b({"cuda-emulated"});
  int at = b.up(b.input("x", DType::kFloat32, {2, 3}));
  for (int i = 0; i < steps; ++i) {
    if (host && i == steps / 2) {
      const int here = b.value(DType::kFloat32, {2, 3});
      b.step(NegAttrs{}, {b.down(at)}, {here});
      at = b.up(here);
    }
    const int next = b.far_value(DType::kFloat32, {2, 3});
    b.far_step(CopyAttrs{}, {at}, {next});
    at = next;
  }
  b.output("y", b.down(at));
  return b;
}

// y = relu(x + 1) * relu(x + 1), z = x + 1
inline FarModel elements() {
  FarModel b({"cuda-emulated"});
  const int x = b.up(b.input("x", DType::kFloat32, {2, 3}));
  const int one = b.constant<float>(DType::kFloat32, {}, {1});
  const int z = b.far_value(DType::kFloat32, {2, 3}), r = b.far_value(DType::kFloat32, {2, 3}),
            y = b.far_value(DType::kFloat32, {2, 3});
  b.far_step(AddAttrs{}, {x, one}, {z});
  b.far_step(sinter::testing::relu(), {z}, {r});
  b.far_step(MulAttrs{}, {r, r}, {y});
  b.output("y", b.down(y));
  b.output("z", b.down(z));
  return b;
}

// y = x, and z and w, to which steps of the device copy one constant: 0, 1, ... 999.
inline FarModel with_constant() {
  FarModel b({"cuda-emulated"});
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const int c = b.constant<float>(DType::kFloat32, {1000}, numbers);
  const int x = b.up(b.input("x", DType::kFloat32, {4}));
  const int copied = b.far_value(DType::kFloat32, {1000}), again = b.far_value(DType::kFloat32, {1000});
  b.far_step(CopyAttrs{}, {c}, {copied});
  b.far_step(CopyAttrs{}, {c}, {again});
  b.output("y", b.down(x));
  b.output("z", b.down(copied));
  b.output("w", b.down(again));
  return b;
}

}  // namespace sinter::cuda

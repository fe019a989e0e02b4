// Runs a simd kernel as a session would and compares it with the reference kernel computing in float64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/op_harness/op_test.h"

namespace sinter::test {

// Pieces as small as they may be, last first.
class ReversedPool final : public ThreadPool {
 public:
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    for (int64_t end = count; end > 0; end -= grain) task(context, std::max<int64_t>(end - grain, 0), end);
  }
  int thread_count() const override { return 3; }
};

// float32 and float64 as the other of the two; other types stay.
Tensor converted(const Tensor& t, DType to);

// One run of the simd kernel; false if it does not accept the call.
bool run_simd(Op op, const void* attrs, const std::vector<Tensor>& inputs, ThreadPool* pool,
              const RunOptions& options, std::vector<Tensor>* results);
// The names of the instruction sets that this machine runs.
std::vector<const char*> simd_tiers();

// Every instruction set, with one thread and with several (same bits), against the reference in float64.
void check_simd(Op op, const void* attrs, const std::vector<Tensor>& inputs, double rtol, double atol,
                const RunOptions& options);
// Every instruction set, with one thread and with several: the bits of the reference kernel.
void check_simd_exact(Op op, const void* attrs, const std::vector<Tensor>& inputs);
// Prepared by the backend, in exactly the memory that it requested: the kernel's bits.
void check_packed(Op op, const void* attrs, const std::vector<Tensor>& inputs, bool packs);

template <class A>
bool run_simd(const A& attrs, const std::vector<Tensor>& inputs, ThreadPool* pool, const RunOptions& options,
              std::vector<Tensor>* results) {
  return run_simd(A::kOp, &attrs, inputs, pool, options, results);
}
template <class A>
void check_simd(const A& attrs, const std::vector<Tensor>& inputs, double rtol = 1e-6, double atol = 1e-7,
                const RunOptions& options = {}) {
  check_simd(A::kOp, &attrs, inputs, rtol, atol, options);
}
template <class A>
void check_simd_exact(const A& attrs, const std::vector<Tensor>& inputs) {
  check_simd_exact(A::kOp, &attrs, inputs);
}
template <class A>
void check_packed(const A& attrs, const std::vector<Tensor>& inputs, bool packs) {
  check_packed(A::kOp, &attrs, inputs, packs);
}

}  // namespace sinter::test

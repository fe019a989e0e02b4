// A backend that packs constants and counts what it does, and models for it.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/running.h"

namespace sinter::testing {

// Mul by a constant, which it packs: as it is, or times -1. Counts what it is asked.
class CountingBackend final : public Backend {
 public:
  int measured = 0, packed = 0, prepared = 0;
  bool negates = false;       // all packings
  int64_t other_from = 1000;  // a packing of its own for operands of this many elements
  uint64_t layouts = 0;       // 0: files do not hold what it packs
  bool reads_data = false;    // of the constant, to choose how it packs

  explicit CountingBackend(const char* name = "packing") : name_(name) {}
  const char* name() const override { return name_; }
  Status open(BumpArena&) override { return ok_status(); }
  void close() override {}
  Status measure(const OpCall& call, int, StepNeeds* needs) override {
    ++measured;
    SINTER_RETURN_UNLESS(call.op == Op::kMul && call.in(1).constant, unsupported("only Mul by a constant"));
    *needs = {};
    needs->prepared = sizeof(float);
    needs->packed = 0b10;
    needs->packing = {align_up(static_cast<size_t>(call.in(1).dense_bytes()), kBufferAlignment),
                      0b10,
                      {1, negates || call.in(0).size() >= other_from ? 1 : 0,
                       reads_data && call.in(1).data != nullptr ? 1 : 0}};
    return ok_status();
  }
  uint64_t packed_layouts() const override { return layouts; }
  Status pack(const OpCall& call, std::span<std::byte> to, ThreadPool*) override {
    ++packed;
    StepNeeds needs;
    SINTER_RETURN_IF_ERROR(measure(call, 1, &needs));
    SINTER_RETURN_UNLESS(call.in(1).data != nullptr && to.size() == needs.packing.bytes,
                         error(Code::kInternal, "packing"));
    for (int64_t i = 0; i < call.in(1).size(); ++i)
      reinterpret_cast<float*>(to.data())[i] =
          call.in(1).as<const float>()[i] * (needs.packing.parameters[1] != 0 ? -1.0f : 1.0f);
    return ok_status();
  }
  struct State {
    const float* weights;
  };
  Status prepare(const OpCall&, const Preparation& with, PreparedStep* step) override {
    ++prepared;
    SINTER_RETURN_UNLESS(!with.packed.empty(), error(Code::kInternal, "nothing is packed"));
    step->state = const_cast<std::byte*>(with.packed.data());
    step->run = [](void* state, const OpCall& c, RunContext&) {
      for (int64_t i = 0; i < c.out(0).size(); ++i)
        c.out(0).as<float>()[i] = c.in(0).as<float>()[i] * static_cast<const float*>(state)[i];
      return ok_status();
    };
    return ok_status();
  }
  void release(PreparedStep&) override {}

 private:
  const char* name_;
};

inline constexpr int64_t kLength = 16;
inline constexpr size_t kWeights = kLength * sizeof(float);  // one packing

// x times one of `weights` constants in each step. Constant k holds k + 2.
inline ModelBuilder chain(int weights, const std::vector<int>& steps) {
  ModelBuilder b;
  b.backends = {"packing"};
  int v = b.input("x", DType::kFloat32, {kLength});
  std::vector<int> w;
  for (int k = 0; k < weights; ++k)
    w.push_back(b.constant<float>(DType::kFloat32, {kLength},
                                  std::vector<float>(kLength, static_cast<float>(k + 2))));
  for (const int k : steps) {
    const int y = b.value(DType::kFloat32, {kLength});
    b.step(MulAttrs{}, {v, w[static_cast<size_t>(k)]}, {y}).candidates = {0};
    v = y;
  }
  b.output("y", v);
  return b;
}

// PackedWeights in memory of their own.
struct Block {
  AlignedBytes memory;
  Result<PackedWeights> packed = Status{};

  Block(const Model& model, const SessionOptions& options) {
    const auto needs = PackedWeights::requirements(model, options);
    EXPECT_TRUE(needs.ok());
    memory = AlignedBytes(needs.value().bytes);
    packed = PackedWeights::create(model, memory.span(), options);
  }
};

}  // namespace sinter::testing

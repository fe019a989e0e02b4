// Chains of element-wise steps (platforms/cuda/chain.h): one launch leaves the same in memory as the steps,
// one after the other, and steps that would be in each other's way stay apart.
#include "platforms/cuda/chain.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "platforms/cuda/operators.h"
#include "platforms/cuda_emulated/cuda_emulated_backend.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {
namespace {

constexpr size_t kBytes = 1 << 16;

// A device with one block of memory.
class Machine {
 public:
  Machine() {
    EXPECT_TRUE(device_.open().ok());
    const InContext current(device_);
    EXPECT_EQ(device_.api().allocate(&block_, kBytes), kDriverSuccess);
    EXPECT_EQ(device_.api().create_stream(&stream_, kStreamNonBlocking), kDriverSuccess);
  }
  ~Machine() {
    const InContext current(device_);
    (void)device_.api().destroy_stream(stream_);
    (void)device_.api().free(block_);
  }
  std::byte* at(size_t offset) { return reinterpret_cast<std::byte*>(block_) + offset; }

  // Returns all of its memory after the launches, which begin with `before` in it.
  std::vector<std::byte> run(const std::vector<Action>& launches, const std::vector<std::byte>& before) {
    const InContext current(device_);
    const EntryPoints& api = device_.api();
    EXPECT_EQ(api.upload(block_, before.data(), kBytes, stream_), kDriverSuccess);
    for (const Action& a : launches) {
      FunctionHandle function = nullptr;
      EXPECT_TRUE(device_.function(a.kernel, &function).ok());
      void* arguments[] = {const_cast<void*>(a.arguments)};
      const LaunchConfig config{.blocks = {a.shape.blocks[0], 1, 1},
                                .threads = {static_cast<unsigned>(threads_of(a.kernel)), 1, 1},
                                .stream = stream_};
      EXPECT_EQ(api.launch(&config, function, arguments, nullptr), kDriverSuccess);
    }
    std::vector<std::byte> after(kBytes);
    EXPECT_EQ(api.download(after.data(), block_, kBytes, stream_), kDriverSuccess);
    EXPECT_EQ(api.synchronize(stream_), kDriverSuccess);
    return after;
  }

 private:
  Device device_{kEmulated};
  DeviceAddress block_ = 0;
  StreamHandle stream_ = nullptr;
};

class Chains : public ::testing::Test {
 protected:
  TensorView view(size_t offset, std::initializer_list<int64_t> dims, DType dtype = DType::kFloat32) {
    TensorView v;
    v.data = machine_.at(offset), v.dtype = dtype, v.memory = 1;
    v.set_shape({dims.begin(), dims.size()});
    return v;
  }

  template <class A>
  void step(const A& attrs, std::initializer_list<TensorView> inputs, const TensorView& result) {
    Made& m = made_.emplace_back();
    m.attributes.resize(sizeof(A));
    std::memcpy(m.attributes.data(), &attrs, sizeof(A));
    m.inputs = inputs, m.outputs = {result};
    m.call = {A::kOp, m.attributes.data(), m.inputs, m.outputs};
    BumpArena prepared(m.room), device_prepared;
    Lowering l(m.call, {}, {}, {}, prepared, device_prepared);
    ASSERT_TRUE(operator_of(A::kOp)(l).ok());
    ASSERT_EQ(l.action_count(), 1);
    m.action = *l.first_action();
  }

  std::vector<Action> actions() const {
    std::vector<Action> all;
    for (const Made& m : made_) all.push_back(m.action);
    return all;
  }
  std::vector<std::byte> start() const {
    std::vector<std::byte> bytes(kBytes);
    uint32_t state = 1;
    for (size_t i = 0; i < kBytes; i += 4) {
      state = state * 1664525u + 1013904223u;
      const float v = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 21);
      std::memcpy(&bytes[i], &v, 4);
    }
    return bytes;
  }
  // Checks that all steps become one launch, which leaves the same in memory.
  void expect_joined() {
    ElementChain chain;
    ASSERT_TRUE(chain.begin(made_[0].action));
    for (size_t i = 1; i < made_.size(); ++i) {
      ASSERT_TRUE(chain.append(made_[i].action)) << "step " << i;
      EXPECT_TRUE(chains(made_[i - 1].call, made_[i].call));
    }
    EXPECT_EQ(chain.steps(), static_cast<int>(made_.size()));
    EXPECT_EQ(machine_.run({chain.action()}, start()), machine_.run(actions(), start()));
  }
  // Checks that the last step stays apart from those before it.
  void expect_apart() {
    ElementChain chain;
    ASSERT_TRUE(chain.begin(made_[0].action));
    for (size_t i = 1; i + 1 < made_.size(); ++i) ASSERT_TRUE(chain.append(made_[i].action)) << "step " << i;
    EXPECT_FALSE(chain.append(made_.back().action));
    // Nothing has changed since.
    std::vector<Action> before = actions();
    before.pop_back();
    EXPECT_EQ(machine_.run({chain.action()}, start()), machine_.run(before, start()));
  }

  struct Made {
    alignas(kBufferAlignment) std::byte room[4096];
    std::vector<std::byte> attributes;
    std::vector<TensorView> inputs, outputs;
    OpCall call;
    Action action;
  };
  Machine machine_;
  std::deque<Made> made_;
};

TEST_F(Chains, OfFunctions) {
  step(ClampAttrs{.min = 0}, {view(0, {3, 35})}, view(1024, {3, 35}));
  step(AddAttrs{.act_max = 2}, {view(1024, {3, 35}), view(2048, {35})}, view(4096, {3, 35}));
  step(MulAttrs{}, {view(4096, {3, 35}), view(2300, {})}, view(6144, {3, 35}));
  step(SigmoidAttrs{}, {view(6144, {3, 35})}, view(8192, {3, 35}));
  expect_joined();
}

TEST_F(Chains, WhoseValueIsAnyOperand) {
  step(NegAttrs{}, {view(0, {4, 9})}, view(1024, {4, 9}));
  step(SubAttrs{}, {view(2048, {9}), view(1024, {4, 9})}, view(4096, {4, 9}));
  step(CompareAttrs{.fn = static_cast<int64_t>(CompareFn::kLess)}, {view(4096, {4, 9}), view(3000, {4, 1})},
       view(5120, {4, 9}, DType::kBool));
  step(WhereAttrs{}, {view(5120, {4, 9}, DType::kBool), view(6144, {9}), view(1024, {4, 9})},
       view(7168, {4, 9}));
  step(WhereAttrs{}, {view(5120, {4, 9}, DType::kBool), view(7168, {4, 9}), view(8192, {})},
       view(9216, {4, 9}));
  expect_joined();
}

TEST_F(Chains, WhoseValueIsTheLastOperand) {
  step(AbsAttrs{}, {view(0, {40})}, view(1024, {40}));
  step(WhereAttrs{}, {view(2048, {40}, DType::kBool), view(4096, {40}), view(1024, {40})}, view(5120, {40}));
  expect_joined();
}

TEST_F(Chains, WhoseValueIsAnOperandTwice) {
  step(TanhAttrs{}, {view(0, {70})}, view(1024, {70}));
  step(MulAttrs{}, {view(1024, {70}), view(1024, {70})}, view(2048, {70}));
  step(MulAttrs{}, {view(2048, {70}), view(0, {70})}, view(4096, {70}));
  step(WhereAttrs{}, {view(6000, {70}, DType::kBool), view(4096, {70}), view(4096, {70})}, view(8192, {70}));
  expect_joined();
}

// A value is seen as another shape, and operands repeat along different axes.
TEST_F(Chains, OfDifferentAxes) {
  step(NegAttrs{}, {view(0, {2, 3, 4, 5})}, view(1024, {2, 3, 4, 5}));
  step(AddAttrs{}, {view(1024, {6, 20}), view(2048, {20})}, view(4096, {6, 20}));
  step(MulAttrs{}, {view(4096, {2, 3, 4, 5}), view(2200, {3, 1, 1})}, view(5120, {2, 3, 4, 5}));
  step(SubAttrs{}, {view(5120, {24, 5}), view(2300, {24, 1})}, view(6144, {24, 5}));
  TensorView across = view(8192, {5, 24});
  std::swap(across.dims[0], across.dims[1]), std::swap(across.strides[0], across.strides[1]);
  step(AddAttrs{}, {view(6144, {24, 5}), across}, view(6144, {24, 5}));
  expect_joined();
}

TEST_F(Chains, InPlace) {
  step(HardSwishAttrs{}, {view(0, {130})}, view(0, {130}));
  step(AddAttrs{}, {view(0, {130}), view(1024, {130})}, view(1024, {130}));
  step(MulAttrs{}, {view(1024, {130}), view(0, {130})}, view(0, {130}));
  expect_joined();
}

// A result is rounded before the next step reads it.
TEST_F(Chains, OfNarrowTypes) {
  const CastAttrs to_half{.to = static_cast<int64_t>(DType::kFloat16)},
      to_bfloat{.to = static_cast<int64_t>(DType::kBFloat16)},
      to_byte{.to = static_cast<int64_t>(DType::kUint8)},
      to_float{.to = static_cast<int64_t>(DType::kFloat32)};
  step(to_half, {view(0, {37})}, view(1024, {37}, DType::kFloat16));
  step(ExpAttrs{}, {view(1024, {37}, DType::kFloat16)}, view(2048, {37}, DType::kFloat16));
  step(to_bfloat, {view(2048, {37}, DType::kFloat16)}, view(3072, {37}, DType::kBFloat16));
  step(MulAttrs{}, {view(3072, {37}, DType::kBFloat16), view(3072, {37}, DType::kBFloat16)},
       view(4096, {37}, DType::kBFloat16));
  step(to_byte, {view(4096, {37}, DType::kBFloat16)}, view(5120, {37}, DType::kUint8));
  step(to_float, {view(5120, {37}, DType::kUint8)}, view(6144, {37}));
  expect_joined();
}

TEST_F(Chains, OfQuantizedSteps) {
  const DequantizeAttrs dequantize{.axis = 1};
  const QuantizeAttrs quantize{.to = static_cast<int64_t>(DType::kInt8)};
  step(dequantize, {view(0, {6, 7}, DType::kInt8), view(1024, {7}), view(2048, {7}, DType::kInt8)},
       view(4096, {6, 7}));
  step(SiluAttrs{}, {view(4096, {6, 7})}, view(5120, {6, 7}));
  step(quantize, {view(5120, {6, 7}), view(6144, {})}, view(7168, {6, 7}, DType::kInt8));
  expect_joined();
}

TEST_F(Chains, OfIntegersAndDoubles) {
  step(AddAttrs{}, {view(0, {33}, DType::kInt8), view(1024, {33}, DType::kInt8)},
       view(2048, {33}, DType::kInt8));
  step(MulAttrs{}, {view(2048, {33}, DType::kInt8), view(1024, {33}, DType::kInt8)},
       view(4096, {33}, DType::kInt8));
  step(AbsAttrs{}, {view(4096, {33}, DType::kInt8)}, view(5120, {33}, DType::kInt8));
  expect_joined();
  made_.clear();
  step(TanhAttrs{}, {view(0, {33}, DType::kFloat64)}, view(1024, {33}, DType::kFloat64));
  step(AddAttrs{}, {view(2048, {33}, DType::kFloat64), view(1024, {33}, DType::kFloat64)},
       view(4096, {33}, DType::kFloat64));
  expect_joined();
}

TEST_F(Chains, HaveStepsOfOneSizeAndOneClass) {
  step(NegAttrs{}, {view(0, {20})}, view(1024, {20}));
  step(AddAttrs{}, {view(1024, {20}), view(2048, {3, 20})}, view(4096, {3, 20}));
  expect_apart();
  EXPECT_FALSE(chains(made_[0].call, made_[1].call));
  made_.clear();
  step(NegAttrs{}, {view(0, {20})}, view(1024, {20}));
  step(NegAttrs{}, {view(2048, {20}, DType::kInt32)}, view(4096, {20}, DType::kInt32));
  expect_apart();
  made_.clear();
  step(NegAttrs{}, {view(0, {6, 4})}, view(1024, {6, 4}));
  step(AddAttrs{}, {view(2048, {6, 4}), view(3072, {4})}, view(4096, {6, 4}));
  step(AddAttrs{}, {view(2048, {4, 6}), view(3072, {6})}, view(5120, {4, 6}));
  expect_apart();
}

// A step writes an element that another element's thread reads or writes.
TEST_F(Chains, WriteNothingThatIsStillRead) {
  for (const size_t place : {size_t{512}, size_t{1536}, size_t{2560}})
    for (const int by : {-256, -4, 4, 256}) {
      SCOPED_TRACE(::testing::Message() << place << " " << by);
      made_.clear();
      step(AddAttrs{}, {view(512, {65}), view(1536, {65})}, view(2560, {65}));
      step(NegAttrs{}, {view(2560, {65})}, view(place + static_cast<size_t>(by), {65}));
      expect_apart();
    }
  made_.clear();
  step(NegAttrs{}, {view(0, {65})}, view(1024, {65}));
  step(AddAttrs{}, {view(1024, {65}), view(1024, {})}, view(4096, {65}));  // the first element for all
  expect_apart();
  made_.clear();
  step(NegAttrs{}, {view(0, {8, 8})}, view(1024, {8, 8}));
  TensorView across = view(1024, {8, 8});
  std::swap(across.strides[0], across.strides[1]);
  step(NegAttrs{}, {across}, view(4096, {8, 8}));
  expect_apart();
}

TEST_F(Chains, EndWhereAProgramHasNoMoreRoom) {
  ElementChain chain;
  size_t steps = 0;
  for (bool joined = true; joined; ++steps) {
    ASSERT_LT(steps, 40u);
    const size_t from = 1024 * (steps % 4), to = 1024 * ((steps + 1) % 4);
    step(MulAttrs{}, {view(from, {65}), view(8192 + 64 * steps, {})}, view(to, {65}));
    joined = steps == 0 ? chain.begin(made_[0].action) : chain.append(made_.back().action);
  }
  made_.pop_back();
  EXPECT_GE(chain.steps(), 5);
  EXPECT_EQ(machine_.run({chain.action()}, start()), machine_.run(actions(), start()));
}

TEST_F(Chains, LeaveOutWhatIsNotKept) {
  step(SigmoidAttrs{}, {view(0, {90})}, view(1024, {90}));
  step(MulAttrs{}, {view(0, {90}), view(1024, {90})}, view(2048, {90}));
  step(AddAttrs{}, {view(2048, {90}), view(1024, {90})}, view(4096, {90}));
  ElementChain chain;
  ASSERT_TRUE(chain.begin(made_[0].action));
  ASSERT_TRUE(chain.append(made_[1].action));         // its result is read again
  ASSERT_TRUE(chain.append(made_[2].action, false));  // as this one is not
  std::vector<std::byte> want = machine_.run(actions(), start());
  const std::vector<std::byte> before = start();
  std::memcpy(&want[2048], &before[2048], 360);
  EXPECT_EQ(machine_.run({chain.action()}, start()), want);
  // The value is read from memory if a step has it twice, as a parameter that is not its first function's.
  made_.clear();
  step(SigmoidAttrs{}, {view(0, {90})}, view(1024, {90}));
  step(NegAttrs{}, {view(2048, {90})}, view(4096, {90}));
  ASSERT_TRUE(chain.begin(made_[0].action));
  EXPECT_FALSE(chain.append(made_[1].action, false));
}

// Steps are at random places, which overlap at times: as many as possible are in one launch.
TEST_F(Chains, LeaveWhatTheirStepsLeave) {
  uint32_t state = 7;
  const auto below = [&](uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  };
  const auto place = [&] { return size_t{below(8)} * 960 + (below(4) == 0 ? size_t{below(3)} * 4 : 0); };
  const auto whole = [&] {
    TensorView v = view(place(), {4, 6, 10});
    if (const uint32_t shape = below(4); shape == 1)
      v.set_shape(std::array<int64_t, 2>{24, 10});
    else if (shape == 2)
      v.set_shape(std::array<int64_t, 1>{240});
    else if (shape == 3)
      v.set_shape(std::array<int64_t, 3>{4, 60, 1});
    return v;
  };
  int joined = 0, apart = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    made_.clear();
    std::vector<ElementChain> launches;
    TensorView last = whole();
    for (uint32_t i = 0, steps = 2 + below(5); i < steps; ++i) {
      TensorView result = below(4) == 0 ? last : whole(), other = result;
      other.data = whole().data;
      TensorView value = result;
      value.data = below(6) == 0 ? machine_.at(place()) : last.data;
      if (below(3) == 0) {  // repeats along an axis
        const int axis = static_cast<int>(below(other.rank));
        other.dims[axis] = 1;
        other.set_shape(std::vector<int64_t>(other.dims, other.dims + other.rank));
      }
      // A session gives a step such operands only: in its result's place, or apart from it.
      const auto legal = [&](const TensorView& v) {
        return (v.data == result.data && v.size() == result.size()) ||
               v.data + v.dense_bytes() <= result.data || result.data + result.dense_bytes() <= v.data;
      };
      if (!legal(other) || !legal(value)) continue;
      switch (below(5)) {
        case 0:
          step(NegAttrs{}, {value}, result);
          break;
        case 1:
          step(MulAttrs{}, {value, other}, result);
          break;
        case 2:
          step(SubAttrs{}, {other, value}, result);
          break;
        case 3:
          step(AddAttrs{}, {value, value}, result);
          break;
        default:
          step(WhereAttrs{}, {view(8192, {1}, DType::kBool), other, value}, result);
          break;
      }
      last = result;
      if (!launches.empty() && launches.back().append(made_.back().action)) {
        ++joined;
      } else {
        apart += !launches.empty();
        ASSERT_TRUE(launches.emplace_back().begin(made_.back().action));
      }
    }
    std::vector<Action> chained;
    for (const ElementChain& c : launches) chained.push_back(c.action());
    ASSERT_EQ(machine_.run(chained, start()), machine_.run(actions(), start()));
  }
  EXPECT_GT(joined, 200);
  EXPECT_GT(apart, 100);
}

TEST_F(Chains, AreOfElementWiseStepsOnly) {
  step(CopyAttrs{}, {view(0, {90})}, view(1024, {90}));
  step(NegAttrs{}, {view(1024, {90})}, view(2048, {90}));
  ElementChain chain;
  EXPECT_FALSE(chain.begin(made_[0].action));
  EXPECT_FALSE(chains(made_[0].call, made_[1].call));
}

}  // namespace
}  // namespace sinter::cuda

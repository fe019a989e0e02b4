// Values inside others: graphs of windows, joins, slices and element-wise steps give the same bits whether
// the parts are placed in the whole or copied.
#include <gtest/gtest.h>

#include <random>

#include "converter/quantize/ranges/observe.h"
#include "sinter/backends.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

class RandomNet {
 public:
  explicit RandomNet(unsigned seed) : random_(seed) {
    known_.push_back(s.input({1, 9, 8, 16}));
    known_.push_back(s.input({1, 9, 8, 5}));
    for (int n = 0; n < 22; ++n) step();
    s.output(s.emit(NegAttrs{}, {known_.back()}), "last");
    s.output(s.emit(AbsAttrs{}, {known_[known_.size() / 2]}), "middle");
  }
  testing::Sketch s;

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<unsigned>(n)); }
  ValueId any() { return known_[static_cast<size_t>(below(static_cast<int64_t>(known_.size())))]; }
  void keep(ValueId id) { known_.push_back(id); }
  // Of the same pixels as `id`.
  ValueId beside(ValueId id) {
    for (int i = 0; i < 20; ++i) {
      const ValueId other = any();
      const Dims &a = s.graph.value(id).dims, &b = s.graph.value(other).dims;
      if (a[1] == b[1] && a[2] == b[2]) return other;
    }
    return id;
  }
  void step() {
    const ValueId x = any();
    const Dims d = s.graph.value(x).dims;
    const int64_t channels = d[3];
    switch (below(12)) {
      case 10: {
        if (d[1] > 12) return;
        PadAttrs a;
        a.mode = below(4);
        const auto most = [&](int axis) { return std::min<int64_t>(d[static_cast<size_t>(axis)] - 1, 3); };
        for (int i = 0; i < 8; ++i) a.pads.push(i % 4 == 1 || i % 4 == 2 ? below(most(i % 4) + 1) : 0);
        return keep(s.emit(a, {s.emit(SiluAttrs{}, {x})}));
      }
      case 11: {
        if (channels > 60) return;
        const ValueId mine = s.emit(NegAttrs{}, {x});
        std::vector<ValueId> parts{mine, mine, s.constant({1, d[1], d[2], 3}), known_[0]};
        const Dims& first = s.graph.value(known_[0]).dims;
        if (d[1] != first[1] || d[2] != first[2]) parts.pop_back();
        return keep(s.emit(ConcatAttrs{3}, parts));
      }
      case 0: {
        const int64_t out = 1 + below(24), k = 1 + 2 * below(2);
        ConvAttrs a;
        a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {k / 2, k / 2, k / 2, k / 2};
        return keep(s.emit(a, {x, s.constant({out, k, k, channels}), s.constant({out})}));
      }
      case 1: {
        DepthwiseConvAttrs a;
        a.strides = {1, 1}, a.dilations = {1, 1};
        a.pads = {1, 1, 1, 1};
        return keep(s.emit(a, {x, s.constant({3, 3, channels}), s.constant({channels})}));
      }
      case 2: {
        MaxPoolAttrs a;
        a.kernel = {3, 3}, a.pads = {1, 1, 1, 1}, a.strides = {1, 1}, a.dilations = {1, 1};
        return keep(s.emit(a, {x}));
      }
      case 3:
        return keep(s.emit(FullyConnectedAttrs{}, {x, s.constant({12, channels}), s.constant({12})}));
      case 4:
        return keep(s.emit(SiluAttrs{}, {x}));
      case 5:
        return keep(s.emit(AddAttrs{}, {x, s.emit(ClampAttrs{-1, 1}, {x})}));
      case 6:
      case 7: {
        std::vector<ValueId> parts{x};
        int64_t sum = channels;
        for (int64_t n = 1 + below(2); n > 0; --n)
          parts.push_back(beside(x)), sum += s.graph.value(parts.back()).dims[3];
        if (sum > 96) return;
        return keep(s.emit(ConcatAttrs{3}, parts));
      }
      case 8: {
        if (d[1] < 4 || below(3) != 0) return;
        return keep(s.emit(
            SliceAttrs{IntList{0, 1, 0, 0}, IntList{1, 1, 1, 1}, IntList{1, d[1] - 1, d[2], channels}}, {x}));
      }
      default: {
        const int64_t first = below(channels), count = 1 + below(channels - first);
        return keep(s.emit(
            SliceAttrs{IntList{0, 0, 0, first}, IntList{1, 1, 1, 1}, IntList{1, d[1], d[2], count}}, {x}));
      }
    }
  }

  std::minstd_rand random_;
  std::vector<ValueId> known_;
};

void expect_same(const testing::Sketch& s, RunnerOptions options) {
  std::vector<std::vector<std::byte>> results[2];
  for (const bool strides : {false, true}) {
    options.strides = strides;
    GraphRunner runner(s.graph, options);
    for (int run = 0; run < 2; ++run) runner.run(s.feeds);
    for (size_t i = 0; i < s.graph.outputs.size(); ++i) {
      const TensorView view = runner.output(i);
      results[strides].emplace_back(view.data, view.data + view.dense_bytes());
    }
  }
  EXPECT_TRUE(results[0] == results[1]);
}

TEST(Strides, SameBitsAsWithCopies) {
  const std::vector<Backend*> backends(default_backends().begin(), default_backends().end());
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomNet net(seed);
    RunnerOptions options;
    expect_same(net.s, options);
    options.backends = backends;
    expect_same(net.s, options);
  }
}

// One row is the same forwards and backwards: it stays where it is, though its step is -1.
TEST(Strides, RowsThatAreTakenBackwards) {
  testing::Sketch s;
  const ValueId x = s.emit(SiluAttrs{}, {s.input({1, 9, 8, 16})});
  const SliceAttrs row{IntList{0, 5, 0, 0}, IntList{1, -1, 1, 1}, IntList{1, 1, 8, 16}};
  s.output(s.emit(NegAttrs{}, {s.emit(row, {x})}), "row");
  s.output(s.emit(NegAttrs{}, {x}), "all");
  expect_same(s, {});
}

TEST(Strides, BordersOfOneRow) {
  for (const int64_t mode : {0, 1, 2, 3}) {
    SCOPED_TRACE(mode);
    testing::Sketch s;
    const ConvAttrs conv{{1, 1}, {1, 1}, {0, 0, 0, 0}};
    const ValueId a = s.emit(conv, {s.input({1, 24, 24, 2}), s.constant({3, 3, 3, 2}), s.constant({3})});
    const ValueId b = s.emit(PadAttrs{{0, 1, 0, 0, 0, 1, 0, 0}, mode}, {a});
    s.output(s.emit(conv, {b, s.constant({2, 3, 3, 3}), s.constant({2})}));
    expect_same(s, {});
  }
}

}  // namespace
}  // namespace sinter::convert

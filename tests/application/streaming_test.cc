// A stream: blocks of audio on a thread of their own, with state in the session. 10,000 blocks give the bits
// of an application that carries the state itself, and take neither heap nor lock nor system call.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "sinter/runner.h"
#include "tests/memory/watch.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

constexpr int64_t kBlock = 64, kLine = 128;
constexpr int kBlocks = 10'000;
constexpr auto kFloat = DType::kFloat32;

// A filter over the last two blocks, and a gain that follows the loudest samples:
//   line' = the last kLine samples;  y = (line' * taps) * (1 - level');  level' = max(level * 0.99, |line' *
//   taps|)
// `kept`: by the session, in place; else both are inputs and outputs.
ModelBuilder filter(bool kept) {
  ModelBuilder b;
  const int x = b.input("x", kFloat, {1, kBlock});
  const auto carried = [&](const char* name, int64_t size) {
    return kept ? b.state(kFloat, {1, size}, -1, -1) : b.input(name, kFloat, {1, size});
  };
  const int line = carried("line", kLine), level = carried("level", kBlock);
  std::vector<float> taps(kLine * kBlock);
  for (int64_t i = 0; i < kLine; ++i)
    for (int64_t o = 0; o < kBlock; ++o)
      if (i <= kLine - kBlock + o && i > o)
        taps[static_cast<size_t>(i * kBlock + o)] = std::cos(0.1F * static_cast<float>(i - o)) / kBlock;
  const int weights = b.constant<float>(kFloat, {kLine, kBlock}, taps);
  const int decay = b.constant<float>(kFloat, {1}, {0.99F}), one = b.constant<float>(kFloat, {1}, {1.F});
  const int old = b.value(kFloat, {1, kLine - kBlock}), line_out = b.value(kFloat, {1, kLine});
  const int z = b.value(kFloat, {1, kBlock}), loud = b.value(kFloat, {1, kBlock});
  const int faded = b.value(kFloat, {1, kBlock}), level_out = b.value(kFloat, {1, kBlock});
  const int gain = b.value(kFloat, {1, kBlock}), y = b.value(kFloat, {1, kBlock});
  b.step(SliceAttrs{{0, kBlock}, {1, 1}, {1, kLine - kBlock}}, {line}, {old}).elided = kept;
  b.step(ConcatAttrs{1}, {old, x}, {line_out}).in_order = kept;
  b.step(MatMulAttrs{}, {line_out, weights}, {z});
  b.step(AbsAttrs{}, {z}, {loud});
  b.step(MulAttrs{}, {level, decay}, {faded});
  b.step(MaxAttrs{}, {faded, loud}, {level_out});
  b.step(SubAttrs{}, {one, level_out}, {gain});
  b.step(MulAttrs{}, {z, gain}, {y});
  b.output("y", y);
  if (!kept) {
    b.output("line_out", line_out), b.output("level_out", level_out);
    return b;
  }
  const auto becomes = [&](int state, int update, const char* input, const char* output) {
    b.program().values[static_cast<size_t>(state)].update = update;
    b.place(update).alias_of = state;
    b.name_state(state, input, output);
  };
  becomes(line, line_out, "line", "line_out");
  b.place(line_out).first = 1;
  b.place(old).alias_of = line, b.place(old).alias_offset = 4 * kBlock, b.place(old).first = 0,
  b.place(old).last = 1;
  becomes(level, level_out, "level", "level_out");
  b.place(faded).alias_of = level, b.place(faded).first = 4, b.place(faded).last = 5;
  b.place(level_out).first = 5;
  return b;
}

float sample_of(int block, int64_t i) {
  const auto t = static_cast<float>((static_cast<int64_t>(block) * kBlock + i) % 48'000) / 48'000;
  return 0.6F * std::sin(2764.6F * t) + 0.2F * std::sin(31.4F * t * t * 48);
}

TEST(Streaming, GivesTheBitsOfAnApplicationThatCarriesTheState) {
  const AlignedBytes by_hand = filter(false).build(), kept = filter(true).build();
  std::vector<float> expected(static_cast<size_t>(kBlocks) * kBlock);
  {
    Runner net = Runner::open(by_hand.span());
    std::vector<float> x(kBlock), line(kLine), level(kBlock);
    for (int n = 0; n < kBlocks; ++n) {
      for (int64_t i = 0; i < kBlock; ++i) x[static_cast<size_t>(i)] = sample_of(n, i);
      net.set("x", x), net.set("line", line), net.set("level", level);
      net.run();
      net.copy("y", std::span(expected).subspan(static_cast<size_t>(n) * kBlock, kBlock));
      net.copy("line_out", line), net.copy("level_out", level);
    }
    ASSERT_TRUE(net.ok()) << net.error();
  }
  std::vector<float> heard(expected.size());
  bool fine = false;
  test::Seen seen;
  std::thread audio([&] {
    Runner net = Runner::open(kept.span());
    float x[kBlock];
    seen = test::watched(true, [&] {
      for (int n = 0; n < kBlocks; ++n) {
        for (int64_t i = 0; i < kBlock; ++i) x[i] = sample_of(n, i);
        net.set("x", x);
        net.run();
        net.copy("y", std::span(heard).subspan(static_cast<size_t>(n) * kBlock, kBlock));
      }
    });
    fine = net.ok();
    // And a second stream by the same session.
    net.reset();
    for (int64_t i = 0; i < kBlock; ++i) x[i] = sample_of(0, i);
    net.set("x", x), net.run();
    const auto y = net.get<float>("y");
    fine = fine && net.ok() && std::equal(y.begin(), y.end(), expected.begin());
  });
  audio.join();
  EXPECT_TRUE(fine);
  EXPECT_TRUE(seen.nothing()) << seen.text();
  EXPECT_EQ(std::memcmp(heard.data(), expected.data(), heard.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace sinter::testing

// sinter_tiers: hot kernels of one tier in percent of what the core can do. bench/tiers/tiers.py calls it for
// each tier and makes a table.
//
//     SINTER_CPU_CAP=avx2 sinter_tiers [SECONDS]
//
// Prints, separated by tabs: `peak` NAME RATE of each kind of instruction; then `case` LABEL KIND BACKEND
// NANOSECONDS RATE PERCENT for each kernel and backend, on one thread, the lowest time of SECONDS (0.05). Of
// products the rate is 10^9 operations a second, a multiply-add counting as two, and the percentage that of
// the highest peak of its type (the integers of each tier have one that needs no proof against saturation,
// and one that does); of what is between products it is 10^9 bytes read and written a second, and the
// percentage that of copying as many bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/device/op_cases.h"
#include "bench/device/setup.h"
#include "bench/tiers/peak.h"

namespace {

using namespace sinter;
using Clock = std::chrono::steady_clock;

struct Case {
  const char* label;
  Op op;
  const char* name;  // of bench/device/op_cases.cc
};

constexpr Case kCases[] = {
    {"convolution 1x1, 24 to 144 channels", Op::kConv, "1x1 56x56x24-144"},
    {"convolution 1x1, 16 to 16 channels", Op::kConv, "1x1 60x80x16"},
    {"convolution 1x1, 320 to 1280 channels", Op::kConv, "1x1 7x7x320-1280"},
    {"convolution 3x3, 16 channels", Op::kConv, "3x3 32x32x16"},
    {"convolution 3x3, 64 channels", Op::kConv, "3x3 56x56x64"},
    {"convolution 3x3, stride 2, 3 to 32 channels", Op::kConv, "3x3 s2 112x112x3"},
    {"convolution 5x5, 32 channels", Op::kConv, "5x5 28x28x32"},
    {"depthwise 3x3, 144 channels", Op::kDepthwiseConv, "3x3 56x56x144"},
    {"depthwise 3x3, 16 channels", Op::kDepthwiseConv, "3x3 60x80x16"},
    {"depthwise 5x5, 96 channels", Op::kDepthwiseConv, "5x5 28x28x96"},
    {"fully connected, 1 row", Op::kFullyConnected, "1x1280-1000"},
    {"fully connected, 64 rows", Op::kFullyConnected, "64x256-256"},
    {"product of computed matrices", Op::kMatMul, "64x64x64 computed"},
    {"attention, 4 heads of 64", Op::kAttention, "4x128x64"},
    {"convolution 1x1, 24 to 144 channels", Op::kQConv, "1x1 56x56x24-144 int8"},
    {"convolution 1x1, 16 to 16 channels", Op::kQConv, "1x1 60x80x16 int8"},
    {"convolution 1x1, 320 to 1280 channels", Op::kQConv, "1x1 7x7x320-1280 int8"},
    {"convolution 3x3, 16 channels", Op::kQConv, "3x3 32x32x16 int8"},
    {"convolution 3x3, 64 channels", Op::kQConv, "3x3 56x56x64 int8"},
    {"convolution 3x3, stride 2, 3 to 32 channels", Op::kQConv, "3x3 s2 112x112x3 int8"},
    {"convolution 5x5, 32 channels", Op::kQConv, "5x5 28x28x32 int8"},
    {"depthwise 3x3, 144 channels", Op::kQDepthwiseConv, "3x3 56x56x144 int8"},
    {"depthwise 3x3, 16 channels", Op::kQDepthwiseConv, "3x3 60x80x16 int8"},
    {"depthwise 5x5, 96 channels", Op::kQDepthwiseConv, "5x5 28x28x96 int8"},
    {"fully connected, 1 row", Op::kQFullyConnected, "1x1280-1000 int8"},
    {"fully connected, 64 rows", Op::kQFullyConnected, "64x256-256 int8"},
    {"PReLU, a slope per channel", Op::kPRelu, "channel 56x56x64"},
    {"SiLU", Op::kSilu, "56x56x64"},
    {"HardSwish", Op::kHardSwish, "56x56x64"},
    {"sum of two values", Op::kAdd, "56x56x64"},
    {"PReLU, a slope per channel", Op::kQPRelu, "56x56x64"},
    {"table (SiLU and others)", Op::kLut, "56x56x64"},
    {"sum of two values", Op::kQAdd, "56x56x64"},
};

// Multiply-adds of a call; 0: it is not a product.
double multiply_adds(const OpCall& call) {
  const auto dim = [](const TensorView& t, int from_end) {
    return static_cast<double>(t.dims[static_cast<size_t>(t.rank - from_end)]);
  };
  const TensorView& x = call.in(0);
  const auto outputs = static_cast<double>(call.out(0).size());
  switch (call.op) {
    case Op::kConv:
    case Op::kQConv:  // weights [O, kh, kw, I / group]
      return outputs * static_cast<double>(call.in(1).size()) / static_cast<double>(call.in(1).dims[0]);
    case Op::kDepthwiseConv:
    case Op::kQDepthwiseConv:  // [kh, kw, C]
      return outputs * static_cast<double>(call.in(1).dims[0] * call.in(1).dims[1]);
    case Op::kFullyConnected:
    case Op::kQFullyConnected:
    case Op::kMatMul:
      return outputs * dim(x, 1);
    case Op::kAttention:  // scores, then weighted values
      return static_cast<double>(x.size()) * dim(call.in(1), 2) * 2;
    default:
      return 0;
  }
}

double bytes_of(const OpCall& call) {
  double bytes = 0;
  for (const auto& operands : {call.inputs, call.outputs})
    for (const TensorView& t : operands)
      if (t.present() && !t.constant) bytes += static_cast<double>(t.dense_bytes());
  return bytes;
}

double lowest_seconds(bench::PreparedCase& prepared, double seconds) {
  double lowest = 1e9;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < 5 || Clock::now() < end; ++i) {
    const auto start = Clock::now();
    if (const Status status = prepared.run(); !status.ok()) device::fail("the run failed", status);
    lowest = std::min(lowest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return lowest;
}

}  // namespace

int main(int argc, char** argv) {
  const char* tier = device::cap_instruction_sets();
  const double seconds = argc > 1 ? std::max(0.0, std::atof(argv[1])) : 0.05;
  double peaks[2] = {};
  for (const bench::Peak& peak : bench::measure_peaks(tier)) {
    std::printf("peak\t%s\t%.1f\n", peak.name, peak.rate);
    peaks[peak.integers] = std::max(peaks[peak.integers], peak.rate);
  }
  for (const Case& wanted : kCases) {
    const auto& all = bench::op_cases();
    const auto found = std::find_if(all.begin(), all.end(), [&](const bench::OpCase& c) {
      return c.op == wanted.op && c.name == wanted.name;
    });
    if (found == all.end()) {
      std::fprintf(stderr, "there is no case '%s' of %s\n", wanted.name, op_name(wanted.op));
      return 1;
    }
    for (Backend* backend : default_backends()) {
      const auto prepared = found->prepare(*backend);
      if (prepared == nullptr) continue;
      const OpCall& call = prepared->call();
      const bool integers = call.in(0).dtype != DType::kFloat32;
      const double time = lowest_seconds(*prepared, seconds), work = 2 * multiply_adds(call);
      const double amount = work > 0 ? work : bytes_of(call);
      const double best = work > 0 ? peaks[integers]
                                   : 1e-9 * amount / bench::seconds_of_copy(static_cast<size_t>(amount / 2));
      const double rate = 1e-9 * amount / time;
      std::printf("case\t%s\t%s%s\t%s\t%.0f\t%.1f\t%.1f\n", wanted.label, integers ? "int8" : "float32",
                  work > 0 ? "" : ", GB/s", backend->name(), 1e9 * time, rate,
                  best > 0 ? 100 * rate / best : 0);
    }
  }
  return 0;
}

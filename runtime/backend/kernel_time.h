// Times of kernels, as data: a platform lists those of its own, and the converter takes the kernel with the
// lower one. Printed by bench/kernel_times.py in the form in which they are listed.
#pragma once

#include <cstdint>

#include "runtime/backend/cpu.h"
#include "runtime/core/op.h"

namespace sinter {

// Where a number of a cost table comes from.
enum class Provenance : uint8_t {
  kMeasured,    // a time on a machine
  kCounted,     // instructions that an emulator executed: not cycles
  kUnmeasured,  // an estimate
};

// Calls of one operation between which the faster kernel differs. Those that no other class names are usual.
enum class CallClass : uint8_t {
  kUsual,
  kFewChannels,   // of output, up to 8 of one group: Conv with a window, QConv
  kFewInputs,     // channels, up to 4 of one group: Conv with a window and more than 8 channels of output
  kFewColumns,    // of output, 9 to 16: Conv of one group without a window, of wider images
  kNarrowImage,   // of up to 16 columns: Conv without a window, or with at least 1024 weights a channel
  kManyChannels,  // of output: QConv, more than 16 a group
  kWindow,        // of more than one tap: QConv of 9 to 16 channels of output, or up to 16 in each of several
                  // groups
  kShortRows,     // Add, Sub, Mul, Div: broadcast to up to 8 channels
  kOneRow,        // MatMul: one row by a computed matrix
  kManyRows,      // QFullyConnected: more than 4
  kOtherWindow,   // DepthwiseConv: not of 3 or 5 adjacent columns with a stride of 1 or 2; up to 25 taps
  kManyTaps,      // DepthwiseConv, QDepthwiseConv: more than 25
};

// The time of a representative call of its class, on one thread. Rows of the same operation, class and
// processor have the same representative call (bench/device/op_cases.cc) and unit, whatever platform
// lists them.
struct KernelTime {
  Op op;
  CallClass calls;
  Cpu cpu;
  double time;  // nanoseconds; instructions where they are counted
  Provenance provenance;
};

}  // namespace sinter

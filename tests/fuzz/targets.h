// What is fuzzed: one function a kind of file that takes any bytes, and one that makes other bytes of them.
//
// A target returns normally whatever it is given; what is wrong shows in a sanitizer, a signal, an exception
// that leaves it, a limit on time or memory (the fuzzer's own), or an abort with a message where a guarantee
// that can be checked is broken. Built with libFuzzer under clang (libfuzzer.cc), and with every other
// compiler as an ordinary test that replays the files kept here (replay_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/fuzz/random.h"

namespace sinter::fuzz {

using Blob = std::vector<uint8_t>;
using View = std::span<const uint8_t>;

// Changes bytes without regard to their meaning; the result has at most `most` bytes. libFuzzer brings its
// own.
using ByteMutator = std::function<void(Blob* bytes, size_t most)>;
ByteMutator plain_mutator(Random& random);

// How deep the inputs of this process went: a fuzzer whose inputs are all refused tests little.
struct Counts {
  uint64_t inputs = 0, accepted = 0, ran = 0;  // ran: to the end, once or more
  uint64_t packed_only = 0;                    // files made without constants
};
extern Counts counts;

struct Target {
  std::string_view name;  // also of the folder of its files
  void (*run)(View bytes);
  Blob (*mutate)(View bytes, size_t most, Random& random, const ByteMutator& by_bytes);
};

// A .sinter file: open (digests waived), create sessions on the portable kernels, run.
extern const Target kModelTarget;
// An ONNX file: the whole conversion. What comes out must pass the device's verifier.
extern const Target kOnnxTarget;
// Input data: .npz, .npy, ONNX .pb, also as calibration samples; pictures, sounds and lists.
extern const Target kArraysTarget;

// Ends the process with a message: a guarantee is broken.
[[noreturn]] void broken(const char* promise, const char* detail = "");

// For the converter's target: opens, creates and runs a file that must be good. False: refused, and why.
bool accepted(View file, const char** why);

}  // namespace sinter::fuzz

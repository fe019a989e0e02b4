// PackedWeights: a model's constants in the form that kernels read, packed once for any number of sessions.
//
//   auto needs = sinter::PackedWeights::requirements(model, options);
//   auto packed = sinter::PackedWeights::create(model, memory, options);  // `memory`: needs->bytes, aligned
//   options.packed_weights = &*packed;
//   auto first = sinter::Session::create(model, memory_1, options);
//   auto second = sinter::Session::create(model, memory_2, options);
//
// Each of these sessions then needs its arena, its control structures and the private memory of its steps
// (Session::requirements). A session without PackedWeights packs into its own prepared memory.
//
// If the model has several shape sets, options.entry = kEveryEntry packs for all of them: the block has each
// form once that sessions of different sets read.
//
// A session uses the packings that its steps need: the same constants, packed by the same backend in the same
// way. It packs missing ones (because it was created with other backends, another instruction set or another
// program) into its own memory, as requirements() states. Results do not depend on this.
//
// A model file can hold packings too, of one machine or of several (pack_file.h). Those of this machine are
// read from the file's pages: the block has a record for each. Sessions without PackedWeights read them if
// SessionOptions::packed_in_file is set. A file can even lack the constants that these packings replace
// (PackedOnlyFile); sessions that need such a constant are refused.
#pragma once

#include "sinter/session.h"

namespace sinter {

namespace detail {
struct PackedState;
}

// A PackedWeights is a handle; copies refer to the same bytes. After create() the bytes are read-only, so
// sessions on any threads can be created and run at the same time.
class PackedWeights {
 public:
  PackedWeights() = default;  // empty: only valid() may be called

  // Returns the exact bytes of the block that create() needs with the same options on this machine, and of
  // the blocks of device memory for steps that are planned there. The options `bindings`, `devices`,
  // `packed_weights`, `require_planned` and `on_fallback` have no effect.
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options);
  // Packs the weights on options.threads. `memory` is aligned to kBufferAlignment. Its required bytes and the
  // model must live as long as a session that was created with the result. Fails with kOutOfMemory and the
  // bytes needed if `memory` is too small. options.devices are blocks of device memory, which live as long as
  // these sessions. For a device without a block nothing is packed: each session brings its constants there.
  static Result<PackedWeights> create(const Model& model, std::span<std::byte> memory,
                                      const SessionOptions& options);

  bool valid() const { return state_ != nullptr; }
  size_t bytes() const;     // the size of the block
  uint32_t count() const;   // packings in the block
  uint32_t stored() const;  // packings that are read where the model's file has them

  // Returns whether the model's file has packed weights (pack_file.h) for any machine. The block then has
  // room for the other ones alone.
  static bool in_file(const Model& model);

  // Returns the number of packings that the file lacks and that can be stored. Packings in device memory, and
  // those that a backend makes for this process alone, cannot.
  uint32_t missing() const;
  // Gives `put` the bytes of the model's file with these packings, in order, in pieces. Fails with
  // kUnsupported if the file is signed, which covers every byte, or has kMostSegments segments.
  Status write_file(Status (*put)(void* context, std::span<const std::byte> piece), void* context) const;
  static constexpr uint32_t kMostSegments = 24;

  const detail::PackedState* state() const { return state_; }

 private:
  const detail::PackedState* state_ = nullptr;
};

// The model's file as PackedWeights::write_file() gives it, without the constants that its packings replace:
// the constants that nothing reads except steps, of the program or its prepare list, whose packed form is in
// it. The file is for this machine, this build and these backends. Other sessions, and those that read no
// packed weights, are refused when they are created (kUnsupported, with the step).
class PackedOnlyFile {
 public:
  PackedOnlyFile() = default;  // empty: nothing may be called

  // Returns the bytes of memory that create() needs for the model, a few for each constant.
  static size_t bytes(const Model& model);
  // `packed` was made of the model with kEveryEntry and `options`, the options of the later sessions. It and
  // `memory`, which is aligned to kBufferAlignment, must live as long as the result. Fails with kUnsupported
  // if the file has several profiles, whose sessions read the constants.
  static Result<PackedOnlyFile> create(const Model& model, const PackedWeights& packed,
                                       const SessionOptions& options, std::span<std::byte> memory);

  uint32_t count() const { return count_; }                    // constants that are left out
  uint64_t constant_bytes() const { return constant_bytes_; }  // their bytes
  // Writes the file as PackedWeights::write_file() does.
  Status write(Status (*put)(void* context, std::span<const std::byte> piece), void* context) const;

 private:
  const detail::PackedState* packed_ = nullptr;
  std::span<uint64_t> places_;  // the offset of each constant in its segment
  std::span<uint32_t> order_;   // the constants that stay, by their place
  uint32_t count_ = 0;
  uint64_t constant_bytes_ = 0;
};

// Returns the value for SessionOptions::packed_in_file.
const detail::PackedInFile* packed_in_file();

}  // namespace sinter

// XNNPACK has one allocator per process, which is set once. Sinter's serves the creation in progress: from a
// session's prepared memory, or, in a dry run, by adding up the requests. Outside a creation it has no
// memory, so that a run cannot allocate; allocations are never freed one by one.
//
// Packed weights go through the library's weights cache, which is also Sinter's: they are measured, packed
// into given memory, or found there by an operator that is prepared.
#pragma once

#include <xnnpack.h>

#include <cstddef>
#include <span>

#include "runtime/core/bump_arena.h"
#include "runtime/core/status.h"

namespace sinter::xnnpack {

// Initialises the library with this allocator, once per process.
Status initialize();

// A creation; others wait until it ends. In a dry run, small requests are served from a small static buffer;
// large packed weights and indirection buffers are refused once their size is known.
class Creation {
 public:
  // Begins a dry run, which measures.
  Creation();
  // Begins a dry run that packs exactly these bytes of weights.
  explicit Creation(std::span<std::byte> packed);
  // Begins a creation with packed weights, which are only read. Some operators pack into `scratch` in any
  // case.
  Creation(BumpArena* arena, std::span<const std::byte> packed, std::span<std::byte> scratch);
  ~Creation();
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;

  // For dry runs: the bytes requested, each rounded up to kBufferAlignment; those of the last request;
  // whether weights and whether another block were refused.
  size_t bytes() const { return bytes_; }
  size_t last() const { return last_; }
  bool refused_weights() const { return refused_weights_; }
  bool refused() const { return refused_; }
  void restart();  // forgets all of these
  // For dry runs: the bytes of the first packed weights; whether the operator packs existing ones again.
  size_t weights() const { return weights_; }
  bool always_packs() const { return always_packs_; }
  // Returns whether all of the given memory has been packed.
  bool packed() const { return done_; }

  // Returns the weights cache to pass. With `claims`, it claims in a dry run to have the weights already, for
  // operators that still report their size then.
  xnn_weights_cache_t cache(bool claims);

  void* allocate(size_t bytes, bool grows);
  // The functions of the weights cache.
  bool find();
  void* reserve(size_t bytes);
  void insert(void* at, size_t bytes);
  void* weights_address() const;
  // Returns bytes for a constant without data. Weights that are read then are smaller than their packed form,
  // for which these bytes suffice.
  static const void* any_bytes();

 private:
  enum class Mode : uint8_t { kMeasure, kPack, kPrepare };
  Creation(Mode mode, BumpArena* arena, std::span<const std::byte> packed, std::span<std::byte> scratch);
  void note_weights(size_t bytes);

  Mode mode_;
  BumpArena* arena_;
  std::span<const std::byte> packed_;
  std::span<std::byte> scratch_;  // kPack: the bytes that are to be packed
  size_t used_ = 0, bytes_ = 0, last_ = 0, weights_ = 0;
  bool refused_ = false, refused_weights_ = false, claims_ = false, searched_ = false;
  bool always_packs_ = false, done_ = false;
};

}  // namespace sinter::xnnpack

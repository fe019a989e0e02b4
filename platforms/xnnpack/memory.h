// XNNPACK's allocator is one per process and given once. Ours serves the creation in progress: from a
// session's prepared memory, or, in a dry run, by adding up the requests. Outside of a creation it has no
// memory, so that a run cannot allocate; allocations are never freed one by one.
#pragma once

#include <xnnpack.h>

#include <cstddef>

#include "runtime/core/bump_arena.h"
#include "runtime/core/status.h"

namespace sinter::xnnpack {

// Initialises the library with our allocator, once per process.
Status initialize();

// One creation; others wait until it ends. In a dry run what fits is served from a small static buffer;
// packed weights and indirection buffers are refused once their size is known, so that no weight is packed
// twice.
class Creation {
 public:
  explicit Creation(BumpArena* arena);  // null: a dry run
  ~Creation();
  Creation(const Creation&) = delete;
  Creation& operator=(const Creation&) = delete;

  // Dry runs: bytes requested, each rounded up to kBufferAlignment; of the last request; whether weights and
  // whether another block were refused.
  size_t bytes() const { return bytes_; }
  size_t last() const { return last_; }
  bool refused_weights() const { return refused_weights_; }
  bool refused() const { return refused_; }
  void restart();  // forgets all that

  // What to give as weights cache: null, or in a dry run one that notes sizes. With `packed` it claims to
  // have the weights already, for operators that still report their size then.
  xnn_weights_cache_t cache(bool packed);

  void* allocate(size_t bytes, bool grows);
  void* reserve(size_t bytes);
  void insert(void* at, size_t bytes);
  // Stands for a constant without data in a dry run. Weights that are read then are smaller than what they
  // are packed into, which is all of this.
  static const void* any_bytes();
  bool claims_packed() const { return packed_; }

 private:
  BumpArena* arena_;
  xnn_weights_cache_provider cache_ = {};
  size_t used_ = 0, bytes_ = 0, last_ = 0;
  bool refused_ = false, refused_weights_ = false, packed_ = false;
};

}  // namespace sinter::xnnpack

// EntrySessions: the sessions of one shape set of a model, or of all of them, in one block of memory. Those
// of several sets never run at once. So they have one arena between them, which serves the largest, and one
// state, which a run with any shapes goes on with.
//
// In the block, where there are several: the Session objects, the state, the arena (unless the caller shares
// one), then the memory of each session. One session alone has the block as Session::create() takes it.
#pragma once

#include <optional>

#include "sinter/sinter.h"

namespace sinter {

class EntrySessions {
 public:
  EntrySessions() = default;
  EntrySessions(const EntrySessions&) = delete;
  EntrySessions& operator=(const EntrySessions&) = delete;
  ~EntrySessions() { destroy(); }

  // The exact bytes of the block, and of device memory the sum over all sessions. `options.entry`: a shape
  // set, or kEveryEntry. kInvalidArgument if buffers or blocks of device memory are given to several.
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options);
  // Once. `needs`: requirements() with the same options, of which `memory` has the bytes, aligned to
  // kBufferAlignment, and outlives the object. Sets the state to its initial values.
  Status create(const Model& model, const Requirements& needs, std::span<std::byte> memory,
                const SessionOptions& options);
  // The same instead of create(), but with the state of `old`, which is destroyed; on failure it is as it
  // was. The shape sets and the profile must be those of `old`, and `memory` must not overlap its block.
  Status move_from(EntrySessions& old, const Model& model, const Requirements& needs,
                   std::span<std::byte> memory, const SessionOptions& options);
  void destroy();

  std::span<const std::byte> block() const { return block_; }
  // The shape sets that have a session: first() up to first() + count() - 1. None before create().
  uint32_t first() const { return first_; }
  uint32_t count() const { return count_; }
  bool has(uint32_t entry) const { return entry >= first_ && entry - first_ < count_; }
  Session& of(uint32_t entry) const { return sessions_[entry - first_]; }
  // The one that is in use: at first that of first().
  uint32_t entry() const { return entry_; }
  void use(uint32_t entry) { entry_ = entry; }
  Session& current() const { return of(entry_); }
  // Sets the state back to its initial values.
  void reset() { current().reset(); }

 private:
  Status create_all(const Model& model, const Requirements& needs, SessionOptions options);

  std::span<std::byte> block_;
  Session alone_;                // if there is one
  Session* sessions_ = nullptr;  // that, or in the block
  uint32_t first_ = 0, count_ = 0, entry_ = 0;
  std::optional<SharedArena> arena_;  // of several
  std::optional<SharedState> state_;
};

}  // namespace sinter

// EntrySessions: the sessions of one shape set of a model, or of all of them, in one block of memory.
// Sessions of several sets never run at once, so that they have one arena between them, which serves the
// largest, and one state, which a run with any shapes goes on with.
//
// In the block of several sessions are: the Session objects, the state, the arena (unless the caller shares
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

  // Returns the exact bytes of the block and the sum of the sessions' device memory. `options.entry`: a shape
  // set, or kEveryEntry. kInvalidArgument: several get buffers or device blocks.
  static Result<Requirements> requirements(const Model& model, const SessionOptions& options);
  // Creates the sessions, once. `needs` is requirements() with the same options; `memory` has its bytes, is
  // aligned to kBufferAlignment, and outlives the object. Sets the state to its initial values.
  Status create(const Model& model, const Requirements& needs, std::span<std::byte> memory,
                const SessionOptions& options);
  // Does the same as create(), but takes the state of `old`, which is destroyed; on failure `old` is
  // unchanged. Both have the same shape sets and profile, and their memory does not overlap.
  Status move_from(EntrySessions& old, const Model& model, const Requirements& needs,
                   std::span<std::byte> memory, const SessionOptions& options);
  void destroy();

  std::span<const std::byte> block() const { return block_; }
  // The shape sets that have a session are first() up to first() + count() - 1; none before create().
  uint32_t first() const { return first_; }
  uint32_t count() const { return count_; }
  bool has(uint32_t entry) const { return entry >= first_ && entry - first_ < count_; }
  Session& of(uint32_t entry) const { return sessions_[entry - first_]; }
  std::span<Session> all() const { return {sessions_, count_}; }
  // Returns the shape set in use, which is first() at the beginning.
  uint32_t entry() const { return entry_; }
  void use(uint32_t entry) { entry_ = entry; }
  Session& current() const { return of(entry_); }
  void reset() { current().reset(); }

 private:
  Status create_all(const Model& model, const Requirements& needs, SessionOptions options);

  std::span<std::byte> block_;
  Session alone_;                // used if there is one
  Session* sessions_ = nullptr;  // &alone_, or in the block
  uint32_t first_ = 0, count_ = 0, entry_ = 0;
  std::optional<SharedArena> arena_;  // shared by several
  std::optional<SharedState> state_;
};

}  // namespace sinter

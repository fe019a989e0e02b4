// The order of a launch's accesses. Its threads run one after the other, and time advances at their barriers.
#pragma once

#include <cstdint>

namespace sinter::cuda::emulator {

// An access to a byte: its time, its thread, and whether it stands for those of several. 0: none.
using Stamp = uint64_t;

// The last uses of a byte.
struct Uses {
  Stamp written = 0, read = 0;
};

// The conflict of an access with another one that nothing orders, or null.
using Conflict = const char*;
inline constexpr char kReadBehindWrite[] = "is read without a barrier behind another thread's write",
                      kWrittenBehindWrite[] = "is written without a barrier behind another thread's write",
                      kWrittenBehindRead[] = "is written without a barrier behind another thread's read";

class Order {
 public:
  void begin_launch() {
    launch_ = advance();
    begin_block();
  }
  void begin_block() { block_ = barrier_ = advance(); }
  void run(int thread) { mine_ = now_ | static_cast<Stamp>(thread) << kThreadShift; }
  // All threads of the block, or of a warp, wait for each other. run() has to follow.
  void meet() { barrier_ = advance(); }
  void meet_warp(int warp) { warps_[warp] = advance(); }

  // These are accesses of the thread that runs. An atomic access conflicts only with others.
  Conflict read(Uses& uses) const {
    if (uses.written >= launch_ && unordered(uses.written)) return kReadBehindWrite;
    if (uses.read != mine_) uses.read = joined(uses.read);
    return nullptr;
  }
  Conflict write(Uses& uses) const {
    if (uses.written >= launch_ && unordered(uses.written)) return kWrittenBehindWrite;
    if (uses.read >= launch_ && unordered(uses.read)) return kWrittenBehindRead;
    // An access that conflicts with an earlier read conflicts with this write as well.
    uses = {mine_, 0};
    return nullptr;
  }
  Conflict change_atomically(Uses& uses) const {
    const bool in_launch = uses.written >= launch_;
    if (in_launch && (uses.written & kAtomic) == 0 && unordered(uses.written)) return kWrittenBehindWrite;
    if (uses.read >= launch_ && unordered(uses.read)) return kWrittenBehindRead;
    // If this thread has made a plain write before, that one counts for other threads.
    if (!in_launch || uses.written < barrier_ || (uses.written & kAtomic) != 0)
      uses.written = joined(uses.written) | kAtomic;
    return nullptr;
  }
  bool used_in_block(Stamp use) const { return use >= block_; }
  // Returns whether later accesses conflict with both alike.
  bool same(const Uses& a, const Uses& b) const { return same(a.written, b.written) && same(a.read, b.read); }

 private:
  // The fields from the lowest bit on: whether it is atomic, its scope, its thread, its time.
  static constexpr Stamp kAtomic = 1;
  enum Scope : Stamp { kThread = 0, kOneWarp = 1, kOneBlock = 2, kGrid = 3 };
  static constexpr int kScopeShift = 1, kThreadShift = 3, kTimeShift = 13;
  static constexpr int kWarpShift = kThreadShift + 5;
  static constexpr Stamp kWarpBits = (Stamp{1} << kTimeShift) - (Stamp{1} << kWarpShift);

  bool same(Stamp a, Stamp b) const { return a == b || (a < launch_ && b < launch_); }
  Stamp advance() { return now_ += Stamp{1} << kTimeShift; }
  static Stamp scope_of(Stamp s) { return s >> kScopeShift & 3; }
  bool same_warp(Stamp s) const { return ((s ^ mine_) & kWarpBits) == 0; }

  // Returns, for an access in this launch, whether nothing orders it and an access of this thread now.
  bool unordered(Stamp s) const {
    const Stamp scope = scope_of(s);
    if (s < block_ || scope == kGrid) return true;
    if (s < barrier_) return false;
    if (scope == kOneBlock || !same_warp(s)) return true;
    if (s < warps_[(mine_ & kWarpBits) >> kWarpShift]) return false;
    return scope == kOneWarp || ((s ^ mine_) >> kThreadShift & 1023) != 0;
  }
  // Returns this access, together with earlier ones that nothing orders.
  Stamp joined(Stamp before) const {
    if (before < launch_ || !unordered(before)) return mine_;
    const Stamp scope = before < block_ || scope_of(before) == kGrid          ? kGrid
                        : !same_warp(before) || scope_of(before) == kOneBlock ? kOneBlock
                                                                              : kOneWarp;
    return mine_ | scope << kScopeShift;
  }

  // Times are the stamps of their first accesses. The host's time is before all launches.
  Stamp now_ = Stamp{1} << kTimeShift;
  Stamp launch_ = 0, block_ = 0, barrier_ = 0, mine_ = 0;
  Stamp warps_[32] = {};
};

// The order of the launch that runs: launches take turns.
extern Order order;

}  // namespace sinter::cuda::emulator

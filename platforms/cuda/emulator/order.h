// Which accesses of a launch are ordered. Its threads run one after the other; time advances where they meet.
#pragma once

#include <cstdint>

namespace sinter::cuda::emulator {

// An access to a byte: when, by which thread, and whether it stands for those of several. 0: none.
using Stamp = uint64_t;

// What used a byte last.
struct Uses {
  Stamp written = 0, read = 0;
};

// How an access meets another one that nothing orders. Null: it does not.
using Meeting = const char*;
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

  // Of the thread that runs. An atomic access meets only others.
  Meeting read(Uses& uses) const {
    if (uses.written >= launch_ && unordered(uses.written)) return kReadBehindWrite;
    if (uses.read != mine_) uses.read = joined(uses.read);
    return nullptr;
  }
  Meeting write(Uses& uses) const {
    if (uses.written >= launch_ && unordered(uses.written)) return kWrittenBehindWrite;
    if (uses.read >= launch_ && unordered(uses.read)) return kWrittenBehindRead;
    // What meets an earlier read meets this write as well.
    uses = {mine_, 0};
    return nullptr;
  }
  Meeting change_atomically(Uses& uses) const {
    const bool in_launch = uses.written >= launch_;
    if (in_launch && (uses.written & kAtomic) == 0 && unordered(uses.written)) return kWrittenBehindWrite;
    if (uses.read >= launch_ && unordered(uses.read)) return kWrittenBehindRead;
    // Behind this thread's own plain write, that one counts for the others.
    if (!in_launch || uses.written < barrier_ || (uses.written & kAtomic) != 0)
      uses.written = joined(uses.written) | kAtomic;
    return nullptr;
  }
  bool used_in_block(Stamp use) const { return use >= block_; }
  // Whether later accesses meet both alike.
  bool same(const Uses& a, const Uses& b) const { return same(a.written, b.written) && same(a.read, b.read); }

 private:
  // From the lowest bit on: whether it is atomic, its scope, its thread, its time.
  static constexpr Stamp kAtomic = 1;
  enum Scope : Stamp { kThread = 0, kOneWarp = 1, kOneBlock = 2, kGrid = 3 };
  static constexpr int kScopeShift = 1, kThreadShift = 3, kTimeShift = 13;
  static constexpr int kWarpShift = kThreadShift + 5;
  static constexpr Stamp kWarpBits = (Stamp{1} << kTimeShift) - (Stamp{1} << kWarpShift);

  bool same(Stamp a, Stamp b) const { return a == b || (a < launch_ && b < launch_); }
  Stamp advance() { return now_ += Stamp{1} << kTimeShift; }
  static Stamp scope_of(Stamp s) { return s >> kScopeShift & 3; }
  bool same_warp(Stamp s) const { return ((s ^ mine_) & kWarpBits) == 0; }

  // Of an access in this launch: whether nothing orders it and one that this thread makes now.
  bool unordered(Stamp s) const {
    const Stamp scope = scope_of(s);
    if (s < block_ || scope == kGrid) return true;
    if (s < barrier_) return false;
    if (scope == kOneBlock || !same_warp(s)) return true;
    if (s < warps_[(mine_ & kWarpBits) >> kWarpShift]) return false;
    return scope == kOneWarp || ((s ^ mine_) >> kThreadShift & 1023) != 0;
  }
  // This access, and those before that nothing orders.
  Stamp joined(Stamp before) const {
    if (before < launch_ || !unordered(before)) return mine_;
    const Stamp scope = before < block_ || scope_of(before) == kGrid          ? kGrid
                        : !same_warp(before) || scope_of(before) == kOneBlock ? kOneBlock
                                                                              : kOneWarp;
    return mine_ | scope << kScopeShift;
  }

  // Times as the stamps of their first accesses. Before all launches, the host's.
  Stamp now_ = Stamp{1} << kTimeShift;
  Stamp launch_ = 0, block_ = 0, barrier_ = 0, mine_ = 0;
  Stamp warps_[32] = {};
};

// Of the launch that runs: launches take turns.
extern Order order;

}  // namespace sinter::cuda::emulator

// The planning side of a platform: data and host code that builds on any machine, whether or not the
// platform's library is there. The converter chooses kernels and plans workspaces by it.
#pragma once

#include <optional>

#include "runtime/backend/cpu.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/target.h"

namespace sinter {

struct Platform {
  // Its folder below platforms/, and the name of its Backend.
  const char* name = nullptr;
  // Whether it has kernels for machines of this kind.
  bool (*serves)(const Target& target) = nullptr;
  // Whether it has kernels for the operation on machines of this kind; accept refuses every call of others.
  bool (*has_kernel)(const Target& target, Op op) = nullptr;
  // ok: takes the call, whose small constants have data, and needs at most *workspace bytes in a run of up to
  // `threads` threads on any machine of the target's architecture. kUnsupported: why not.
  Status (*accept)(const Target& target, const OpCall& call, int threads, size_t* workspace) = nullptr;
  // Bytes that a session keeps for its kernel of a call that it accepts, besides packed weights and the
  // workspace: an estimate, the same on every machine. Null: hardly any.
  size_t (*kept_bytes)(const OpCall& call) = nullptr;
  // Whether its kernel of a call that it accepts reads constant weights where they are, because they are
  // large: nothing is packed, and a session takes no memory for them. Null: never.
  bool (*reads_large_weights)(const OpCall& call) = nullptr;
  // Whether it computes `next`, which reads the result of `first`, together with that where their places
  // permit it (Backend::fuse), in less time than any platform takes for one after the other. Null: never.
  bool (*fuses)(const OpCall& first, const OpCall& next) = nullptr;
  // The time of its kernel of a call that it accepts, on one thread of `cpu`, in a unit that all platforms
  // share for that call; nullopt: not known. Where two platforms have one, the lower is preferred, else the
  // order of platforms.def decides. Null: never known.
  std::optional<double> (*time)(Cpu cpu, const OpCall& call) = nullptr;
  // Whether some of its kernels compute in `type`, float16 or bfloat16, on processors of this kind that do;
  // null: none.
  bool (*computes_half)(const Target& target, DType type) = nullptr;
  // Whether its kernel of a Conv that it accepts uses Winograd's algorithm where the attribute permits it.
  // Null: never.
  bool (*computes_winograd)(const OpCall& call) = nullptr;
  // Its steps compute in its device memory.
  bool own_memory = false;
  // Planned only where a conversion names it (--backends), asks for a type that it computes, or is for this
  // machine (--target native) by a program that has it: builds of the runtime need not have it.
  bool on_request = false;
};

}  // namespace sinter

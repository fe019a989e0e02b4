// The planning side of a platform: data and host code that builds on any machine, whether or not the
// platform's library is there. The converter chooses kernels and plans workspaces by it.
#pragma once

#include <optional>

#include "runtime/backend/cpu.h"
#include "runtime/backend/kernel.h"
#include "runtime/backend/target.h"

namespace sinter {

struct Platform {
  // The name of its folder below platforms/ and of its Backend.
  const char* name = nullptr;
  // Returns whether it has kernels for machines of this kind.
  bool (*serves)(const Target& target) = nullptr;
  // Returns whether it has kernels for the operation on such machines; accept refuses every call of others.
  bool (*has_kernel)(const Target& target, Op op) = nullptr;
  // Returns ok for a call, whose small constants have data, that needs at most *workspace bytes in a run of
  // up to `threads` threads on any machine of the architecture, else kUnsupported and the reason.
  Status (*accept)(const Target& target, const OpCall& call, int threads, size_t* workspace) = nullptr;
  // Returns the bytes that a session keeps for its kernel of a call that it accepts, besides packed weights
  // and the workspace: an estimate, the same on every machine. Null: hardly any.
  size_t (*kept_bytes)(const OpCall& call) = nullptr;
  // Returns whether its kernel of a call that it accepts reads constant weights where they are, because they
  // are large: nothing is packed, and a session takes no memory for them. Null: never.
  bool (*reads_large_weights)(const OpCall& call) = nullptr;
  // Returns whether it computes `next`, which reads the result of `first`, together with it where the places
  // permit it (Backend::fuse), faster than any platform computes both in turn. Null: never.
  bool (*fuses)(const OpCall& first, const OpCall& next) = nullptr;
  // Returns the time of its kernel of a call that it accepts, on one thread of `cpu`, in a unit that all
  // platforms share for that call; nullopt: not known. Where two platforms have one, the lower is preferred,
  // else the order of platforms.def decides. Null: never known.
  std::optional<double> (*time)(Cpu cpu, const OpCall& call) = nullptr;
  // Returns whether some of its kernels compute in `type`, float16 or bfloat16, on processors of this kind
  // that do; null: none.
  bool (*computes_half)(const Target& target, DType type) = nullptr;
  // Returns whether its kernel of a Conv that it accepts uses Winograd's algorithm where the attribute
  // permits it. Null: never.
  bool (*computes_winograd)(const OpCall& call) = nullptr;
  // True if its steps compute in its device memory.
  bool own_memory = false;
  // True if it is planned only where a conversion names it (--backends), asks for a type that it computes, or
  // is for this machine (--target native) by a program that has it: builds of the runtime need not have it.
  bool on_request = false;
};

}  // namespace sinter

// The backends of this build of Sinter, ready to pass to a session.
//
//   auto session = sinter::Session::create(model, memory, {.backends = sinter::default_backends()});
//
// A program that calls it links all of them. An application that needs only some of them creates these itself
// (platforms/simd/simd_kernels.h, platforms/xnnpack/xnnpack_backend.h), which keeps the others out of the
// program.
#pragma once

#include <span>

#include "runtime/backend/backend.h"

namespace sinter {

// Returns XNNPACK and oneDNN, if they were built, and the Highway kernels ("simd"). Any number of sessions
// may share them, on any threads; they live as long as the program.
std::span<Backend* const> default_backends();

}  // namespace sinter

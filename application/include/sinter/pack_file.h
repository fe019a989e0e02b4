// pack_file: stores the packed weights of this machine in a model file, so that opening it prepares nothing.
//
//   const sinter::PackReport packed = sinter::pack_file("net.sinter", "net.sinter");
//   if (!packed.ok()) std::fprintf(stderr, "%s\n", packed.text);
//
// Kernels read constant weights in a form that depends on the backend and on the processor. A session makes
// that form when it is created; from a packed file Runners, C sessions and C++ sessions with
// SessionOptions::packed_in_file read it where it is, in pages that all processes share. Call this once on
// the device, such as when a model is installed; or pack on the workstation, if its processor has the
// device's features (`sinter convert --pack`).
//
// The file keeps all its content: on another machine, or with another version of Sinter, sessions pack
// as they always did. It may hold the packed weights of several machines.
//
//   const sinter::PackReport packed = sinter::pack_file("net.sinter", "here.sinter", {}, true);
//
// With `packed_only` the written file lacks the constants that are packed in it and that nothing reads
// unpacked, so that it is about as large as the packed weights. It is for this machine and this build:
// others, and other backends, are refused with the step that lacks a constant. Keep the first file.
#pragma once

#include "sinter/runner.h"

namespace sinter {

struct PackReport {
  Code code = Code::kOk;
  char text[512] = "";      // the error, with the path
  uint32_t count = 0;       // packings that sessions with these options find in the file now
  uint32_t added = 0;       // the new ones among these
  uint32_t left_out = 0;    // constants that the written file lacks and the read one has
  int64_t bytes = 0;        // the growth of the file
  uint64_t file_bytes = 0;  // the size of the file now

  bool ok() const { return code == Code::kOk; }
};

// Reads the model file `from` and writes `to`, which may be the same path. The file appears whole or not at
// all, and is written under another name first (sinter/new_file.h, which states what a replaced file passes
// on). The packed weights are those that Runners with these options (`backends`, `backend`, `profile`,
// `entry`) would pack, on `threads` or `pool`. The written file has been opened and found to be sound.
//
// kInvalidArgument: a path cannot be read or written. kUnsupported: the file is signed, which covers every
// byte: pack the unsigned file, then sign; or, with `packed_only`, it is planned for several targets.
// kCorrupt: `from` is damaged. kOutOfMemory: for the model's control structures and the packed weights, which
// are in memory once.
PackReport pack_file(const char* from, const char* to, const RunnerOptions& options = {},
                     bool packed_only = false);

}  // namespace sinter

// The guarantees about the memory of models and sessions, as checks for any file. Each returns what it found
// wrong, or an empty string. All memory that a model or session gets ends at a guard page, with not a byte
// more.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sinter/sinter.h"
#include "tests/memory/guarded.h"

namespace sinter::test {

using Finding = std::string;
using Bytes = std::vector<std::byte>;

// A copy of a file, opened.
class OpenedFile {
 public:
  explicit OpenedFile(std::span<const std::byte> file);
  const Status& status() const { return status_; }
  const Model& model() const { return model_; }
  std::span<const std::byte> bytes() const { return file_.span(); }

 private:
  Guarded file_, memory_;
  Model model_;
  Status status_;
};

// One way to use a model: inputs in the model's order, what creates sessions, a name for people.
struct Use {
  const Model& model;
  std::vector<Bytes> inputs;
  SessionOptions options;
  std::string name;
  bool alone = true;  // nothing but the calling thread works
};
// Small numbers of every type, all valid as indices of anything but empty tensors.
std::vector<Bytes> harmless_inputs(const Model& model);

// Opening in every size of memory up to what is needed: refused with the numbers, then accepted.
Finding check_opening(std::span<const std::byte> file);
// Creating in at most about `attempts` sizes from 0 to what is needed: refused with the numbers, then
// accepted; two runs in it give the same bits as in ample memory, and nothing outside is touched.
Finding check_creation(const Use& use, size_t attempts);
// Packing in at most about `attempts` sizes, as check_creation. Two sessions that share the result pack
// nothing, give the bits of one that packs its own, and write to nothing but their memory.
Finding check_packed(const Use& use, size_t attempts);
// With values in a shared arena: creating in a smaller arena is refused with the numbers; two runs give the
// bits of a session with memory of its own, although all of the arena is overwritten between them and the
// session moves to new memory; nothing outside is touched; a run fails, and changes nothing, while another
// session has the arena.
Finding check_shared_arena(const Use& use);
// Outputs and state stay the same if, before each step, all planned memory that no value lives in is
// overwritten.
Finding check_dead_memory(const Use& use);
// How often check_untouched ran a session, and whether the last run left all of the session's memory as the
// one before it had. Then every further run on these inputs would repeat it, because a run on one thread
// depends on nothing else.
struct Runs {
  int made = 0;
  bool settled = false;
};
// `runs` runs, or as many as start within `seconds`, take nothing from the heap, lock nothing and make no
// system call.
Finding check_untouched(const Use& use, int most, double seconds, Runs* runs);

}  // namespace sinter::test

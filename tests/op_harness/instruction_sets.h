// Instruction sets that a backend's kernels can be limited to while a program runs. A platform that has such
// a limit defines one of these objects in platforms/NAME/tests/harness/, which is built into the harness:
//
//   const InstructionSets sets("simd", names, limit);
//
// The harness then runs every case on each of them.
#pragma once

#include <string_view>
#include <vector>

namespace sinter::test {

class InstructionSets {
 public:
  // `names` returns the sets of this machine; `limit` takes one of them, or null for no limit.
  InstructionSets(const char* backend, std::vector<const char*> (*names)(), bool (*limit)(const char*));
  InstructionSets(const InstructionSets&) = delete;
  InstructionSets& operator=(const InstructionSets&) = delete;

  std::vector<const char*> names() const { return names_(); }
  bool limit(const char* name) const { return limit_(name); }
  // Returns the sets of a backend; null if it has no such limit.
  static const InstructionSets* of(std::string_view backend);

 private:
  const char* backend_;
  std::vector<const char*> (*names_)();
  bool (*limit_)(const char*);
};

}  // namespace sinter::test

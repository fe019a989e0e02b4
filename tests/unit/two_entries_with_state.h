// A file with two shape sets that have a state between them, for tests of what sessions share.
#pragma once

#include "tests/format/model_builder.h"

namespace sinter::testing {

// s is a state of [2] that begins with {1, 2}.
//   entry 0, x of [2]:    s = s + x,  y = s
//   entry 1, x of [2,2]:  s = s + s,  y = x + s
inline ModelBuilder two_entries_with_state() {
  constexpr auto kFloat = DType::kFloat32;
  ModelBuilder b;
  b.regions = {0, 0};
  const int32_t initial = b.add_constant<float>(kFloat, {2}, {1, 2});
  for (uint32_t entry = 0; entry < 2; ++entry) {
    b.enter(entry);
    const int s = b.state(kFloat, {2}, initial, -1);
    const std::vector<int64_t> dims = entry == 0 ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 2};
    const int x = b.input("x", kFloat, dims);
    const int next = b.value(kFloat, {2}), y = b.value(kFloat, dims);
    b.program().values[static_cast<size_t>(s)].update = next;
    b.name_state(s, "s_in", "s_out");
    b.place(s).region = b.place(next).region = 1;
    b.place(next).alias_of = s;
    b.place(next).first = 0;
    if (entry == 0) {
      b.step(AddAttrs{}, {s, x}, {next});
      b.step(CopyAttrs{}, {next}, {y});
    } else {
      b.step(AddAttrs{}, {s, s}, {next});
      b.step(AddAttrs{}, {x, next}, {y});
    }
    b.output("y", y);
  }
  b.enter(0);
  b.profiles[0].entries = {0, 1};
  return b;
}

}  // namespace sinter::testing

#include "runtime/model/lives.h"

#include <algorithm>

namespace sinter::detail {

void find_lives(const fb::Program& program, std::span<Life> lives) {
  const uint32_t steps = length(program.steps());
  const auto end = static_cast<int32_t>(steps);
  const auto runs_have = [&](int32_t v) {
    const fb::ValueKind kind = program.values()->Get(static_cast<uint32_t>(v))->kind();
    return kind != fb::ValueKind::Constant && kind != fb::ValueKind::Prepared;
  };
  for (uint32_t v = 0; v < length(program.values()); ++v)
    lives[v] = {-1, program.values()->Get(v)->kind() == fb::ValueKind::State ? end : -1};
  for (uint32_t s = 0; s < steps; ++s) {
    const fb::Step& step = *program.steps()->Get(s);
    const auto now = static_cast<int32_t>(s);
    for (const int32_t v : items(step.inputs()))
      if (v >= 0 && runs_have(v))
        lives[static_cast<size_t>(v)].last = std::max(lives[static_cast<size_t>(v)].last, now);
    for (const int32_t v : items(step.outputs()))
      if (v >= 0) lives[static_cast<size_t>(v)] = {now, now};
  }
  for (uint32_t i = 0; i < length(program.outputs()); ++i)
    lives[program.outputs()->Get(i)->value()].last = end;
  for (uint32_t v = 0; v < length(program.values()); ++v)
    if (const int32_t update = program.values()->Get(v)->update(); update >= 0)
      lives[static_cast<size_t>(update)].last = end;
}

}  // namespace sinter::detail

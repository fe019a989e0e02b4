// The turns of the techniques, and the judge of their proposals.
#include <algorithm>

#include "converter/quantize/quantizer.h"
#include "converter/quantize/weights/equalize.h"

namespace sinter::convert {

std::span<const Turn> Quantizer::all_turns() {
  static constexpr Turn kTurns[] = {
#define SINTER_TECHNIQUE(constant, name, description, ...) {.technique = &technique::constant, __VA_ARGS__},
#define SINTER_TURN(constant, ...) {.technique = &technique::constant, __VA_ARGS__},
#include "converter/quantize/techniques.def"
  };
  return kTurns;
}

std::vector<Turn> Quantizer::turns(const Phase& phase, size_t kept) const {
  std::vector<Turn> list;
  for (const Turn& turn : turns_)
    if (turn.phase == &phase && (turn.needs == nullptr || (this->*turn.needs)(kept))) list.push_back(turn);
  return list;
}

void Quantizer::propose(const Phase& phase) {
  for (const Turn& turn : turns(phase, trials_->size())) (this->*turn.proposal)();
}

bool Quantizer::accept(const Technique& technique, std::string what, double before, double after,
                       double worth) {
  const bool kept = after > before + worth;
  summary_.techniques.push_back({technique.name, std::move(what), before, after, kept});
  return kept;
}

}  // namespace sinter::convert

// The techniques of static quantization: the rows of techniques.def. Each can be left out.
#pragma once

namespace sinter::convert {

struct Technique {
  const char *name, *description;
};

#define SINTER_TURN(constant, ...)
namespace technique {
#define SINTER_TECHNIQUE(constant, name, description) inline constexpr Technique constant{name, description};
#include "converter/quantize/techniques.def"
}  // namespace technique

#define SINTER_TURN(constant, ...)
inline constexpr const Technique* kTechniques[] = {
#define SINTER_TECHNIQUE(constant, ...) &technique::constant,
#include "converter/quantize/techniques.def"
};

}  // namespace sinter::convert

#include "converter/target/target_platforms.h"

#include "platforms/platforms.h"

namespace sinter::convert {
std::vector<const Platform*> platforms_serving(const Target& target) {
  std::vector<const Platform*> found;
  for (const Platform* p : all_platforms())
    if (p->serves(target)) found.push_back(p);
  return found;
}

std::vector<const Platform*> platforms_for(const Target& target) {
  std::vector<const Platform*> found = platforms_serving(target);
  std::erase_if(found, [](const Platform* p) { return p->on_request; });
  return found;
}

bool computes_half(const Platform& platform, const Target& target, DType type) {
  return platform.computes_half != nullptr && platform.computes_half(target, type);
}

}  // namespace sinter::convert

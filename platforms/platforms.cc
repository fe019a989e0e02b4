#include "platforms/platforms.h"

namespace sinter {

#define SINTER_PLATFORM(name, backend) extern const Platform name##_platform;
#include "platforms/platforms.def"
#undef SINTER_PLATFORM

std::span<const Platform* const> all_platforms() {
  static constexpr const Platform* kAll[] = {
#define SINTER_PLATFORM(name, backend) &name##_platform,
#include "platforms/platforms.def"
#undef SINTER_PLATFORM
  };
  return kAll;
}

}  // namespace sinter

// oneDNN's planning side: builds on any host, without the library.
#pragma once

#include "runtime/backend/platform.h"

namespace sinter {

extern const Platform onednn_platform;

}  // namespace sinter

// The conversion of sinter_session_options to the C++ options.
#pragma once

#include "application/c/handles.h"

namespace sinter::c {

inline constexpr size_t kMaxBackends = 16;

// SessionOptions and the objects that they refer to, for one call.
struct Converted {
  sinter_session_options given = {};
  SessionOptions options;
  Backend* backends[kMaxBackends];
  Binding bindings[kMaxBindings];
  DeviceBlock devices[kMaxDevices];
  OwnPool own_pool;
  const Model* model = nullptr;
  bool reports = false, logs_fallbacks = false;

  Status convert(const Model& of, const sinter_session_options* from);
};

}  // namespace sinter::c

// Everything that an application needs to run models with the portable kernels. Platforms add backends in
// headers of their own.
#pragma once

#include "runtime/kernels/reference.h"
#include "sinter/model.h"
#include "sinter/packed_weights.h"
#include "sinter/session.h"

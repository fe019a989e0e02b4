// Everything that an application needs to run models with the portable kernels. Platforms declare their
// backends in separate headers.
#pragma once

#include "runtime/kernels/reference.h"
#include "sinter/model.h"
#include "sinter/packed_weights.h"
#include "sinter/session.h"

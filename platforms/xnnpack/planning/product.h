// A matrix product as the library describes it.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::xnnpack {

// The product with a constant or a computed second operand.
struct Product {
  size_t rows = 0, k = 0, n = 0;     // constant: [rows, k] x [k, n]
  size_t in_step = 0, out_step = 0;  // elements from one row to the next
  bool constant = false, transposed = false;
  int batch_rank = 0;
  size_t batch_a[kMaxRank] = {}, batch_b[kMaxRank] = {};
};

// Describes FullyConnected and QFullyConnected.
Status fully_connected_product(const OpCall& call, Product* p);
Status mat_mul_product(const OpCall& call, Product* p);

}  // namespace sinter::xnnpack

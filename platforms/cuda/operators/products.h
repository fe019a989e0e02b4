// The way from the arguments of a product to launches.
#pragma once

#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/window_rows.h"

namespace sinter::cuda {

// Finds the element type of a product, or of another operation that accumulates. Fails with kUnsupported if
// the kernels have none.
Status element_of(DType type, Element* element);
// Returns the elements of 16 bytes.
inline int64_t vector_of(DType type) { return 16 / static_cast<int64_t>(byte_width(type)); }
// Sets the bounds of results.
void set_bounds(ProductArguments* a, double min, double max);
// Fails with kUnsupported unless inputs are dense from the weights on.
Status check_dense_weights(const OpCall& call);
// Launches `parts` parts. Everything but the tiles and the splits is set.
Status launch_product(Lowering& l, ProductArguments& a, int parts);

}  // namespace sinter::cuda

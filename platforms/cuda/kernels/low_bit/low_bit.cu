// LowBitFullyConnected of few rows, for weights of 4 and 8 bits.
#include "platforms/cuda/kernels/low_bit/low_bit_rows.h"

namespace sinter::cuda {

using low_bit_rows::few_rows;

SINTER_KERNEL(low_bit_4_row, LowBitArguments) { few_rows<4, 1>(a); }
SINTER_KERNEL(low_bit_4_rows, LowBitArguments) { few_rows<4, 4>(a); }
SINTER_KERNEL(low_bit_8_row, LowBitArguments) { few_rows<8, 1>(a); }
SINTER_KERNEL(low_bit_8_rows, LowBitArguments) { few_rows<8, 4>(a); }

}  // namespace sinter::cuda

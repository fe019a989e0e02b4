// LowBitFullyConnected of few rows, for weights of 2, 3, 5, 6 and 7 bits.
#include "platforms/cuda/kernels/low_bit/low_bit_rows.h"

namespace sinter::cuda {

using low_bit_rows::few_rows;

SINTER_KERNEL(low_bit_2_row, LowBitArguments) { few_rows<2, 1>(a); }
SINTER_KERNEL(low_bit_2_rows, LowBitArguments) { few_rows<2, 4>(a); }
SINTER_KERNEL(low_bit_3_row, LowBitArguments) { few_rows<3, 1>(a); }
SINTER_KERNEL(low_bit_3_rows, LowBitArguments) { few_rows<3, 4>(a); }
SINTER_KERNEL(low_bit_5_row, LowBitArguments) { few_rows<5, 1>(a); }
SINTER_KERNEL(low_bit_5_rows, LowBitArguments) { few_rows<5, 4>(a); }
SINTER_KERNEL(low_bit_6_row, LowBitArguments) { few_rows<6, 1>(a); }
SINTER_KERNEL(low_bit_6_rows, LowBitArguments) { few_rows<6, 4>(a); }
SINTER_KERNEL(low_bit_7_row, LowBitArguments) { few_rows<7, 1>(a); }
SINTER_KERNEL(low_bit_7_rows, LowBitArguments) { few_rows<7, 4>(a); }

}  // namespace sinter::cuda

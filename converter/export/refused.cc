// Rows of operations without an ONNX form.
#include "converter/export/rows.h"

namespace sinter::convert {
namespace {

constexpr char kLength[] =
    "the length of its result depends on data, and later operations count on its greatest length";
constexpr char kLengthRemedy[] = "keep this part of the model out of it";
constexpr char kInteger[] =
    "it is an integer operation of Sinter, and ONNX has the form with Quantize and Dequantize";
constexpr char kIntegerRemedy[] = "switch off the pass 'integer'";

}  // namespace

#define SINTER_REFUSED(name, reason, remedy) \
  bool write_row(NodeExport& n, const name##Attrs&) { return n.refuse(reason, remedy); }

SINTER_REFUSED(NonZero, kLength, kLengthRemedy)
SINTER_REFUSED(Nms, kLength, kLengthRemedy)
SINTER_REFUSED(Unique, kLength, kLengthRemedy)
SINTER_REFUSED(CheckLength, kLength, kLengthRemedy)
SINTER_REFUSED(QConv, kInteger, kIntegerRemedy)
SINTER_REFUSED(QDepthwiseConv, kInteger, kIntegerRemedy)
SINTER_REFUSED(QConvTranspose, kInteger, kIntegerRemedy)
SINTER_REFUSED(QFullyConnected, kInteger, kIntegerRemedy)
SINTER_REFUSED(QMatMul, kInteger, kIntegerRemedy)
SINTER_REFUSED(Lut, kInteger, kIntegerRemedy)
SINTER_REFUSED(QAdd, kInteger, kIntegerRemedy)
SINTER_REFUSED(QMul, kInteger, kIntegerRemedy)
SINTER_REFUSED(QAvgPool, kInteger, kIntegerRemedy)
SINTER_REFUSED(QMean, kInteger, kIntegerRemedy)
SINTER_REFUSED(QPRelu, kInteger, kIntegerRemedy)
SINTER_REFUSED(QSoftmax, kInteger, kIntegerRemedy)
SINTER_REFUSED(QResize, kInteger, kIntegerRemedy)
SINTER_REFUSED(QRequantize, kInteger, kIntegerRemedy)
SINTER_REFUSED(QTable, kInteger, kIntegerRemedy)
SINTER_REFUSED(QLstm, kInteger, kIntegerRemedy)
SINTER_REFUSED(QGru, kInteger, kIntegerRemedy)
#undef SINTER_REFUSED

}  // namespace sinter::convert

#include "converter/import/read/imported_graph.h"

#include <fmt/format.h>

#include <iterator>

namespace sinter::convert {
namespace {

// Indexed by ONNX's number.
constexpr DType kFromOnnx[] = {
    DType::kNone,           DType::kFloat32,      DType::kUint8,          DType::kInt8,
    DType::kUint16,         DType::kInt16,        DType::kInt32,          DType::kInt64,
    DType::kNone,           DType::kBool,         DType::kFloat16,        DType::kFloat64,
    DType::kUint32,         DType::kUint64,       DType::kNone,           DType::kNone,
    DType::kBFloat16,       DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2,
    DType::kFloat8E5M2FNUZ, DType::kUint4,        DType::kInt4,           DType::kFloat4E2M1,
    DType::kFloat8E8M0,     DType::kUint2,        DType::kInt2,
};

}  // namespace

DType dtype_from_onnx(int64_t number) {
  return number >= 0 && number < static_cast<int64_t>(std::size(kFromOnnx)) ? kFromOnnx[number]
                                                                            : DType::kNone;
}

int64_t dtype_to_onnx(DType dtype) {
  for (size_t i = 1; i < std::size(kFromOnnx); ++i)
    if (kFromOnnx[i] == dtype && dtype != DType::kNone) return static_cast<int64_t>(i);
  return 0;
}

std::string onnx_type_name(int64_t number) {
  switch (number) {
    case 0:
      return "undefined";
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    case 27:
      return "float6e2m3";
    case 28:
      return "float6e3m2";
    default:
      break;
  }
  const DType dtype = dtype_from_onnx(number);
  return dtype == DType::kNone ? fmt::format("number {}", number) : dtype_name(dtype);
}

const char* kind_name(ImportedAttribute::Kind kind) {
  constexpr const char* kNames[] = {"nothing", "float", "int",     "string",  "tensor", "graph",
                                    "floats",  "ints",  "strings", "tensors", "graphs", "another kind"};
  return kNames[static_cast<size_t>(kind)];
}

std::string qualified_op(const ImportedNode& node) {
  return node.domain.empty() ? node.op_type : node.domain + ":" + node.op_type;
}

}  // namespace sinter::convert

#include "converter/import/refused_operators.h"

#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

constexpr RefusedOperator kRefused[] = {
    {kMicrosoft, "PagedAttention",
     "its cache is made of pages of many sequences, which a server hands out between runs",
     "export the decoder with GroupQueryAttention or Attention, whose caches belong to one sequence"},
    {kMicrosoft, "SparseAttention", "its blocks of hidden keys are lists that the run reads",
     "export the decoder with GroupQueryAttention, or with Attention and a mask"},
};

}  // namespace

const RefusedOperator* find_refused(std::string_view domain, std::string_view op_type) {
  for (const RefusedOperator& r : kRefused)
    if (r.domain == domain && r.op_type == op_type) return &r;
  return nullptr;
}

}  // namespace sinter::convert

#include "converter/import/refused_operators.h"

#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

constexpr RefusedOperator kRefused[] = {
    {kMicrosoft, "PagedAttention",
     "its cache is made of pages of many sequences, which a server hands out between runs",
     "export the decoder with GroupQueryAttention or Attention, whose caches belong to one sequence"},
    {kMicrosoft, "SparseAttention",
     "its lists name the blocks of keys that a head attends to, and no operation reads keys by such lists",
     "export the decoder with Attention and a mask of these blocks"},
};

}  // namespace

const RefusedOperator* find_refused(std::string_view domain, std::string_view op_type) {
  for (const RefusedOperator& r : kRefused)
    if (r.domain == domain && r.op_type == op_type) return &r;
  return nullptr;
}

}  // namespace sinter::convert

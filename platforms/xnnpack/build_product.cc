#include <algorithm>
#include <iterator>

#include "platforms/xnnpack/build.h"
#include "platforms/xnnpack/call.h"

namespace sinter::xnnpack {
namespace {

void set_product_parameters(const Building& b, const Product& p, int8_t x_zero, uint32_t layout) {
  const int64_t values[] = {static_cast<int64_t>(b.call.op),
                            static_cast<int64_t>(operand_dtype(b.call)),
                            static_cast<int64_t>(p.k),
                            static_cast<int64_t>(p.n),
                            x_zero,
                            layout};
  std::copy(std::begin(values), std::end(values), b.built->parameters);
}

// Builds rows x [k, n] by a constant that the library packs. `layout` is XNN_FLAG_TRANSPOSE_WEIGHTS for
// weights [k, n], 0 for [n, k].
Status build_constant_product(const Building& b, const Product& p, const ProductLimits& l, uint32_t layout) {
  const OpCall& call = b.call;
  set_product_parameters(b, p, 0, layout);
  SINTER_XNN(SINTER_XNN_FLOAT(call, xnn_create_fully_connected_nc, p.k, p.n, p.in_step, p.out_step,
                              constant(call, 1), constant(call, 2), static_cast<float>(l.low),
                              static_cast<float>(l.high), layout, static_cast<xnn_code_cache_t>(nullptr),
                              b.creation.cache(false), &b.built->op));
  SINTER_XNN(SINTER_XNN_FLOAT(call, xnn_reshape_fully_connected_nc, b.built->op, p.rows, b.threads));
  return ok_status();
}

}  // namespace

Status build_layer(const Building& b, const ProductLimits& l) {
  const OpCall& call = b.call;
  Product p;
  SINTER_RETURN_IF_ERROR(fully_connected_product(call, &p));
  if (!is_integer(call)) return build_constant_product(b, p, l, 0);
  SINTER_RETURN_IF_ERROR(check_multipliers(call));
  set_product_parameters(b, p, l.x_zero, 0);
  SINTER_XNN(xnn_create_fully_connected_nc_qs8_qc8w(
      p.k, p.n, p.in_step, p.out_step, l.x_zero, 1.0f, constant(call, 3), constant(call, 1),
      constant(call, 2), l.y_zero, 1.0f, static_cast<int8_t>(l.low), static_cast<int8_t>(l.high), 0, nullptr,
      b.creation.cache(false), &b.built->op));
  SINTER_XNN(xnn_reshape_fully_connected_nc_qs8_qc8w(b.built->op, p.rows, b.threads));
  return ok_status();
}

Status build_mat_mul(const Building& b) {
  Product p;
  SINTER_RETURN_IF_ERROR(mat_mul_product(b.call, &p));
  if (p.constant) return build_constant_product(b, p, {}, p.transposed ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS);
  size_t alignment = 0;
  const uint32_t flags = p.transposed ? XNN_FLAG_TRANSPOSE_B : 0;
  SINTER_XNN(SINTER_XNN_FLOAT(b.call, xnn_create_batch_matrix_multiply_nc, flags, &b.built->op));
  SINTER_XNN(SINTER_XNN_FLOAT(b.call, xnn_reshape_batch_matrix_multiply_nc, b.built->op,
                              static_cast<size_t>(p.batch_rank), static_cast<const size_t*>(p.batch_a),
                              static_cast<const size_t*>(p.batch_b), p.rows, p.k, p.n, &b.built->workspace,
                              &alignment, b.threads));
  return ok_status();
}

Status set_up_fully_connected(const SettingUp& s) {
  return set_up_outcome(SINTER_XNN_ANY(s.call, xnn_setup_fully_connected_nc, s.op, address(s.call.in(0)),
                                       address(s.call.out(0))));
}

Status set_up_mat_mul(const SettingUp& s) {
  Product p;
  SINTER_RETURN_IF_ERROR(mat_mul_product(s.call, &p));
  if (p.constant) return set_up_fully_connected(s);
  return set_up_outcome(SINTER_XNN_FLOAT(s.call, xnn_setup_batch_matrix_multiply_nc, s.op, s.workspace,
                                         address(s.call.in(0)), address(s.call.in(1)),
                                         address(s.call.out(0))));
}

}  // namespace sinter::xnnpack

// Reductions, normalisations and transforms of lines that are longer than the parts in which backends take
// them.
#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

const ReduceFn kFunctions[] = {ReduceFn::kSum,  ReduceFn::kMean,      ReduceFn::kMax, ReduceFn::kMin,
                               ReduceFn::kProd, ReduceFn::kSumSquare, ReduceFn::kL1,  ReduceFn::kLogSumExp};

template <class T>
void reduce_long(const Shape& dims, int64_t axis, double low, double high) {
  const Tensor x = noise<T>(dims, low, high, 3);
  for (const ReduceFn fn : kFunctions)
    run_op(ReduceAttrs{.fn = static_cast<int64_t>(fn), .axes = {axis}}, {x});
}

TEST(LongLines, Reduce) {
  for (const auto& [dims, axis] :
       {std::pair<Shape, int64_t>{{2, 33000}, 1}, {{9000, 3}, 0}, {{70, 2, 5}, 0}, {{3, 1500}, 1}}) {
    SCOPED_TRACE(testing::PrintToString(dims));
    reduce_long<float>(dims, axis, -1, 3);
    reduce_long<double>(dims, axis, -1, 1);
    reduce_long<int16_t>(dims, axis, -20, 20);
    reduce_long<int64_t>(dims, axis, -20, 20);
    reduce_long<uint64_t>(dims, axis, 0, 20);
  }
}

// Equal extremes in every part of a line.
TEST(LongLines, ArgReduce) {
  for (const auto& [dims, axis] : {std::pair<Shape, int64_t>{{2, 33000}, 1}, {{9000, 3}, 0}})
    for (const int64_t fn : {0, 1})
      for (const int64_t last : {0, 1}) {
        const ArgReduceAttrs a{.fn = fn, .axis = axis, .select_last = last};
        run_op(a, {noise<float>(dims, -1, 1, 3)});
        run_op(a, {noise<int8_t>(dims, -10, 10, 3)});
        run_op(a, {noise<uint64_t>(dims, 0, 50, 3)});
        run_op(a, {full<double>(dims, 2)});
      }
}

TEST(LongLines, QMean) {
  for (const auto& [dims, axis] : {std::pair<Shape, int64_t>{{2, 33000}, 1}, {{9000, 3}, 0}}) {
    run_op(QMeanAttrs{.axes = {axis}, .x_zero = 3, .y_zero = -7, .multiplier = 40},
           {noise<int8_t>(dims, -128, 127, 3)});
    run_op(QMeanAttrs{.axes = {axis}, .multiplier = 60, .q_min = -32768, .q_max = 32767},
           {noise<int16_t>(dims, -32768, 32767, 3)});
  }
}

TEST(LongLines, Cumulate) {
  for (const auto& [dims, axis] : {std::pair<Shape, int64_t>{{3, 3000}, 1}, {{900, 5}, 0}, {{20, 300}, 0}})
    for (const int64_t flags : {0, 1, 2, 3}) {
      CumulateAttrs a{.axis = axis, .exclusive = flags & 1, .reverse = flags >> 1};
      run_op(a, {noise<float>(dims, -1, 1, 3)});
      run_op(a, {noise<int32_t>(dims, -100, 100, 3)});
      a.fn = static_cast<int64_t>(CumulateFn::kProd);
      run_op(a, {noise<uint8_t>(dims, 1, 5, 3)});
    }
}

TEST(LongLines, Softmax) {
  for (const auto& [dims, axis] :
       {std::pair<Shape, int64_t>{{2, 1500}, 1}, {{2, 5000}, 1}, {{3000, 3}, 0}, {{40, 70}, 0}})
    for (const int64_t log : {0, 1}) {
      run_op(SoftmaxAttrs{.axis = axis, .log = log}, {noise<float>(dims, -9, 9, 3)});
      run_op(SoftmaxAttrs{.axis = axis, .log = log}, {noise<double>(dims, -9, 9, 3)});
    }
}

TEST(LongLines, LayerNorm) {
  for (const int64_t n : {1030, 2048, 5000}) {
    const Tensor x = noise<float>({2, n}, 2, 5, 3), scale = noise<float>({n}, -2, 2, 4);
    run_op(LayerNormAttrs{.axis = 1}, {x, scale, noise<float>({n}, -1, 1, 5)}, {.outputs = 3});
    run_op(LayerNormAttrs{.axis = 1}, {x, scale, noise<float>({2, 1}, -1, 1, 5)});
    run_op(RmsNormAttrs{.axis = 1}, {x, scale});
  }
}

TEST(LongLines, Dft) {
  for (const int64_t n : {2048, 4096, 2050, 8192, 5000}) {
    run_op(DftAttrs{.axis = 1}, {noise<double>({2, n, 1, 2}, -1, 1, 3)}, {.strided = false});
    run_op(DftAttrs{.axis = 0, .onesided = 1}, {noise<double>({n, 3, 1}, -1, 1, 3)});
    run_op(DftAttrs{.axis = 1, .length = n, .inverse = 1, .onesided = 1},
           {noise<double>({1, n / 2 + 1, 2}, -1, 1, 3)});
  }
}

}  // namespace
}  // namespace sinter::test

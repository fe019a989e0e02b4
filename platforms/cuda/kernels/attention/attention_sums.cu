// Combines the results of attention_rows_* for parts of the keys, in the order of the parts.
#include "platforms/cuda/kernels/attention/attention_score.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void combine_splits(const AttentionArguments& a) {
  using R = typename RealOf<T>::Type;
  const R* sums = reinterpret_cast<const R*>(a.sums);
  const R* weights = reinterpret_cast<const R*>(a.weights);
  const int64_t results = int64_t{a.rows} * a.value_size;
  for (int64_t n = global_thread(); n < results; n += global_threads()) {
    const uint32_t row = a.values.divide(static_cast<uint32_t>(n));
    RunningWeights<R> all;
    R added = 0;
    for (int32_t s = 0; s < a.splits; ++s) {
      const R* from = weights + (int64_t{s} * a.rows + row) * kAttentionWeights;
      combine<R>(from[0], from[1], from[2], sums[s * results + n], &all, &added);
    }
    uint32_t query, head;
    const uint32_t batch = a.heads.divide(a.queries.divide(row, &query), &head);
    added *= add_sink<T>(a, head, R(1), &all);
    const int32_t length = keys_of_batch(a, batch);
    narrow(finish_value(a, all, added, attended_keys(a, length, static_cast<int32_t>(query))),
           reinterpret_cast<T*>(a.y) + n);
  }
}

}  // namespace

SINTER_KERNEL(attention_sums, AttentionArguments) {
  switch (a.dtype) {
    case DType::kFloat64:
      return combine_splits<double>(a);
    case DType::kFloat16:
      return combine_splits<Float16>(a);
    case DType::kBFloat16:
      return combine_splits<BFloat16>(a);
    default:
      return combine_splits<float>(a);
  }
}

}  // namespace sinter::cuda

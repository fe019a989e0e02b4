// Sorting of lines, and TopK.
#include "platforms/cuda/operators/sort.h"

#include <bit>

#include "platforms/cuda/operators.h"

namespace sinter::cuda {
namespace {

// The most records of all lines, with their padding.
constexpr int64_t kMostRecords = int64_t{1} << 26;

SortRecords take_records(Lowering& l, int64_t count) {
  SortRecords r;
  r.keys = reinterpret_cast<uint64_t*>(l.workspace(static_cast<size_t>(count) * sizeof(uint64_t)));
  r.numbers = reinterpret_cast<uint32_t*>(l.workspace(static_cast<size_t>(count) * sizeof(uint32_t)));
  return r;
}

constexpr uint32_t shared_of(uint32_t chunk) { return (chunk * 8 + 15) / 16 * 16 + chunk * 4; }

Status launch_chunks(Lowering& l, const SortChunksArguments& a) {
  return l.launch<Kernel::k_sort_chunks>(
      {.blocks = {blocks_for(int64_t{a.lines} * a.chunks.divisor, 1)}, .shared_bytes = shared_of(a.chunk)},
      a);
}

int64_t chunks_of(int64_t length, uint32_t chunk) { return (length + chunk - 1) / chunk; }

// Sorts whole lines: sorted chunks are merged.
Status sort_lines(Lowering& l, SortChunksArguments a, SortedLines* sorted) {
  const int64_t padded = int64_t{1} << std::bit_width(static_cast<uint64_t>(a.length - 1));
  SINTER_RETURN_UNLESS(padded * a.lines <= kMostRecords, unsupported("too many elements to sort"));
  a.chunk = static_cast<uint32_t>(padded < kSortChunk ? padded : kSortChunk);
  a.chunks = Divider(padded / a.chunk);
  a.keep = a.chunk, a.to_pitch = static_cast<uint32_t>(padded);
  a.to = take_records(l, padded * a.lines);
  *sorted = {a.to, a.to_pitch};
  SINTER_RETURN_IF_ERROR(launch_chunks(l, a));
  SortMergeArguments m;
  m.records = a.to, m.pairs = static_cast<uint32_t>(padded * a.lines / 2);
  for (int64_t size = 2 * kSortChunk; size <= padded; size *= 2) {
    m.size = static_cast<uint32_t>(size), m.step = 0;
    for (int64_t step = size / 2; step >= kSortChunk; step /= 2) {
      SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_sort_merge_far>(
          {.blocks = {blocks_for(m.pairs, threads_of(Kernel::k_sort_merge_far))}}, m));
      m.step = static_cast<uint32_t>(step / 2);
    }
    SINTER_RETURN_IF_ERROR(l.launch<Kernel::k_sort_merge_near>(
        {.blocks = {blocks_for(m.pairs, kSortChunk / 2)}, .shared_bytes = shared_of(kSortChunk)}, m));
  }
  return ok_status();
}

}  // namespace

Status add_sort(Lowering& l, const SortChunksArguments& elements, int64_t keep, SortedLines* sorted) {
  SINTER_RETURN_UNLESS(elements.length > 0, error(Code::kInternal, "an empty line is sorted"));
  if (elements.length <= kSortChunk || keep > kSortChunk / 2) return sort_lines(l, elements, sorted);
  // Keeps the first records of every chunk, until they are one chunk.
  SortChunksArguments a = elements;
  a.keep = static_cast<uint32_t>(keep), a.chunk = kSortChunk;
  for (;;) {
    const int64_t chunks = chunks_of(a.length, a.chunk);
    const int64_t pitch = chunks * keep;
    SINTER_RETURN_UNLESS(pitch * a.lines <= kMostRecords, unsupported("too many elements to sort"));
    a.chunks = Divider(chunks), a.to_pitch = static_cast<uint32_t>(pitch);
    a.to = take_records(l, pitch * a.lines);
    SINTER_RETURN_IF_ERROR(launch_chunks(l, a));
    *sorted = {a.to, a.to_pitch};
    if (chunks == 1) return ok_status();
    a.x = nullptr, a.from = a.to, a.from_pitch = a.to_pitch, a.length = a.to_pitch;
  }
}

Status lower_TopK(Lowering& l) {
  const auto& attrs = l.attrs<TopKAttrs>();
  const auto axis = static_cast<int>(attrs.axis);
  const TensorView& x = l.in(0);
  SortChunksArguments a;
  a.type = x.dtype;
  SINTER_RETURN_UNLESS(is_sorted(x.dtype) && x.dtype != DType::kBool,
                       unsupported("elements of this type are not sorted"));
  SINTER_RETURN_UNLESS(x.dense(), unsupported("the operand is not dense"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  if (box.size == 0 || attrs.k == 0) return ok_status();
  int64_t inner = 1;
  for (int i = axis + 1; i < x.rank; ++i) inner *= x.dims[i];
  a.x = x.data, a.descending = static_cast<int32_t>(attrs.largest), a.inner = Divider(inner);
  a.length = static_cast<uint32_t>(x.dims[axis]), a.lines = box.size / a.length;
  SortedLines sorted;
  SINTER_RETURN_IF_ERROR(add_sort(l, a, attrs.k, &sorted));
  TopKArguments t;
  t.records = sorted.records, t.pitch = sorted.pitch, t.x = x.data;
  if (l.has_output(0)) t.values = l.out(0).data;
  if (l.has_output(1)) t.indices = l.out(1).as<int64_t>();
  for (size_t i : {0, 1})
    SINTER_RETURN_UNLESS(!l.has_output(i) || l.out(i).dense(), unsupported("a result is not dense"));
  t.k = Divider(attrs.k), t.inner = a.inner, t.length = a.length;
  t.size = a.lines * static_cast<uint32_t>(attrs.k);
  t.width = static_cast<int32_t>(byte_width(x.dtype));
  return l.launch<Kernel::k_top_k>({.blocks = {blocks_for(t.size, threads_of(Kernel::k_top_k))}}, t);
}

}  // namespace sinter::cuda

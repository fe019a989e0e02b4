#include "converter/emit/mapped_model.h"

#include <algorithm>
#include <cstring>

#include "converter/emit/model_writer.h"
#include "runtime/core/checked.h"

namespace sinter::convert {

MappedModel::MappedModel(const PlannedModel& plan, const BytesAtPage& at_page) {
  const auto [flatbuffer, pool] = write_model(std::span(&plan, 1), {}, ConstantPool::Layout::kPages);
  std::vector<format::Segment> segments = weights_segment(pool);
  format::Header header = header_of(flatbuffer, segments, format::DigestAlgorithm::kXxh3);
  format::seal(header, segments);
  // The weights segment begins at a page, and the file within the page before.
  const size_t head = segments.empty() ? header.file_bytes : segments[0].offset,
               weights = align_up(head, page_bytes()), first = segments.empty() ? 0 : weights - head;
  memory_ = std::make_unique<AssembledBytes>(first + header.file_bytes);
  bytes_ = memory_->span().subspan(first);
  std::byte* const start = memory_->write(first, head).data();
  std::memcpy(start, &header, sizeof(header));
  const auto table = std::as_bytes(std::span(segments));  // may be empty
  std::copy(table.begin(), table.end(), start + sizeof(header));
  std::memcpy(start + header.flatbuffer_offset, flatbuffer.data(), flatbuffer.size());
  for (const ConstantPool::Entry& e : pool.entries()) {
    const size_t at = weights + e.offset, bytes = e.constant->byte_size();
    if (bytes > 0) constants_.emplace(memory_->span().data() + at, e.constant);
    if (bytes >= kLargeConstantBytes) {
      memory_->put_pages(at, at_page(e.constant).bytes);
      continue;
    }
    const LoadedBytes loaded = e.constant->load();
    std::copy(loaded.bytes.begin(), loaded.bytes.end(), memory_->write(at, bytes).begin());
  }
  if (!segments.empty())
    memory_->write(first + header.file_bytes - format::kSegmentPadding, format::kSegmentPadding);
}

ConstantPtr MappedModel::constant_at(const std::byte* address) const {
  const auto at = constants_.find(address);
  return at != constants_.end() ? at->second : nullptr;
}

}  // namespace sinter::convert

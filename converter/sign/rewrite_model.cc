#include "converter/sign/rewrite_model.h"

#include <vector>

#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"

namespace sinter::convert {

void rewrite_model(std::span<const std::byte> file, const Rewriting& rewriting,
                   const std::filesystem::path& out,
                   const std::function<void(const std::filesystem::path&)>& check) {
  const auto header_of = format::read_header(file);
  if (!header_of.ok()) throw ModelFileError(header_of.status().message);
  const auto envelope =
      format::read_envelope(file, file.first(static_cast<size_t>(format::head_bytes(header_of.value()))));
  if (!envelope.ok()) throw ModelFileError(envelope.status().message);
  const format::Envelope& e = envelope.value();

  const std::span<const std::byte> structure =
      rewriting.structure.empty() ? e.flatbuffer : rewriting.structure;
  const bool sign = rewriting.key != nullptr;
  const auto algorithm = sign ? format::DigestAlgorithm::kBlake2b : format::DigestAlgorithm::kXxh3;
  std::vector<format::Segment> from(e.header.segment_count);
  for (uint32_t i = 0; i < e.header.segment_count; ++i) from[i] = e.segment(i);
  std::vector<format::Segment> segments = from;
  format::Header header = e.header;
  header.flatbuffer_bytes = structure.size();
  if (!format::lay_out(header, segments, sign).ok())
    throw ModelFileError("the model is too large for one file");
  header.flatbuffer_digest = format::digest_of(structure, algorithm);

  PendingFile pending(out);
  pending.pad_to(header.flatbuffer_offset);
  pending.write(structure.data(), structure.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto bytes = file.subspan(static_cast<size_t>(from[i].offset), static_cast<size_t>(from[i].bytes));
    segments[i].digest = format::digest_of(bytes, algorithm);
    pending.pad_to(segments[i].offset);
    pending.write(bytes.data(), bytes.size());
  }
  write_head(pending, header, segments, rewriting.key);
  pending.publish(check);
}

}  // namespace sinter::convert

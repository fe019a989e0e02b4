#include "converter/sign/sign_model.h"

#include <vector>

#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"

namespace sinter::convert {

void sign_model(std::span<const std::byte> file, const std::filesystem::path& out, const SecretKey& key,
                const std::function<void(const std::filesystem::path&)>& check) {
  const auto header_of = format::read_header(file);
  if (!header_of.ok()) throw ModelFileError(header_of.status().message);
  const auto envelope =
      format::read_envelope(file, file.first(static_cast<size_t>(format::head_bytes(header_of.value()))));
  if (!envelope.ok()) throw ModelFileError(envelope.status().message);
  const format::Envelope& e = envelope.value();

  constexpr auto kAlgorithm = format::DigestAlgorithm::kBlake2b;
  std::vector<format::Segment> from(e.header.segment_count);
  for (uint32_t i = 0; i < e.header.segment_count; ++i) from[i] = e.segment(i);
  std::vector<format::Segment> segments = from;
  format::Header header = e.header;
  if (!format::lay_out(header, segments, true).ok())
    throw ModelFileError("the model is too large for one file");
  header.flatbuffer_digest = format::digest_of(e.flatbuffer, kAlgorithm);

  PendingFile pending(out);
  pending.pad_to(header.flatbuffer_offset);
  pending.write(e.flatbuffer.data(), e.flatbuffer.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto bytes = file.subspan(static_cast<size_t>(from[i].offset), static_cast<size_t>(from[i].bytes));
    segments[i].digest = format::digest_of(bytes, kAlgorithm);
    pending.pad_to(segments[i].offset);
    pending.write(bytes.data(), bytes.size());
  }
  const format::Signature signature = sign_head(header, segments, key);
  pending.rewrite_start(&header, sizeof(header));
  pending.write(segments.data(), segments.size() * sizeof(format::Segment));
  pending.write(&signature, sizeof(signature));
  pending.publish(check);
}

}  // namespace sinter::convert

#include "converter/emit/emitter.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "converter/emit/debug_lines.h"
#include "converter/emit/model_writer.h"
#include "converter/files/pending_file.h"
#include "runtime/model/format.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// Throws for profiles whose file would be refused when it is opened.
void check_profiles(std::span<const PlannedModel> profiles) {
  if (profiles.empty() || profiles.size() > detail::kMaxProfiles)
    throw std::invalid_argument(
        fmt::format("a file has 1 to {} profiles, not {}", detail::kMaxProfiles, profiles.size()));
  for (size_t i = 0; i < profiles.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (profiles[k].target == profiles[i].target)
        throw std::invalid_argument(fmt::format("target '{}' is given twice", profiles[i].target));
}

}  // namespace

EmitSummary emit_model(std::span<const PlannedModel> profiles, const std::filesystem::path& path,
                       const EmitOptions& options) {
  check_profiles(profiles);
  const auto [buffer, pool] = write_model(profiles, options, ConstantPool::Layout::kDense);
  std::vector<format::Segment> segments = weights_segment(pool);
  const Bytes debug =
      debug_segment(options.strip_names ? std::string() : options.debug_text, *fb::GetModel(buffer.data()));
  if (!debug.empty()) {
    format::Segment segment{};
    segment.bytes = debug.size();
    segment.kind = static_cast<uint32_t>(format::SegmentKind::kDebug);
    segments.push_back(segment);
  }
  const bool sign = options.signer != nullptr;
  const auto algorithm = sign ? format::DigestAlgorithm::kBlake2b : format::DigestAlgorithm::kXxh3;
  format::Header header = header_of(buffer, segments, algorithm);

  PendingFile file(path);
  file.pad_to(header.flatbuffer_offset);  // the header comes last, when its digests are known
  file.write(buffer.data(), buffer.size());
  for (format::Segment& segment : segments) {
    file.pad_to(segment.offset);
    format::Digester digester(algorithm);
    uint64_t at = 0;
    const auto put = [&](std::span<const std::byte> bytes) {
      file.write(bytes.data(), bytes.size());
      digester.update(bytes);
      at += bytes.size();
    };
    const auto pad = [&](uint64_t to) {
      static constexpr std::array<std::byte, 64> kZeros{};
      while (at < to) put(std::span(kZeros).first(std::min<uint64_t>(kZeros.size(), to - at)));
    };
    if (segment.kind == static_cast<uint32_t>(format::SegmentKind::kDebug)) {
      put(debug);
    } else {
      for (const ConstantPool::Entry& e : pool.entries()) {
        if (e.shared) continue;
        pad(e.offset);
        put(e.constant->load().bytes);
      }
      pad(segment.bytes);
    }
    segment.digest = digester.finish();
  }
  write_head(file, header, segments, options.signer.get());
  // A file without a check is for this process alone.
  file.publish(options.check, options.check ? NewFile::Kept::kSafe : NewFile::Kept::kTemporary);
  return {header.file_bytes, pool.segment_bytes(), pool.entries().size()};
}

}  // namespace sinter::convert

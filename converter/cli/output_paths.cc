#include "converter/cli/output_paths.h"

#include <fmt/format.h>

#include <filesystem>

#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"

namespace sinter::convert {
namespace {

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  return std::filesystem::weakly_canonical(a, ignored) == std::filesystem::weakly_canonical(b, ignored);
}

}  // namespace

void check_outputs(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  for (size_t i = 0; i < written.size(); ++i) {
    const NamedFile& out = written[i];
    if (out.path.empty()) continue;
    check_place(out.path);
    const auto refuse_same = [&](const NamedFile& other) {
      if (!other.path.empty() && same_file(out.path, other.path))
        throw UsageError(
            fmt::format("{} {}: this is the file of {}, which would be overwritten; give another name",
                        out.what, out.path, other.what));
    };
    for (const NamedFile& other : read) refuse_same(other);
    for (size_t k = 0; k < i; ++k) refuse_same(written[k]);
  }
}

std::function<void(const std::vector<std::filesystem::path>&)> check_of_external_data(
    std::vector<NamedFile> written) {
  return [written = std::move(written)](const std::vector<std::filesystem::path>& files) {
    std::vector<NamedFile> data;
    for (const std::filesystem::path& file : files)
      data.push_back({"the model's external data", file.string()});
    check_outputs(written, data);
  };
}

}  // namespace sinter::convert

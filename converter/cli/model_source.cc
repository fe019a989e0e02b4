#include "converter/cli/model_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "converter/cli/convert_options.h"
#include "converter/convert.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert {

void add_source_flags(CLI::App& command, ConvertArguments& flags, bool with_target) {
  add_shape_flags(command, flags);
  if (!with_target) return;
  add_value(command, "--target", flags.targets, "NAME[+FEATURE...]",
            "The machine that an ONNX model is converted for, as convert --target")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(flag_group::kTarget);
}

ModelSource::~ModelSource() {
  if (file_ >= 0) ::close(file_);
}

bool ModelSource::open(const std::string& model, const ConvertArguments& flags, const CommonOptions& common,
                       const TrustOption& trust, Outcome& outcome) {
  path_ = model;
  if (!is_onnx(model)) {
    const bool given = !flags.shapes.empty() || !flags.dims.empty() || !flags.constants.empty() ||
                       !flags.trips.empty() || !flags.bounds.empty() ||
                       flags.targets != ConvertArguments().targets;
    if (given)
      throw UsageError(fmt::format(
          "{}: the shapes and the target of a .sinter file are fixed; leave out the flags that convert an "
          "ONNX model",
          model));
    return true;
  }
  if (!trust.file.empty())
    throw UsageError(fmt::format("{}: an ONNX model has no signature; leave out --public-key", model));
  const ConversionOptions options = conversion_options(flags);
  Diagnostics diagnostics;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) throw FileError(fmt::format("no folder for temporary files: {}; set TMPDIR", error.message()));
  const std::filesystem::path file = folder / fmt::format("sinter-{}.sinter", ::getpid());
  if (!convert_file(model, file, options, diagnostics) || diagnostics.refused()) {
    outcome.refuse(common, diagnostics);
    return false;
  }
  file_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const int fault = errno;
  std::filesystem::remove(file, error);
  if (file_ < 0) throw FileError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(fault)));
  path_ = fmt::format("/proc/self/fd/{}", file_);
  if (outcome.listener == nullptr && !common.quiet) {
    std::fputs(diagnostics.to_text(Severity::kWarning).c_str(), stderr);
    fmt::print(stderr, "sinter: {} is converted for this command alone, for target {}; no file is written\n",
               model, fmt::join(flags.targets, ","));
  }
  return true;
}

}  // namespace sinter::convert

#include "converter/cli/model_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "converter/cli/convert_options.h"
#include "converter/cli/terminal.h"
#include "converter/convert.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/temporary_folder.h"

namespace sinter::convert {

void add_source_flags(CLI::App& command, ConvertArguments& flags, bool with_target) {
  flags.custom_ops.add_to(command);
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

LoadedModel ModelSource::load(LoadedModel::Reading reading) const {
  return LoadedModel(path_, key_, reading, custom_ops_);
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
    key_ = trust.key();
    custom_ops_ = flags.custom_ops.load();
    return true;
  }
  if (!trust.file.empty())
    throw UsageError(fmt::format("{}: an ONNX model has no signature; leave out --public-key", model));
  const ConversionOptions options = conversion_options(flags);
  custom_ops_ = options.lowering.custom_ops;
  Diagnostics diagnostics;
  const TemporaryFile file("model.sinter");  // it has a name until it is open
  if (!convert_file(model, file.path(), options, diagnostics) || diagnostics.refused()) {
    outcome.refuse(common, diagnostics);
    return false;
  }
  file_ = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0)
    throw FileError(fmt::format("{}: cannot be read: {}", file.path().string(), std::strerror(errno)));
  path_ = fmt::format("/proc/self/fd/{}", file_);
  if (outcome.listener == nullptr) print_messages(diagnostics.to_text(Severity::kWarning));
  if (outcome.listener == nullptr && !common.quiet)
    print_messages(
        fmt::format("sinter: {} is converted for this command alone, for target {}; no file is written\n",
                    model, fmt::join(flags.targets, ",")));
  return true;
}

}  // namespace sinter::convert

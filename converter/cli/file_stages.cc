#include "converter/cli/file_stages.h"

#include <fmt/format.h>

#include "converter/cli/check_written.h"
#include "converter/cli/host_session.h"
#include "converter/diagnostics/errors.h"
#include "converter/sign/rewrite_model.h"

namespace sinter::convert {
namespace {

nlohmann::json json_of(const WrittenCheck& check) {
  return {{"arena_bytes", check.arena_bytes},
          {"session_bytes", check.session_bytes},
          {"session_created", check.session_created},
          {"trial", check.trial.to_json()}};
}

}  // namespace

FileStages::FileStages(const ConvertArguments& a, ConversionOptions& options, Diagnostics& diagnostics)
    : arguments_(a), options_(options), diagnostics_(diagnostics) {
  if (!a.sign.empty()) {
    key_ = std::make_shared<const SecretKey>(SecretKey::read(a.sign));
    signer = key_->public_key();
    if (!packs()) options.emit.signer = key_;
  }
  options.file_stages.push_back([this](const WrittenFile& file) { check(file); });
  if (!packs()) return;
  check_packs_here(options.targets, a.packed_only);
  options.file_stages.push_back([this](const WrittenFile& file) { pack(file); });
  // A signature covers the packed weights.
  if (key_) options.file_stages.push_back([this](const WrittenFile& file) { sign(file); });
}

void FileStages::check(const WrittenFile& file) {
  std::vector<WrittenCheck> checks;
  const size_t before = diagnostics_.count(Severity::kWarning);
  try {
    const bool quantizes = !arguments_.quantize.empty() || !arguments_.activations.empty();
    checks = check_written(
        file.path, file.plans,
        {arguments_.model, file.lowerings, options_.emit.signer ? signer : std::nullopt, !arguments_.no_trial,
         quantizes ? "--quantize and --activations round what the model does not" : ""},
        diagnostics_);
  } catch (const std::bad_alloc&) {
    throw FileError(
        fmt::format("{}: this machine does not have enough memory to check it", arguments_.model));
  } catch (const std::exception& e) {
    throw std::logic_error(fmt::format("the written file does not verify: {}", e.what()));
  }
  sizes = json_of(checks.front());
  for (size_t i = 0; i < options_.shape_sets.size(); ++i) {
    sizes["shapes"].push_back(json_of(checks[i]));
    sizes["shapes"].back()["set"] = options_.shape_sets[i].text;
  }
  if (arguments_.strict && diagnostics_.count(Severity::kWarning) > before) throw RefusedByTrial{};
}

void FileStages::pack(const WrittenFile& file) {
  packed = pack_model(file.path, file.path,
                      {.only = arguments_.packed_only, .custom_ops = options_.lowering.custom_ops});
}

void FileStages::sign(const WrittenFile& file) const {
  const auto load = [&](const std::optional<PublicKey>& signed_by) {
    return LoadedModel(file.path, signed_by, LoadedModel::Reading::kInPieces, options_.lowering.custom_ops);
  };
  rewrite_model(load({}).file(), {.key = key_.get()}, file.path, {});
  load(signer);
}

}  // namespace sinter::convert

// sinter keygen and sinter sign
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/host_session.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"
#include "converter/sign/rewrite_model.h"

namespace sinter::convert {
namespace {

struct SignArguments {
  CommonOptions common;
  std::string name, model, key, out;
};

void run_keygen(const SignArguments& a) {
  const std::filesystem::path secret = a.name + ".key", open = a.name + ".pub";
  if (std::filesystem::exists(open))
    throw FileError(fmt::format("{}: already exists; keys are never replaced", open.string()));
  const SecretKey key = SecretKey::generate();
  key.write(secret);
  try {
    key.write_public(open);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(secret, ignored);
    throw;
  }
  const PublicKey shown = key.public_key();
  if (a.common.json)
    print_json({{"key_id", shown.id()},
                {"public_key", shown.hex()},
                {"secret_file", secret.string()},
                {"public_file", open.string()}});
  else if (!a.common.quiet)
    print_text(
        fmt::format("key       {}\nsecret    {} (keep it secret: whoever has it can sign)\npublic    {}\n",
                    shown.id(), secret.string(), open.string()));
}

void run_sign(const SignArguments& a) {
  const std::filesystem::path out = a.out.empty() ? a.model : a.out;
  check_output(out);
  check_outputs({{"-o", out.string()}}, {{"--key", a.key}});
  const SecretKey key = SecretKey::read(a.key);
  const PublicKey open = key.public_key();
  const LoadedModel loaded(a.model);  // throws where the file does not verify; such a file is not signed
  try {
    rewrite_model(loaded.file(), {.key = &key}, out,
                  [&](const std::filesystem::path& file) { LoadedModel(file, open); });
  } catch (const ModelFileError& e) {
    throw ModelFileError(
        fmt::format("{}: changed while it was signed; no file is written ({})", a.model, e.what()));
  }
  const auto bytes = std::filesystem::file_size(out);
  if (a.common.json)
    print_json({{"model", a.model}, {"out", out.string()}, {"key_id", open.id()}, {"file_bytes", bytes}});
  else if (!a.common.quiet)
    print_text(fmt::format("signed    with key {}\nwrote     {}\n", open.id(), out.string()));
}

}  // namespace

void add_keygen(CLI::App& app, Outcome&) {
  auto a = std::make_shared<SignArguments>();
  CLI::App* c =
      app.add_subcommand("keygen", "Generate a pair of keys for signing models: NAME.key and NAME.pub");
  c->add_option("name", a->name, "Writes NAME.key, the secret key, and NAME.pub, the public key")->required();
  a->common.add_to(*c);
  c->footer("Example:\n  sinter keygen ours     # writes ours.key and ours.pub");
  c->callback([a] { run_keygen(*a); });
}

void add_sign(CLI::App& app, Outcome&) {
  auto a = std::make_shared<SignArguments>();
  CLI::App* c = app.add_subcommand("sign", "Sign a .sinter file, so that --public-key accepts it");
  c->add_option("model", a->model, "The .sinter file")->required();
  begin_group(*c, flag_group::kOutput);
  add_value(*c, "--key", a->key, "NAME.key", "The secret key file (sinter keygen)")->required();
  add_value(*c, "-o,--output", a->out, "FILE", "The file to write; by default the model is replaced");
  a->common.add_to(*c);
  c->footer(
      "Examples:\n"
      "  sinter keygen ours\n"
      "  sinter sign net.sinter --key ours.key\n"
      "  sinter run net.sinter --inputs in.npz --public-key ours.pub");
  c->callback([a] { run_sign(*a); });
}

}  // namespace sinter::convert

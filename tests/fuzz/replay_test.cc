// Every file kept here goes through its target again, in every build: the corpus, what was once a finding,
// and a few mutants of each, always the same ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "tests/common/source_dir.h"
#include "tests/fuzz/model_file.h"
#include "tests/fuzz/targets.h"

namespace sinter::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;

std::vector<std::filesystem::path> files_of(const char* folder, const Target& target) {
  std::vector<std::filesystem::path> files;
  const auto path = testing::source_dir() / "tests/fuzz" / folder / target.name;
  if (std::filesystem::is_directory(path))
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Blob read(const std::filesystem::path& path) {
  Blob bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// On a crash, the test's log names the file.
void replay(const Target& target, const char* folder, size_t at_least) {
  const auto files = files_of(folder, target);
  for (const auto& path : files) {
    SCOPED_TRACE(path.string());
    std::fprintf(stderr, "%s\n", path.filename().c_str());
    target.run(read(path));
  }
  EXPECT_GE(files.size(), at_least);
}

void mutate(const Target& target, uint64_t mutants) {
  if (const char* asked = std::getenv("SINTER_FUZZ_ROUNDS"); asked != nullptr)
    mutants = static_cast<uint64_t>(std::atoll(asked));
  const auto files = files_of("corpus", target);
  ASSERT_FALSE(files.empty());
  size_t changed = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    const Blob bytes = read(files[f]);
    for (uint64_t seed = 0; seed < mutants; ++seed) {
      Random random(seed * 1000 + f);
      const Blob mutant = target.mutate(bytes, kMostBytes, random, plain_mutator(random));
      changed += mutant != bytes;
      std::fprintf(stderr, "%s %d\n", files[f].filename().c_str(), static_cast<int>(seed));
      target.run(mutant);
    }
  }
  EXPECT_GT(changed, mutants * files.size() / 2);
}

// By table, the fields in order of their ids, as schemas/model.fbs has them.
std::map<std::string, std::vector<std::string>> schema_fields() {
  std::ifstream file(testing::source_dir() / "schemas/model.fbs");
  std::map<std::string, std::vector<std::string>> tables;
  const std::regex table("^table (\\w+) .*"), field("^  (\\w+):.*\\(id: \\d+\\);.*");
  std::string line, name;
  for (std::smatch found; std::getline(file, line);) {
    if (std::regex_match(line, found, table))
      name = found[1];
    else if (std::regex_match(line, found, field))
      tables[name].push_back(found[1]);
  }
  return tables;
}

void list_fields(const TableType& type, std::map<std::string, std::vector<std::string>>* tables) {
  std::vector<std::string>& fields = (*tables)[type.name];
  if (!fields.empty()) return;
  for (const FieldType& f : type.fields) {
    fields.emplace_back(f.name);
    if (f.table != nullptr) list_fields(*f.table, tables);
  }
}

// The mutator drops fields that it does not model.
TEST(FuzzReplay, EveryFieldIsMutated) {
  std::map<std::string, std::vector<std::string>> known;
  list_fields(*model_type(), &known);
  EXPECT_EQ(known, schema_fields());
}

TEST(FuzzReplay, ModelCorpus) {
  replay(kModelTarget, "corpus", 10);
  EXPECT_GT(counts.packed_only, 0u);
}
TEST(FuzzReplay, OnnxCorpus) { replay(kOnnxTarget, "corpus", 10); }
TEST(FuzzReplay, ArraysCorpus) { replay(kArraysTarget, "corpus", 5); }
TEST(FuzzReplay, ModelFindings) { replay(kModelTarget, "findings", 0); }
TEST(FuzzReplay, OnnxFindings) { replay(kOnnxTarget, "findings", 0); }
TEST(FuzzReplay, ArraysFindings) { replay(kArraysTarget, "findings", 0); }
TEST(FuzzReplay, ModelMutants) { mutate(kModelTarget, 20); }
TEST(FuzzReplay, OnnxMutants) { mutate(kOnnxTarget, 5); }
TEST(FuzzReplay, ArraysMutants) { mutate(kArraysTarget, 20); }

}  // namespace
}  // namespace sinter::fuzz

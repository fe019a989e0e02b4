// Profiles and entries: what the verifier lets pass, every rule broken, and which of them sessions take.
#include "tests/format/refusal.h"
#include "tests/format/sample_models.h"

namespace sinter::testing {
namespace {

TEST(Profiles, TwoWithProgramsOfTheirOwnOpen) {
  ModelBuilder b = profiles_model();
  EXPECT_TRUE(opened(b).ok()) << opened(b).message;
  // The same program in both.
  b.profiles[1].entries = b.profiles[0].entries;
  EXPECT_REFUSED(b, "no profile plans the program");
  b.programs.resize(3);
  EXPECT_TRUE(opened(b).ok()) << opened(b).message;
}

TEST(Profiles, NamesAreUnique) {
  ModelBuilder b = profiles_model();
  b.profiles[1].name = b.profiles[0].name;
  EXPECT_REFUSED(b, "the same name");
  b.profiles[0].name = b.profiles[1].name = "";
  EXPECT_REFUSED(b, "the same name");
}

TEST(Profiles, EntriesAreProgramsOfTheirOwn) {
  ModelBuilder b = profiles_model();
  b.profiles[0].entries = {};
  b.profiles[0].programs = {0, 1, 2};
  EXPECT_REFUSED(b, "entries and the first one has");
  b = profiles_model();
  b.profiles[0].entries = {1};  // a branch
  EXPECT_REFUSED(b, "an entry of a profile");
  b = profiles_model();
  b.profiles[1].entries = {3, 3};
  EXPECT_REFUSED(b, "entries and the first one has");
  b = shapes_model();
  b.profiles[0].entries = {0, 0};
  EXPECT_REFUSED(b, "is listed twice");
  b = shapes_model();
  b.profiles[0].entries = {0, 7};
  b.profiles[0].programs = {0, 1};
  EXPECT_REFUSED(b, "an entry of a profile");
}

TEST(Profiles, PlansAreThoseOfTheEntriesAndTheirParts) {
  ModelBuilder b = profiles_model();
  b.profiles[0].programs = {0, 1};  // one branch is missing
  EXPECT_REFUSED(b, "does not plan a subprogram");
  b.profiles[0].programs = {0, 1, 2, 3};  // another profile's entry
  EXPECT_REFUSED(b, "neither an entry nor a part");
  b.profiles[0].programs = {1, 2};
  EXPECT_REFUSED(b, "an entry of a profile");
  b.profiles.resize(1), b.profiles[0].programs.clear();
  EXPECT_REFUSED(b, "no profile plans the program");
}

TEST(Profiles, InputsAndOutputsAreTheSame) {
  const auto changed = [](auto&& change) {
    ModelBuilder b = profiles_model();
    change(b.programs[3]);
    return b;
  };
  EXPECT_REFUSED(changed([](ProgramSpec& p) { p.inputs[1].name = "z"; }), "inputs or outputs differ");
  EXPECT_REFUSED(changed([](ProgramSpec& p) { std::swap(p.inputs[0], p.inputs[1]); }),
                 "inputs or outputs differ");
  EXPECT_REFUSED(changed([](ProgramSpec& p) { p.inputs[1].dims = {1, 4}; }), "inputs or outputs differ");
  EXPECT_REFUSED(changed([](ProgramSpec& p) { p.outputs.pop_back(); }), "inputs or outputs differ");
  ModelBuilder same = changed([](ProgramSpec& p) { p.inputs[1].dims = {4}; });
  EXPECT_TRUE(opened(same).ok()) << opened(same).message;
}

TEST(Profiles, AtMostSixteen) {
  ModelBuilder b = profiles_model();
  while (b.profiles.size() < 17) {
    b.profiles.push_back(b.profiles[0]);
    b.profiles.back().name = std::to_string(b.profiles.size());
  }
  EXPECT_REFUSED(b, "profiles");
  b.profiles.pop_back();
  EXPECT_TRUE(opened(b).ok()) << opened(b).message;
}

TEST(Profiles, SubprogramsHaveOneRegionOfHostMemory) {
  ModelBuilder b = profiles_model();
  b.programs[1].values[1].place.region = 1;
  EXPECT_REFUSED(b, "extends beyond its region");
}

}  // namespace
}  // namespace sinter::testing

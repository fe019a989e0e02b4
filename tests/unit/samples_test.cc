// Calibration data: read sample by sample, refused with names where it does not fit.
#include "converter/quantize/samples/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "converter/diagnostics/errors.h"
#include "converter/import/read/arrays.h"
#include "converter/import/read/npy.h"

namespace sinter::convert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Samples : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "samples-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string save(const std::string& name, const Arrays& arrays) const {
    std::filesystem::create_directories(path(name).parent_path());
    write_arrays(path(name), arrays);
    return path(name).string();
  }
  // 0, 1, 2, ...
  static ConstantPtr counting(const Dims& dims, float from = 0) {
    std::vector<float> items(static_cast<size_t>(element_count(dims)));
    for (size_t i = 0; i < items.size(); ++i) items[i] = from + static_cast<float>(i);
    return Constant::of<float>(DType::kFloat32, dims, items);
  }
  static std::vector<double> firsts(SampleSource& source, size_t input = 0) {
    std::vector<double> list;
    for (Sample s; source.next(&s);) list.push_back(s[input]->as_doubles().at(0));
    return list;
  }
  // The refusal's text.
  static std::string refusal(const std::string& data, const std::vector<SampleInput>& inputs) {
    try {
      open_samples(data, inputs);
    } catch (const DataError& e) {
      return e.what();
    }
    return "(accepted)";
  }
  std::filesystem::path folder_;
};

const SampleInput kImage{"x", DType::kFloat32, {1, 3, 4, 4}, {}};
const SampleInput kPair{"pair", DType::kFloat32, {2, 3}, {}};
const SampleInput kTime{"timestep", DType::kInt64, {}, {}};

// As NumPy's savez does, so that the same arrays are the same bytes at any time.
TEST_F(Samples, ArchivesCarryNoTime) {
  const std::string file = save("one.npz", {{"x", counting({3})}});
  std::ifstream in(file, std::ios::binary);
  char header[14];  // a local header: signature, version, flags, method, then two bytes each of time and date
  ASSERT_TRUE(in.read(header, sizeof header));
  EXPECT_EQ(std::string(header + 10, 4), std::string("\0\0\x21\0", 4));
}

TEST_F(Samples, StacksAreReadInOrderAndAgain) {
  const std::string file = save("a.npz", {{"pair", counting({5, 2, 3})}, {"x", counting({5, 3, 4, 4}, 100)}});
  const auto source = open_samples(file, {kImage, kPair});
  EXPECT_EQ(source->count(), 5);
  for (int round = 0; round < 2; ++round) {
    Sample s;
    for (int n = 0; n < 5; ++n) {
      ASSERT_TRUE(source->next(&s));
      EXPECT_EQ(s[0]->dims(), (Dims{1, 3, 4, 4}));
      EXPECT_EQ(s[0]->as_doubles()[0], 100 + 48 * n);
      EXPECT_EQ(s[1]->as_doubles()[5], 6 * n + 5);
    }
    EXPECT_FALSE(source->next(&s));
    source->rewind();
  }
}

TEST_F(Samples, AFewAreSpreadOverAll) {
  const std::string file = save("a.npy", {{"", counting({10, 1})}});
  const SampleInput one{"x", DType::kFloat32, {1, 1}, {}};
  EXPECT_EQ(firsts(*open_samples(file, {one}, {5})), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(firsts(*open_samples(file, {one}, {3})), (std::vector<double>{0, 3, 6}));
  EXPECT_EQ(open_samples(file, {one}, {99})->count(), 10);
}

TEST_F(Samples, AFolderHoldsOneSampleOrAStackAFile) {
  save("d/b.npz", {{"x", counting({2, 3, 4, 4}, 1000)}});
  save("d/a.npy", {{"", counting({1, 3, 4, 4})}});
  save("d/c.npy", {{"", counting({3, 4, 4}, 5)}});
  std::ofstream(path("d/readme.txt")) << "not data";
  const auto source = open_samples(path("d").string(), {kImage});
  EXPECT_EQ(source->count(), 4);
  EXPECT_EQ(firsts(*source), (std::vector<double>{0, 1000, 1048, 5}));
  source->rewind();
  EXPECT_EQ(firsts(*source), (std::vector<double>{0, 1000, 1048, 5}));
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(refusal(path("empty").string(), {kImage}), HasSubstr("holds no files of samples"));
}

TEST_F(Samples, ScalarsComeOnePerSample) {
  const std::vector<int64_t> steps{7, 8, 9};
  const std::string good = save("a.npz", {{"timestep", Constant::int64s(steps)}});
  EXPECT_EQ(firsts(*open_samples(good, {kTime})), (std::vector<double>{7, 8, 9}));
  const std::string bad = save("b.npz", {{"timestep", Constant::scalar_int(DType::kInt64, 7)}});
  EXPECT_THAT(refusal(bad, {kTime}), AllOf(HasSubstr("'timestep' is int64[]"), HasSubstr("int64[N]"),
                                           HasSubstr("rank 0"), HasSubstr("numpy.full(N, value)")));
}

TEST_F(Samples, TheUnetCase) {
  // sample [batch, 4, 8, 8], timestep [batch], converted with one sample a run.
  const std::vector<SampleInput> unet{{"sample", DType::kFloat32, {1, 4, 8, 8}, {"batch", "", "", ""}},
                                      {"timestep", DType::kFloat32, {1}, {"batch"}},
                                      {"states", DType::kFloat32, {1, 7, 16}, {"batch", "length", ""}}};
  const auto sample = counting({2, 4, 8, 8}), states = counting({2, 7, 16});
  const std::string good =
      save("good.npz", {{"sample", sample}, {"timestep", counting({2})}, {"states", states}});
  EXPECT_EQ(open_samples(good, unet)->count(), 2);
  const std::string batch =
      save("batch.npz", {{"sample", sample}, {"timestep", counting({1})}, {"states", states}});
  EXPECT_THAT(refusal(batch, unet), AllOf(HasSubstr("'timestep' (float32[1]) has 1 sample "),
                                          HasSubstr("'sample' (float32[2,4,8,8]) has 2")));
  const std::string missing =
      save("missing.npz", {{"sample", sample}, {"time_step", counting({2})}, {"states", states}});
  EXPECT_THAT(refusal(missing, unet), AllOf(HasSubstr("input 'timestep'"), HasSubstr("is missing"),
                                            HasSubstr("if 'time_step' is meant, store it as 'timestep'")));
  const std::string length =
      save("length.npz", {{"sample", sample}, {"timestep", counting({2})}, {"states", counting({2, 9, 16})}});
  EXPECT_THAT(refusal(length, unet), AllOf(HasSubstr("'length' is 7"), HasSubstr("--dim length=9")));
}

TEST_F(Samples, SharedDimensionsAgree) {
  const std::vector<SampleInput> text{{"ids", DType::kFloat32, {1, 8}, {"", "length"}},
                                      {"mask", DType::kFloat32, {1, 8}, {"", "length"}}};
  const std::string file = save("a.npz", {{"ids", counting({3, 8})}, {"mask", counting({3, 6})}});
  EXPECT_THAT(refusal(file, text),
              HasSubstr("inputs 'ids' and 'mask' share the dimension 'length', but it is 8 in one "
                        "and 6 in the other"));
}

TEST_F(Samples, EveryProblemIsNamedAtOnce) {
  const auto doubles = Constant::of<double>(DType::kFloat64, {2, 3, 4, 4}, std::vector<double>(96, 1.0));
  const std::string file =
      save("a.npz", {{"x", doubles}, {"pair", counting({2, 3, 2})}, {"time", counting({2})}});
  const std::string why = refusal(file, {kImage, kPair, kTime});
  EXPECT_THAT(why,
              AllOf(HasSubstr("'x' is float64[2,3,4,4] but the model takes float32[1,3,4,4]"),
                    HasSubstr(".astype(numpy.float32)"), HasSubstr("'pair' is float32[2,3,2]"),
                    HasSubstr("float32[N,2,3]"), HasSubstr("'timestep' (int64[]"), HasSubstr("is missing")));
}

TEST_F(Samples, ShapesComeWithARemedy) {
  EXPECT_THAT(refusal(save("a.npz", {{"x", counting({5, 4, 4, 3})}}), {kImage}),
              HasSubstr("x.transpose(0, 3, 1, 2)"));
  EXPECT_THAT(refusal(save("b.npz", {{"x", counting({5, 48})}}), {kImage}),
              HasSubstr("x.reshape(-1, 3, 4, 4)"));
  EXPECT_THAT(refusal(save("c.npz", {{"pair", counting({2, 3})}}), {kPair}), HasSubstr("x[numpy.newaxis]"));
  EXPECT_THAT(refusal(save("d.npz", {{"x", counting({0, 3, 4, 4})}}), {kImage}), HasSubstr("no samples"));
}

TEST_F(Samples, PixelsAreNeverScrambled) {
  const auto hint = [&](const Dims& given, const SampleInput& input) {
    return refusal(save("h.npz", {{"x", counting(given)}}), {input});
  };
  const SampleInput last{"x", DType::kFloat32, {1, 4, 4, 3}, {}},
      grey{"x", DType::kFloat32, {1, 1, 4, 5}, {}};
  EXPECT_THAT(hint({5, 1, 4, 4, 3}, kImage),
              AllOf(HasSubstr("x.squeeze(1).transpose(0, 3, 1, 2)"), Not(HasSubstr("reshape"))));
  EXPECT_THAT(hint({5, 1, 3, 4, 4}, last), HasSubstr("x.squeeze(1).transpose(0, 2, 3, 1)"));
  EXPECT_THAT(hint({4, 4, 3}, kImage),
              HasSubstr("one sample, with its axes in another order: x.transpose(2, 0, 1)"));
  EXPECT_THAT(hint({5, 4, 5, 1}, grey), HasSubstr("x.reshape(-1, 1, 4, 5)"));
  EXPECT_THAT(hint({5, 5, 4, 1}, grey), HasSubstr("x.squeeze(3).transpose(0, 2, 1).reshape(-1, 1, 4, 5)"));
  EXPECT_THAT(hint({5, 12, 4}, kImage), HasSubstr("if the numbers are stored in this order"));
}

TEST_F(Samples, AnArrayThatIsNoInputDoesNotMatter) {
  const std::string file = save("a.npz", {{"labels", counting({9})}, {"x", counting({5, 3, 4, 4})}});
  EXPECT_EQ(open_samples(file, {kImage})->count(), 5);
}

TEST_F(Samples, NumbersThatAreNotFiniteAreRefusedWithTheirPlace) {
  std::vector<float> x(3 * 48, 1.0f);
  x[48 + 17] = std::numeric_limits<float>::quiet_NaN();
  x[48 + 30] = -std::numeric_limits<float>::infinity();
  const std::string file = save("a.npz", {{"x", Constant::of<float>(DType::kFloat32, {3, 3, 4, 4}, x)}});
  const auto source = open_samples(file, {kImage});
  Diagnostics diagnostics;
  try {
    check_samples(*source, {kImage}, diagnostics);
    FAIL() << "NaN was accepted";
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("input 'x', sample 1"), HasSubstr("2 of 48"),
                                HasSubstr("1 NaN, 1 infinite"), HasSubstr("[0,1,0,1]")));
  }
}

struct Warnings : Samples {
  std::string told(const std::vector<float>& x, const SampleInput& input) {
    Dims dims = input.dims;
    dims[0] = static_cast<int64_t>(x.size()) / element_count(input.dims);
    const auto source =
        open_samples(save("w.npz", {{input.name, Constant::of<float>(DType::kFloat32, dims, x)}}), {input});
    Diagnostics diagnostics;
    check_samples(*source, {input}, diagnostics);
    EXPECT_EQ(firsts(*source).size(), static_cast<size_t>(dims[0]));  // from the start again
    return diagnostics.to_text();
  }
  static std::vector<float> noise(size_t n, float low, float high) {
    std::vector<float> x(n);
    uint32_t state = 1;
    for (float& v : x) {
      state = state * 1664525u + 1013904223u;
      v = low + (high - low) * static_cast<float>(state >> 8) / 16777216.0f;
    }
    return x;
  }
};

TEST_F(Warnings, SoundDataHaveNone) { EXPECT_EQ(told(noise(48 * 6, -1, 1), kImage), ""); }

TEST_F(Warnings, ConstantData) {
  EXPECT_THAT(told(std::vector<float>(48 * 6, 0.0f), kImage), HasSubstr("every number is 0"));
  auto x = noise(48 * 6, -1, 1);
  for (size_t i = 0; i < x.size(); ++i)
    if (i / 16 % 3 == 1) x[i] = 0;
  EXPECT_THAT(told(x, kImage), AllOf(HasSubstr("along axis 1"), HasSubstr("1 (0)")));
}

TEST_F(Warnings, TheSameSampleAgain) {
  const auto one = noise(48, -1, 1);
  std::vector<float> x;
  for (int i = 0; i < 4; ++i) x.insert(x.end(), one.begin(), one.end());
  EXPECT_THAT(told(x, kImage), HasSubstr("all 4 samples are the same"));
}

TEST_F(Warnings, ScalesThatAreProbablyWrong) {
  auto bytes = noise(48 * 6, 0, 255);
  for (float& v : bytes) v = std::floor(v);
  EXPECT_THAT(told(bytes, kImage), HasSubstr("like unscaled bytes"));
  EXPECT_THAT(told(noise(48 * 6, 0, 1.0f / 255), kImage), HasSubstr("divided by 255 twice"));
  auto mixed = noise(48 * 6, 0, 1);
  for (size_t i = 48 * 5; i < mixed.size(); ++i) mixed[i] *= 255;
  EXPECT_THAT(told(mixed, kImage), AllOf(HasSubstr("5 of 6 samples"), HasSubstr("sample 5")));
}

TEST_F(Warnings, NumbersThatNoModelIsTrainedWith) {
  auto huge = noise(48 * 6, -1, 1);
  for (float& v : huge) v *= 1e30f;
  EXPECT_THAT(told(huge, kImage), AllOf(HasSubstr("no model is trained with"), HasSubstr("scaling")));
  EXPECT_THAT(told(noise(48 * 6, -1e-8f, 1e-8f), kImage), HasSubstr("no model is trained with"));
  // Normalized, then divided once more.
  EXPECT_THAT(told(noise(48 * 6, -2.1f / 255, 2.6f / 255), kImage), HasSubstr("divided by 255 twice"));
}

TEST_F(Warnings, OneOutlierOfMany) {
  auto x = noise(48 * 32, -1, 1);
  x[48 * 17 + 5] = 40;
  EXPECT_THAT(told(x, kImage), AllOf(HasSubstr("1 of 32 samples reach 40"), HasSubstr("sample 17"),
                                     HasSubstr("remove outliers")));
  // Levels that differ by nature: sound from loud to silent.
  auto levels = noise(48 * 32, -1, 1);
  for (size_t i = 0; i < levels.size(); ++i) levels[i] *= std::ldexp(1.0f, -static_cast<int>(i / 48 % 7));
  EXPECT_EQ(told(levels, kImage), "");
}

TEST_F(Warnings, ScalarsMayBeOfAnySize) {
  const SampleInput time{"timestep", DType::kFloat32, {1}, {}}, rate{"rate", DType::kFloat32, {1, 1}, {}};
  EXPECT_EQ(told({0, 1, 3, 999, 998, 2, 1, 0, 500, 7}, time), "");
  EXPECT_THAT(told(std::vector<float>(10, 16000.0f), rate),
              HasSubstr("note: calibration data, input 'rate': every number is 16000"));
}

TEST_F(Samples, IdsAreRowsOfTheirTable) {
  SampleInput ids{"ids", DType::kInt64, {1, 4}, {}};
  ids.rows = 10, ids.table = "embeddings";
  const auto told = [&](const std::vector<int64_t>& numbers) -> std::string {
    const auto source = open_samples(
        save("ids.npz", {{"ids", Constant::of<int64_t>(DType::kInt64, {2, 4}, numbers)}}), {ids});
    Diagnostics diagnostics;
    try {
      check_samples(*source, {ids}, diagnostics);
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(told({0, 9, 3, -10, 1, 2, 3, 4}), "");
  EXPECT_THAT(told({0, 9, 3, 1, 1, 2, 10, 4}),
              AllOf(HasSubstr("input 'ids', sample 1"),
                    HasSubstr("10 at [0,2] is not a row of the table 'embeddings'"), HasSubstr("0 to 9")));
}

TEST_F(Samples, DamagedFilesAreRefused) {
  const std::string file = save("a.npz", {{"x", counting({5, 3, 4, 4})}});
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto attempt = [&](const std::string& bytes) {
    const std::string broken = path("broken.npz").string();
    std::ofstream(broken, std::ios::binary) << bytes;
    try {
      const auto source = open_samples(broken, {kImage});
      for (Sample s; source->next(&s);) {
      }
      return false;
    } catch (const DataError&) {
      return true;
    }
  };
  for (size_t n = 0; n < whole.size(); n += 13) EXPECT_TRUE(attempt(whole.substr(0, n))) << n;
  // Every byte turned: never a crash, and data that passed its checksum is the data.
  int refused = 0, tried = 0;
  for (size_t n = 0; n < whole.size(); n += 3) {
    std::string bytes = whole;
    bytes[n] = static_cast<char>(~bytes[n]);
    refused += attempt(bytes), ++tried;
  }
  EXPECT_GT(refused, tried * 4 / 5);  // all but what nothing depends on, such as times
  EXPECT_THROW(open_samples(path("none.npz").string(), {kImage}), FileError);
}

// Archives with one name twice, of which two readers could take different ones.
TEST_F(Samples, ArraysHaveOneNameEach) {
  const auto twice = [&](const std::string& a, const std::string& b) {
    // Names of equal lengths, one changed into the other.
    const std::string file = save("twice.npz", {{a, counting({1, 3, 4, 4})}, {b, counting({1, 3, 4, 4})}});
    std::ifstream in(file, std::ios::binary);
    std::string whole((std::istreambuf_iterator<char>(in)), {});
    for (size_t at = 0; (at = whole.find(b, at)) != std::string::npos;) whole.replace(at, b.size(), a);
    std::ofstream(file, std::ios::binary) << whole;
    EXPECT_THAT(refusal(file, {kImage}), HasSubstr("two arrays of the name"));
    EXPECT_THROW(read_arrays(file), DataError);
    return file;
  };
  const std::string file = twice("xxxxxxxx", "yyyyyyyy");
  EXPECT_THAT(refusal("cmd:cat " + file, {kImage}), HasSubstr("two arrays of the name"));
}

TEST_F(Samples, NothingIsBehindAnArray) {
  const std::string file = save("a.npy", {{"x", counting({5, 3, 4, 4})}});
  EXPECT_EQ(refusal(file, {kImage}), "(accepted)");
  std::ofstream(file, std::ios::binary | std::ios::app) << "more";
  EXPECT_THAT(refusal(file, {kImage}), HasSubstr("longer than its header states, by 4 bytes"));
}

TEST_F(Samples, AHeaderMayPromiseNothingThatIsNotThere) {
  // Column-major, so that all of it has to be read: 2^40 samples that are not there.
  std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (1099511627776, 3, 4, 4), }";
  header.resize(118, ' ');
  const std::string text = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "few bytes";
  std::ofstream(path("a.npy"), std::ios::binary) << text;
  EXPECT_THAT(refusal(path("a.npy").string(), {kImage}), HasSubstr("truncated"));
}

struct Commands : Samples {
  std::string command(const std::string& shell) const {
    return "cmd:cd " + folder_.string() + " && " + shell;
  }
};

TEST_F(Commands, NpyArraysInTheOrderOfTheInputs) {
  for (int n = 0; n < 3; ++n) {
    save("x" + std::to_string(n) + ".npy", {{"", counting({1, 3, 4, 4}, static_cast<float>(10 * n))}});
    save("p" + std::to_string(n) + ".npy", {{"", counting({2, 3}, static_cast<float>(n))}});
  }
  const auto source = open_samples(command("cat x0.npy p0.npy x1.npy p1.npy x2.npy p2.npy"), {kImage, kPair});
  EXPECT_EQ(source->count(), -1);
  EXPECT_FALSE(source->is_file());
  EXPECT_EQ(firsts(*source), (std::vector<double>{0, 10, 20}));
  source->rewind();
  EXPECT_EQ(firsts(*source, 1), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(firsts(*open_samples(command("cat x0.npy p0.npy x1.npy p1.npy"), {kImage, kPair}, {1})).size(),
            1u);
}

TEST_F(Commands, OneNpzPerSample) {
  for (int n = 0; n < 3; ++n)
    save("s" + std::to_string(n) + ".npz", {{"pair", counting({2, 3}, static_cast<float>(n))},
                                            {"x", counting({1, 3, 4, 4}, static_cast<float>(10 * n))}});
  EXPECT_EQ(firsts(*open_samples(command("cat s0.npz s1.npz s2.npz"), {kImage, kPair})),
            (std::vector<double>{0, 10, 20}));
}

TEST_F(Commands, WhatGoesWrongIsReported) {
  save("x.npy", {{"", counting({1, 3, 4, 4})}});
  save("stack.npy", {{"", counting({7, 3, 4, 4})}});
  save("pair.npz", {{"pair", counting({2, 3})}});
  EXPECT_THAT(refusal(command("true"), {kImage}), HasSubstr("wrote no samples"));
  EXPECT_THAT(refusal(command("exit 3"), {kImage}), HasSubstr("exit code 3"));
  EXPECT_THAT(refusal(command("echo hello"), {kImage}), HasSubstr("neither .npz nor .npy"));
  EXPECT_THAT(refusal(command("cat stack.npy"), {kImage}), HasSubstr("float32[7,3,4,4]"));
  EXPECT_THAT(refusal(command("cat pair.npz"), {kImage}), HasSubstr("input 'x'"));
  EXPECT_THAT(refusal(command("head -c 100 x.npy"), {kImage}), HasSubstr("truncated"));
  const auto late = open_samples(command("cat x.npy && exit 9"), {kImage});
  Sample s;
  EXPECT_TRUE(late->next(&s));
  EXPECT_THROW(late->next(&s), DataError);
  const auto endless = open_samples(command("while cat x.npy; do :; done"), {kImage}, {2});
  EXPECT_EQ(firsts(*endless).size(), 2u);
}

}  // namespace
}  // namespace sinter::convert

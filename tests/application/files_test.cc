// Files around a model: several processes, a hostile neighbour in the folder, pipes, other modes and links.
// For the C API and pack_file(), which write by NewFile and read by FileMap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "sinter/file_map.h"
#include "sinter/new_file.h"
#include "sinter/pack_file.h"
#include "sinter/sinter_c.h"
#include "tests/format/packed_file.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A layer that backends pack.
AlignedBytes layer() {
  constexpr int64_t kWidth = 64;
  ModelBuilder b;
  b.backends = {"simd", "xnnpack"};
  const int x = b.input("x", DType::kFloat32, {4, kWidth});
  const std::vector<float> weights(kWidth * kWidth, 0.25f);
  const int w = b.constant<float>(DType::kFloat32, {kWidth, kWidth}, weights);
  const int y = b.value(DType::kFloat32, {4, kWidth});
  StepSpec& step = b.step(FullyConnectedAttrs{}, {x, w}, {y});
  step.candidates = {0};
  step.workspace = 1 << 16;
  b.output("y", y);
  return b.build();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void put_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "files-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    const AlignedBytes model = layer();
    put_text(model_ = path("net.sinter"),
             std::string(reinterpret_cast<const char*>(model.span().data()), model.span().size()));
    ASSERT_TRUE(pack_file(model_.c_str(), path("expected").c_str()).ok());
    expected_ = text_of(path("expected"));
    fs::remove(path("expected"));
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // In the folder, besides the model.
  std::vector<std::string> others() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path() != model_) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  PackReport pack(const std::string& to) const { return pack_file(model_.c_str(), to.c_str()); }

  std::string folder_, model_, expected_;
};

// Six processes pack into one output by the C API; a reader never sees anything but a whole file, and a
// mapping of an old one can be read to its end.
TEST_F(Files, ProcessesWriteOneOutput) {
  constexpr int kProcesses = 6, kTimes = 20, kReads = 20;
  // What all of them have in one page: they write until enough was read, on a busy machine too.
  void* page =
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& reads = *new (page) std::atomic<int>(0);
  const std::string out = path("out.sinter");
  ASSERT_TRUE(pack(out).ok());
  std::vector<pid_t> running;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      int failures = 0;
      for (int k = 0; k < kTimes || (reads <= kReads && k < 100 * kTimes); ++k)
        failures += sinter_pack_file(model_.c_str(), out.c_str(), nullptr, nullptr) != SINTER_OK;
      ::_exit(failures == 0 ? 0 : 1);
    }
    running.push_back(pid);
  }
  int failed = 0;
  std::vector<FileMap> maps;
  while (!running.empty()) {
    EXPECT_TRUE(text_of(out) == expected_) << "read " << reads;
    if (maps.size() < 100) maps.push_back(std::move(FileMap::open(out.c_str()).value()));
    ++reads;
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended > 0) std::erase(running, ended), failed += status != 0;
    if (HasFailure()) break;
  }
  for (const pid_t pid : running) ::waitpid(pid, nullptr, 0);
  for (const FileMap& map : maps)
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()), expected_);
  EXPECT_EQ(failed, 0);
  EXPECT_GT(reads, kReads);
  ::munmap(page, sizeof(std::atomic<int>));
  EXPECT_EQ(others(), std::vector<std::string>{"out.sinter"});
}

TEST_F(Files, ModesAreKept) {
  const mode_t mask = ::umask(022);
  for (const mode_t mode : {0600u, 0640u, 0444u, 0666u, 0200u}) {
    const std::string out = path("out.sinter");
    put_text(out, "old");
    ASSERT_EQ(::chmod(out.c_str(), mode), 0);
    const PackReport packed = pack(out);
    ASSERT_TRUE(packed.ok()) << packed.text;
    EXPECT_EQ(mode_of(out), mode);
    ASSERT_EQ(::chmod(out.c_str(), 0600), 0);
    EXPECT_EQ(text_of(out), expected_);
    fs::remove(out);
  }
  for (const mode_t of : {022u, 077u, 0u}) {
    ::umask(of);
    ASSERT_TRUE(pack(path("out.sinter")).ok());
    EXPECT_EQ(mode_of(path("out.sinter")), 0666 & ~of);
    fs::remove(path("out.sinter"));
  }
  ::umask(mask);
}

TEST_F(Files, LinksAreKept) {
  fs::create_directories(path("there"));
  const auto is_packed = [&](const std::string& link, const std::string& target) {
    const PackReport packed = pack(link);
    EXPECT_TRUE(packed.ok()) << packed.text;
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_FALSE(fs::is_symlink(target));
    EXPECT_EQ(text_of(target), expected_);
  };
  put_text(path("there/file"), "old");
  ASSERT_EQ(::chmod(path("there/file").c_str(), 0600), 0);
  fs::create_symlink("there/file", path("relative"));
  is_packed(path("relative"), path("there/file"));
  EXPECT_EQ(mode_of(path("there/file")), 0600u);
  fs::create_symlink(path("there/new"), path("dangling"));
  is_packed(path("dangling"), path("there/new"));
  fs::create_symlink("../relative", path("there/again"));
  put_text(path("there/file"), "old");
  is_packed(path("there/again"), path("there/file"));
  fs::create_symlink("circle", path("circle"));
  EXPECT_FALSE(pack(path("circle")).ok());
  // In place: the model stays a link.
  fs::rename(model_, path("there/model"));
  fs::create_symlink("there/model", model_);
  is_packed(model_, path("there/model"));
  // Another name of the old file keeps the old bytes.
  put_text(path("one"), "old");
  fs::create_hard_link(path("one"), path("two"));
  ASSERT_TRUE(pack(path("one")).ok());
  EXPECT_EQ(text_of(path("two")), "old");
}

// Names that were foreseeable once are links of a neighbour, or files of the user's own.
TEST_F(Files, NeighboursCannotForeseeNames) {
  const std::string out = path("out.sinter");
  put_text(path("precious"), "mine");
  fs::create_symlink("precious", out + ".partial");
  fs::create_symlink("precious", out + ".partial-" + std::to_string(::getpid()));
  ASSERT_TRUE(pack(out).ok());
  EXPECT_EQ(text_of(path("precious")), "mine");
  EXPECT_EQ(text_of(out), expected_);
  EXPECT_TRUE(fs::is_symlink(out + ".partial"));
  fs::remove(out + ".partial");
  put_text(out + ".partial", "a file of the user");
  ASSERT_TRUE(pack(out).ok());
  EXPECT_EQ(text_of(out + ".partial"), "a file of the user");
  EXPECT_EQ(fs::read_symlink(out + ".partial-" + std::to_string(::getpid())), "precious");
}

// A link that another user put into a folder like /tmp is not followed.
TEST_F(Files, LinksOfOthersInSharedFoldersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  fs::create_directories(path("tmp"));
  ASSERT_EQ(::chmod(path("tmp").c_str(), 01777), 0);
  put_text(path("precious"), "mine");
  fs::create_symlink("../precious", path("tmp/out.sinter"));
  ASSERT_EQ(::lchown(path("tmp/out.sinter").c_str(), 65534, 65534), 0);
  const PackReport packed = pack(path("tmp/out.sinter"));
  EXPECT_THAT(packed.text, HasSubstr("link of another user"));
  EXPECT_EQ(text_of(path("precious")), "mine");
  ASSERT_EQ(::lchown(path("tmp/out.sinter").c_str(), 0, 0), 0);
  EXPECT_TRUE(pack(path("tmp/out.sinter")).ok());
  EXPECT_EQ(text_of(path("precious")), expected_);
}

TEST_F(Files, OwnersAreKept) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string out = path("out.sinter");
  put_text(out, "old");
  ASSERT_EQ(::chown(out.c_str(), 65534, 65533), 0);
  ASSERT_EQ(::chmod(out.c_str(), 0640), 0);
  ASSERT_TRUE(pack(out).ok());
  struct stat info {};
  ASSERT_EQ(::stat(out.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534u);
  EXPECT_EQ(info.st_gid, 65533u);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST_F(Files, OnlyFilesAreReplaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directories(path("folder"));
  fs::create_symlink("/dev/null", path("null"));
  fs::create_symlink("/proc/self/fd/1", path("stdout"));
  for (const std::string& out :
       {path("pipe"), path("folder"), path(""), path("null"), path("stdout"), std::string("/dev/null"),
        std::string("/dev/stdout"), std::string("/dev/fd/1")}) {
    const PackReport packed = pack(out);
    EXPECT_EQ(packed.code, Code::kInvalidArgument) << out;
    EXPECT_THAT(packed.text, HasSubstr("give the name of a file")) << out;
  }
  EXPECT_TRUE(fs::is_fifo(path("pipe")) && fs::is_symlink(path("stdout")));
  for (const std::string& out : {path("none/out"), std::string(5000, 'x'), path(std::string(300, 'x'))})
    EXPECT_EQ(pack(out).code, Code::kInvalidArgument) << out;
  EXPECT_THAT(pack(path("none/out")).text, HasSubstr("cannot be written"));
  EXPECT_EQ(others(), (std::vector<std::string>{"folder", "null", "pipe", "stdout"}));
  // The longest name that systems have.
  const std::string longest = path(std::string(255, 'n'));
  ASSERT_TRUE(pack(longest).ok());
  EXPECT_EQ(text_of(longest), expected_);
}

TEST_F(Files, FullDisksLeaveTheOldFile) {
  const std::string out = path("out.sinter");
  put_text(out, "old");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &most);
    const PackReport packed = pack(out);
    ::_exit(!packed.ok() && std::strstr(packed.text, "cannot be written") != nullptr ? 0 : 1);
  }
  int status = 1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(out), "old");
  EXPECT_EQ(others(), std::vector<std::string>{"out.sinter"});
}

// What is no file is refused at once: opening a pipe does not wait for its writer.
TEST_F(Files, PipesAreNotModels) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", path("link"));
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path("socket").size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, path("socket").c_str());
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::alarm(20);
  for (const std::string& at :
       {path("pipe"), path("link"), path("socket"), folder_, std::string("/dev/null")}) {
    for (const bool copied : {false, true}) {
      const Runner net = Runner::open(at.c_str(), {.copy_file = copied});
      EXPECT_THAT(net.error(), HasSubstr("give the name of a file")) << at;
    }
    sinter_model* model = nullptr;
    sinter_error error;
    EXPECT_EQ(sinter_model_open(at.c_str(), nullptr, &model, &error), SINTER_INVALID_ARGUMENT);
    EXPECT_THAT(error.text, HasSubstr("give the name of a file")) << at;
    EXPECT_EQ(sinter_pack_file(at.c_str(), path("out").c_str(), nullptr, &error), SINTER_INVALID_ARGUMENT);
  }
  ::alarm(0);
  ::close(socket);
}

TEST_F(Files, WritersAreUsedInAnyOrder) {
  const auto file = std::make_unique<NewFile>();
  EXPECT_STREQ(file->path(), "");
  const std::string out = path("text");
  const std::string large(100'000, 'b');
  ASSERT_TRUE(file->create(out.c_str()).ok());
  for (const std::string& part : {std::string("head"), large, std::string(), std::string("end")})
    ASSERT_TRUE(file->write(std::as_bytes(std::span(part))).ok());
  ASSERT_TRUE(file->rewind().ok());
  ASSERT_TRUE(file->write(std::as_bytes(std::span("HEAD", 4))).ok());
  EXPECT_FALSE(fs::exists(out));
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(text_of(file->path()), "HEAD" + large + "end");
  ASSERT_TRUE(file->publish().ok());
  EXPECT_EQ(text_of(out), "HEAD" + large + "end");
  {
    const auto given_up = std::make_unique<NewFile>();
    ASSERT_TRUE(given_up->create(out.c_str()).ok());
    ASSERT_TRUE(given_up->write(std::as_bytes(std::span("x", 1))).ok());
    EXPECT_EQ(others().size(), 2u);
  }
  EXPECT_EQ(others(), std::vector<std::string>{"text"});
}

}  // namespace
}  // namespace sinter::testing

// Plans with device memory: what the verifier lets pass, and every rule broken (FORMAT.md).
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

// y = |down(-up(x) + c)| and z = x; state s on device 0, updated there.
struct Mixed {
  ModelBuilder b;
  int x, c, s, u, f, g, d, y;
  enum Steps { kUp, kNeg, kAdd, kDown, kAbs };

  Mixed() {
    b.backends = {"gpu", "simd", "npu"};
    b.regions = {0, 1, 3};
    x = b.input("x", DType::kFloat32, {4, 4});
    c = b.constant<float>(DType::kFloat32, {4}, {1, 2, 3, 4});
    s = b.state(DType::kFloat32, {4, 4}, -1, -1);
    u = b.value(DType::kFloat32, {4, 4}), f = b.value(DType::kFloat32, {4, 4});
    g = b.value(DType::kFloat32, {4, 4}), d = b.value(DType::kFloat32, {4, 4});
    y = b.value(DType::kFloat32, {4, 4});
    for (const int v : {s, u, f, g}) b.place(v).region = 1;
    b.program().values[static_cast<size_t>(s)].update = g;
    b.step(CopyAttrs{}, {x}, {u}).candidates = {0};
    b.step(NegAttrs{}, {u}, {f}).candidates = {0};
    b.step(AddAttrs{}, {f, c}, {g}).candidates = {0};
    b.step(CopyAttrs{}, {g}, {d}).candidates = {0};
    b.step(AbsAttrs{}, {d}, {y}).candidates = {1};
    b.output("y", y);
  }
  StepSpec& step(int s) { return b.program().steps[static_cast<size_t>(s)]; }
};

TEST(Memories, MixedPlanOpens) {
  Mixed m;
  EXPECT_TRUE(opened(m.b).ok()) << opened(m.b).message;
  Mixed workspace;
  workspace.step(Mixed::kAdd).workspace = 128, workspace.step(Mixed::kAdd).workspace_region = 1;
  EXPECT_TRUE(opened(workspace.b).ok()) << opened(workspace.b).message;
}

TEST(Memories, RegionsBelongToBackends) {
  Mixed first;
  first.b.regions = {1, 0, 3};
  EXPECT_REFUSED(first.b, "the first region is not host memory");
  Mixed nobody;
  nobody.b.regions = {0, 1, 4};
  EXPECT_REFUSED(nobody.b, "in the memory of a backend that the profile does not list");
  Mixed many;
  many.b.regions.assign(17, 1), many.b.regions[0] = 0;
  EXPECT_REFUSED(many.b, "a program has more than");
  Mixed padding;
  padding.b.padding = 0;
  EXPECT_REFUSED(padding.b, "leave no padding");
}

TEST(Memories, PortsLengthsAndConstantsAreTheHosts) {
  Mixed input;
  input.b.place(input.x).region = 1;
  EXPECT_REFUSED(input.b, "an input or output is not host memory");
  Mixed output;
  output.b.program().outputs.push_back({"f", static_cast<uint32_t>(output.f), {}});
  EXPECT_REFUSED(output.b, "an input or output is not host memory");
}

TEST(Memories, StatesArePlacedWhereTheirUpdatesAre) {
  Mixed host;
  host.b.place(host.s).region = 0;
  EXPECT_REFUSED(host.b, "a state and its update are in different memories");
  Mixed constant;
  const int four = constant.b.constant<float>(DType::kFloat32, {4, 4}, std::vector<float>(16));
  constant.b.program().values[static_cast<size_t>(constant.s)].update = four;
  EXPECT_REFUSED(constant.b, "a state and its update are in different memories");
}

TEST(Memories, StepsUseOneMemory) {
  Mixed crossing;  // a kernel that reads the device's memory and writes the host's
  crossing.b.place(crossing.g).region = 0;
  crossing.b.program().values[static_cast<size_t>(crossing.s)].update = -1;
  EXPECT_REFUSED(crossing.b, "a step that is not a transfer uses both host memory and device memory");
  Mixed devices;
  devices.b.place(devices.f).region = 2;
  EXPECT_REFUSED(devices.b, "the memory of two devices");
  Mixed direct;  // device to device
  direct.b.place(direct.d).region = 2;
  EXPECT_REFUSED(direct.b, "the memory of two devices");
  Mixed workspace;
  workspace.step(Mixed::kNeg).workspace = 64;
  EXPECT_REFUSED(workspace.b, "a step that is not a transfer uses");
  Mixed elsewhere;
  elsewhere.step(Mixed::kNeg).workspace = 64, elsewhere.step(Mixed::kNeg).workspace_region = 2;
  EXPECT_REFUSED(elsewhere.b, "the memory of two devices");
  Mixed host;
  host.step(Mixed::kAbs).workspace = 64, host.step(Mixed::kAbs).workspace_region = 1;
  EXPECT_REFUSED(host.b, "must name it alone");
}

TEST(Memories, TransfersAreDenseCopies) {
  Mixed strides;
  strides.b.place(strides.u).strides = {32, 4};
  EXPECT_REFUSED(strides.b, "a transfer's operand is not dense");
  Mixed workspace;
  workspace.step(Mixed::kUp).workspace = 64, workspace.step(Mixed::kUp).workspace_region = 1;
  EXPECT_REFUSED(workspace.b, "a step that is not a transfer uses");
  Mixed other;
  other.step(Mixed::kUp).op = static_cast<uint16_t>(Op::kAbs);
  EXPECT_REFUSED(other.b, "a step that is not a transfer uses");
  Mixed elided;
  elided.step(Mixed::kUp).elided = true;
  EXPECT_REFUSED(elided.b, "are not at the required offsets");
}

TEST(Memories, StepsNameTheirBackendAlone) {
  for (const int s : {Mixed::kUp, Mixed::kNeg, Mixed::kDown})
    for (const std::vector<uint8_t>& candidates : {std::vector<uint8_t>{}, {1}, {2}, {0, 1}, {0, 0}}) {
      Mixed m;
      m.step(s).candidates = candidates;
      EXPECT_REFUSED(m.b, "must name it alone");
    }
  Mixed host;
  host.step(Mixed::kAbs).candidates = {1, 0};
  EXPECT_REFUSED(host.b, "is a candidate for a step on the host");
}

TEST(Memories, InOrderIsForHostMemory) {
  Mixed m;
  m.step(Mixed::kNeg).in_order = true;
  EXPECT_REFUSED(m.b, "in order in device memory");
}

TEST(Memories, LiveRangesHoldInEveryRegion) {
  Mixed m;
  m.b.place(m.f).offset = 640, m.b.place(m.u).offset = 640;
  EXPECT_REFUSED(m.b, "share bytes while both are live");
  // The same offset in another region is another place.
  Mixed apart;
  apart.b.place(apart.x).offset = apart.b.place(apart.u).offset = 640;
  EXPECT_TRUE(opened(apart.b).ok()) << opened(apart.b).message;
}

TEST(Memories, ControlStepsAreTheHosts) {
  Mixed m;
  ModelBuilder& b = m.b;
  const int condition = b.input("q", DType::kBool, {});
  const int r = b.value(DType::kFloat32, {4, 4});
  b.step(IfAttrs{}, {condition, m.f}, {r}, {1, 2});
  b.output("r", r);
  for (const uint32_t branch : {1u, 2u}) {
    b.enter(branch);
    const int taken = b.captured(DType::kFloat32, {4, 4}), out = b.value(DType::kFloat32, {4, 4});
    b.step(AbsAttrs{}, {taken}, {out});
    b.output("", out);
  }
  b.enter(0);
  EXPECT_REFUSED(b, "must name it alone");  // a host's step reads what is captured on the device
  b.program().steps.back().candidates = {0};
  EXPECT_REFUSED(b, "is a candidate for a step on the host");
  b.program().steps.back().candidates = {};
  b.program().steps.back().inputs = {condition, m.d};
  EXPECT_TRUE(opened(b).ok()) << opened(b).message;
  b.programs[1].steps[0].candidates = {0};
  EXPECT_REFUSED(b, "is a candidate for a step on the host");
}

// Counts that runs give are read by the host.
TEST(Memories, LengthsAreHeldInHostMemory) {
  ModelBuilder b;
  b.backends = {"gpu"};
  b.regions = {0, 1};
  const int x = b.input("x", DType::kFloat32, {4});
  const int n = b.value(DType::kInt64, {}), u = b.value(DType::kFloat32, {4});
  const int zero = b.constant<int64_t>(DType::kInt64, {}, {3});
  b.place(n).region = 1, b.place(u).region = 1;
  b.step(CopyAttrs{}, {zero}, {n}).candidates = {0};
  b.step(CopyAttrs{}, {x}, {u}).candidates = {0};
  const int y = b.value(DType::kFloat32, {4});
  b.step(CopyAttrs{}, {u}, {y}).candidates = {0};
  b.output("y", y);
  EXPECT_TRUE(opened(b).ok()) << opened(b).message;
  b.program().values[static_cast<size_t>(y)].bounded_dims = {{0, n}};
  EXPECT_REFUSED(b, "the length of a bounded dimension is not in host memory");
}

}  // namespace
}  // namespace sinter::testing

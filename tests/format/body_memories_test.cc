// Plans with bodies in device memory: what the verifier lets pass, and every rule broken (FORMAT.md).
#include "tests/format/refusal.h"

namespace sinter::testing {
namespace {

// A loop on device 0: p = |p + c| with c captured, each p also scanned.
struct Looped {
  ModelBuilder b;
  int x, n, c, start, last, all, trips, y, z;
  int p, taken, sum, next, yes;  // of the body
  enum Steps { kUp, kUpCaptured, kLoop, kDown, kDownAll };
  enum BodySteps { kAdd, kAbs };

  Looped() {
    b.backends = {"gpu", "simd", "npu"};
    b.regions = {0, 1, 3};
    x = b.input("x", DType::kFloat32, {4, 4}), n = b.input("n", DType::kInt64, {});
    start = far({4, 4}), c = far({4, 4}), last = far({4, 4}), all = far({3, 4, 4});
    trips = b.value(DType::kInt64, {});
    y = b.value(DType::kFloat32, {4, 4}), z = b.value(DType::kFloat32, {3, 4, 4});
    b.step(CopyAttrs{}, {x}, {start}).candidates = {0};
    b.step(CopyAttrs{}, {x}, {c}).candidates = {0};
    b.step(LoopAttrs{3, 1}, {n, -1, start, c}, {last, all, trips}, {1});
    b.step(CopyAttrs{}, {last}, {y}).candidates = {0};
    b.step(CopyAttrs{}, {all}, {z}).candidates = {0};
    b.output("y", y), b.output("z", z), b.output("trips", trips);
    b.enter(1);
    b.program().memories = {0, 1};
    b.input("", DType::kInt64, {}), b.input("", DType::kBool, {});
    p = b.input("", DType::kFloat32, {4, 4});
    b.place(p).region = 1;
    taken = b.captured(DType::kFloat32, {4, 4});
    sum = far({4, 4}), next = far({4, 4});
    yes = b.constant<uint8_t>(DType::kBool, {}, {1});
    b.step(AddAttrs{}, {p, taken}, {sum}).candidates = {0};
    b.step(AbsAttrs{}, {sum}, {next}).candidates = {0};
    b.output("", yes), b.output("", next), b.output("", next);
    b.enter(0);
  }
  int far(std::vector<int64_t> dims) {
    const int v = b.value(DType::kFloat32, std::move(dims));
    b.place(v).region = 1;
    return v;
  }
  StepSpec& step(int s) { return b.programs[0].steps[static_cast<size_t>(s)]; }
  StepSpec& inside(int s) { return b.programs[1].steps[static_cast<size_t>(s)]; }
  PlaceSpec& place_inside(int v) { return b.programs[1].values[static_cast<size_t>(v)].place; }
};

TEST(BodyMemories, ABodyOnADeviceOpens) {
  Looped m;
  EXPECT_TRUE(opened(m.b).ok()) << opened(m.b).message;
  Looped workspace;
  workspace.inside(Looped::kAdd).workspace = 128, workspace.inside(Looped::kAdd).workspace_region = 1;
  EXPECT_TRUE(opened(workspace.b).ok()) << opened(workspace.b).message;
  Looped roomy;
  roomy.step(Looped::kLoop).device_workspaces = {{1, 8192}};
  EXPECT_TRUE(opened(roomy.b).ok()) << opened(roomy.b).message;
}

TEST(BodyMemories, RegionsFitTheWorkspacesOfTheStep) {
  Looped small;
  small.step(Looped::kLoop).device_workspaces = {{1, 192, -1, true}};
  EXPECT_REFUSED(small.b, "a subprogram does not fit its step's workspace");
  Looped elsewhere;
  elsewhere.step(Looped::kLoop).device_workspaces = {{2, 8192, -1, true}};
  EXPECT_REFUSED(elsewhere.b, "a subprogram does not fit its step's workspace");
  Looped missing;  // the step has none: it is only in the builder's list with nothing in it
  missing.step(Looped::kLoop).device_workspaces = {{1, 0, 0, true}};
  EXPECT_REFUSED(missing.b, "a subprogram does not fit its step's workspace");
  Looped twice;
  twice.b.programs[1].memories = {0, 1, 1};
  EXPECT_REFUSED(twice.b, "two regions of one memory, or out of order");
  Looped falling;
  falling.b.programs[1].memories = {0, 3, 1};
  falling.step(Looped::kLoop).device_workspaces = {{1}, {2}};
  for (const int v : {falling.p, falling.sum, falling.next}) falling.place_inside(v).region = 2;
  EXPECT_REFUSED(falling.b, "two regions of one memory, or out of order");
  Looped nobody;
  nobody.b.programs[1].memories = {0, 4};
  EXPECT_FALSE(opened(nobody.b).ok());
  Looped unhosted;
  unhosted.b.programs[1].memories = {1, 1};
  EXPECT_FALSE(opened(unhosted.b).ok());
  Looped many;
  many.b.programs[1].memories.assign(17, 1), many.b.programs[1].memories[0] = 0;
  EXPECT_REFUSED(many.b, "a program has more than");
}

TEST(BodyMemories, DeviceWorkspacesArePartsOfRegions) {
  const auto with = [](std::vector<WorkspaceSpec> list) {
    Looped m;
    m.step(Looped::kLoop).device_workspaces = std::move(list);
    return std::move(m.b);
  };
  ModelBuilder host = with({{0, 8192, -1, true}});
  EXPECT_REFUSED(host, "the device workspaces of a step are not of different devices, in order");
  ModelBuilder region = with({{3, 8192, 0, true}});
  EXPECT_REFUSED(region, "a workspace extends beyond its region");
  ModelBuilder far_off = with({{1, 8192, int64_t{1} << 40, true}});
  EXPECT_REFUSED(far_off, "a workspace extends beyond its region");
  ModelBuilder endless = with({{1, UINT64_MAX - 63, 64, true}});
  EXPECT_REFUSED(endless, "a workspace extends beyond its region");
  ModelBuilder odd = with({{1, 512, 32, true}});
  EXPECT_REFUSED(odd, "a workspace extends beyond its region");
  ModelBuilder over = with({{1, 256, 0, true}});  // over what is captured, and the start
  EXPECT_REFUSED(over, "share bytes while both are live");
  ModelBuilder twice = with({{1, 1024, -1, true}, {1, 1024, -1, true}});
  EXPECT_REFUSED(twice, "the device workspaces of a step are not of different devices, in order");
  ModelBuilder falling = with({{2, 1024, -1, true}, {1, 1024, -1, true}});
  EXPECT_REFUSED(falling, "the device workspaces of a step are not of different devices, in order");
  Looped other;
  other.step(Looped::kDown).device_workspaces = {{1, 64, -1, true}};
  EXPECT_REFUSED(other.b, "a step that is not a control step has a workspace for subprograms");
}

TEST(BodyMemories, WhatTheSessionReadsIsTheHosts) {
  Looped trips;
  trips.b.place(trips.trips).region = 1;
  trips.b.programs[0].outputs.pop_back();
  EXPECT_REFUSED(trips.b, "the condition or the number of trips of a control step is not in host memory");
  Looped count;
  const int there = count.b.value(DType::kInt64, {});
  count.b.place(there).region = 1;
  auto& steps = count.b.programs[0].steps;
  count.b.step(CopyAttrs{}, {count.n}, {there}).candidates = {0};
  std::rotate(steps.begin(), steps.end() - 1, steps.end());
  steps[Looped::kLoop + 1].inputs[0] = there;
  EXPECT_REFUSED(count.b, "the condition or the number of trips of a control step is not in host memory");
  for (const int parameter : {0, 1}) {
    Looped m;
    m.place_inside(parameter).region = 1;
    EXPECT_REFUSED(m.b, "the condition or the iteration number of a loop's body is not in host memory");
  }
  Looped workspace;
  workspace.step(Looped::kLoop).workspace_region = 1;
  EXPECT_REFUSED(workspace.b, "the workspace of a control step is not host memory");
  Looped candidates;
  candidates.step(Looped::kLoop).candidates = {0};
  EXPECT_REFUSED(candidates.b, "is a candidate for a step on the host");
}

TEST(BodyMemories, CarriedValuesKeepTheirMemory) {
  Looped start;
  start.step(Looped::kLoop).inputs[2] = start.x;
  EXPECT_REFUSED(start.b, "carried value %a changes its memory");
  Looped parameter;
  parameter.place_inside(parameter.p).region = 0;
  EXPECT_REFUSED(parameter.b, "carried value %a changes its memory");
  Looped last;
  last.b.place(last.last).region = 0;
  EXPECT_REFUSED(last.b, "result %a of a control step and of its body are in different memories");
  Looped all;
  all.b.place(all.all).region = 0;
  EXPECT_REFUSED(all.b, "result %a of a control step and of its body are in different memories");
  Looped constant;  // a constant is the host's
  const int four =
      (constant.b.enter(1), constant.b.constant<float>(DType::kFloat32, {4, 4}, std::vector<float>(16)));
  constant.b.programs[1].outputs[1].value = static_cast<uint32_t>(four);
  EXPECT_REFUSED(constant.b, "in different memories");
}

// The device copies a result over its parameter: in place, or apart.
TEST(BodyMemories, ResultsAreApartFromTheirParameters) {
  Looped m;
  m.place_inside(m.next).alias_of = m.p, m.place_inside(m.next).offset = -1;
  EXPECT_TRUE(opened(m.b).ok()) << opened(m.b).message;  // at the parameter, which is dead by then
  Looped over;
  over.place_inside(over.next).alias_of = over.p, over.place_inside(over.next).alias_offset = 16;
  EXPECT_REFUSED(over.b, "would be copied over a part of itself in device memory");
}

TEST(BodyMemories, StepsOfBodiesUseOneMemory) {
  Looped candidates;
  candidates.inside(Looped::kAdd).candidates = {0, 1};
  EXPECT_REFUSED(candidates.b, "must name it alone");
  Looped captured;  // the host's, read by a step of the device
  captured.step(Looped::kLoop).inputs[3] = captured.x;
  EXPECT_REFUSED(captured.b, "a step that is not a transfer uses both host memory and device memory");
  Looped host;  // a step of the host reads what is captured on the device
  host.place_inside(host.sum).region = 0, host.inside(Looped::kAdd).candidates = {1};
  EXPECT_REFUSED(host.b, "must name it alone");
  Looped order;
  order.inside(Looped::kAbs).in_order = true;
  EXPECT_REFUSED(order.b, "in order in device memory");
  Looped length;
  length.b.enter(1);
  const int count = length.b.value(DType::kInt64, {});
  const int three = length.b.constant<int64_t>(DType::kInt64, {}, {3});
  length.b.place(count).region = 1;
  length.b.step(CopyAttrs{}, {three}, {count}).candidates = {0};
  EXPECT_TRUE(opened(length.b).ok()) << opened(length.b).message;
  length.b.programs[1].values[static_cast<size_t>(length.sum)].bounded_dims = {{0, count}};
  EXPECT_REFUSED(length.b, "the length of a bounded dimension is not in host memory");
}

// What is captured is found through all bodies around it, whatever their order in the file.
TEST(BodyMemories, CapturedValuesAreWhereTheOuterProgramHasThem) {
  for (const bool owners_first : {true, false}) {
    const uint32_t outer = owners_first ? 1 : 2, inner = 3 - outer;
    ModelBuilder b;
    b.backends = {"gpu"};
    b.regions = {0, 1};
    const int q = b.input("q", DType::kBool, {}), x = b.input("x", DType::kFloat32, {4});
    const int u = b.value(DType::kFloat32, {4}), r = b.value(DType::kFloat32, {4}),
              y = b.value(DType::kFloat32, {4});
    b.place(u).region = b.place(r).region = 1;
    b.step(CopyAttrs{}, {x}, {u}).candidates = {0};
    b.step(LoopAttrs{2, 0}, {-1, q, u, q}, {-1, -1}, {outer});
    b.step(AbsAttrs{}, {u}, {r}).candidates = {0};
    b.step(CopyAttrs{}, {r}, {y}).candidates = {0};
    b.output("y", y);
    b.enter(outer);
    b.program().memories = {0, 1};
    b.input("", DType::kInt64, {}), b.input("", DType::kBool, {});
    const int taken = b.captured(DType::kFloat32, {4}), chosen = b.captured(DType::kBool, {});
    const int result = b.value(DType::kFloat32, {4});
    b.place(result).region = 1;
    b.step(LoopAttrs{2, 0}, {-1, chosen, taken}, {-1, -1}, {inner});
    b.step(NegAttrs{}, {taken}, {result}).candidates = {0};
    b.output("", chosen), b.output("", result);
    b.enter(inner);
    b.program().memories = {0, 1};
    b.input("", DType::kInt64, {});
    const int go = b.input("", DType::kBool, {});
    const int deep = b.captured(DType::kFloat32, {4}), out = b.value(DType::kFloat32, {4});
    b.place(out).region = 1;
    b.step(NegAttrs{}, {deep}, {out}).candidates = {0};
    b.output("", go), b.output("", out);
    b.enter(0);
    EXPECT_TRUE(opened(b).ok()) << opened(b).message;
    b.programs[0].steps[1].inputs[2] = x;  // the host's
    EXPECT_REFUSED(b, "a step that is not a transfer uses both host memory and device memory");
  }
}

}  // namespace
}  // namespace sinter::testing

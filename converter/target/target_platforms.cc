#include "converter/target/target_platforms.h"

#include "platforms/platforms.h"

namespace sinter::convert {
namespace {

bool computes_float16(const Platform& platform, const Target& target) {
  return platform.computes_float16 != nullptr && platform.computes_float16(target);
}

}  // namespace

std::vector<const Platform*> platforms_serving(const Target& target) {
  std::vector<const Platform*> found;
  for (const Platform* p : all_platforms())
    if (p->serves(target)) found.push_back(p);
  return found;
}

std::vector<const Platform*> platforms_for(const Target& target) {
  std::vector<const Platform*> found = platforms_serving(target);
  std::erase_if(found, [](const Platform* p) { return p->on_request; });
  return found;
}

bool has_float16_kernels(const Target& target) {
  for (const Platform* p : platforms_for(target))
    if (computes_float16(*p, target)) return true;
  return false;
}

Status accept_in_float16(const Target& target, const OpCall& call, size_t* workspace) {
  Status status = unsupported("the target has no kernels that compute in float16");
  for (const Platform* p : platforms_for(target)) {
    if (!computes_float16(*p, target)) continue;
    status = p->accept(target, call, target.cores, workspace);
    if (status.ok()) return status;
  }
  return status;
}

}  // namespace sinter::convert

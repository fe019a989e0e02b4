// The ways to compute in this build: the backends one by one, and together as planned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sinter/backends.h"
#include "tests/memory/promises.h"
#ifdef SINTER_WITH_XNNPACK
#include "sinter/thread_pool.h"
#endif

namespace sinter::test {

class Backends {
 public:
  // Every use of `model` with these inputs. The backends must outlive it.
  std::vector<Use> uses(const Model& model, const std::vector<Bytes>& inputs) {
    std::vector<Use> all;
    for (const char* name : names_) {
      SessionOptions options{.backends = list_, .backend = name};
      const std::string said = name != nullptr ? name : "as planned";
      all.push_back({model, inputs, options, said + ", 1 thread", true});
#ifdef SINTER_WITH_XNNPACK
      options.threads = &pool_;
      all.push_back({model, inputs, options, said + ", 2 threads", false});
#endif
    }
    return all;
  }
  // The same with more threads than there is reason for: what is kept for each must be counted.
  std::vector<Use> crowded(const Model& model, const std::vector<Bytes>& inputs) {
    std::vector<Use> all;
#ifdef SINTER_WITH_XNNPACK
    for (PthreadPool* pool : {&pool_, &pool_of_3_, &pool_of_8_})
      for (const char* name : names_)
        all.push_back({model,
                       inputs,
                       {.backends = list_, .threads = pool, .backend = name},
                       std::string(name != nullptr ? name : "as planned") + ", " +
                           std::to_string(pool->thread_count()) + " threads",
                       false});
#else
    (void)model, (void)inputs;
#endif
    return all;
  }

 private:
  static std::vector<const char*> names() {
    std::vector<const char*> all{"reference", nullptr};
    // Those with device memory have nothing to compute in a plan for the host.
    for (Backend* backend : default_backends())
      if (backend->memory() == nullptr) all.insert(all.begin() + 1, backend->name());
    return all;
  }

#ifdef SINTER_WITH_XNNPACK
  PthreadPool pool_{2}, pool_of_3_{3}, pool_of_8_{8};
#endif
  std::span<Backend* const> list_ = default_backends();
  std::vector<const char*> names_ = names();
};

}  // namespace sinter::test

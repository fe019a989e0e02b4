// Owners of the library's objects.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <utility>

namespace sinter::onednn {

template <class T, dnnl_status_t (*kDestroy)(T)>
class Handle {
 public:
  Handle() = default;
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  T get() const { return object_; }
  // Returns the place where a function of the library stores the object that it creates.
  T* out() {
    reset();
    return &object_;
  }

 private:
  void reset() {
    if (object_ != nullptr) (void)kDestroy(std::exchange(object_, nullptr));
  }
  T object_ = nullptr;
};

using MemoryDesc = Handle<dnnl_memory_desc_t, dnnl_memory_desc_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;
using Attributes = Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using PostOps = Handle<dnnl_post_ops_t, dnnl_post_ops_destroy>;
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Primitive = Handle<dnnl_primitive_t, dnnl_primitive_destroy>;
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;

}  // namespace sinter::onednn

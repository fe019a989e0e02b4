// The element types that ONNX's standard lets an operator take and give (onnx_types.def). Types are ONNX's
// numbers (TensorProto.DataType); 0 stands for one that is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sinter::convert {

using OnnxType = int;

// A set of types that operands share, or the one type of an operand.
struct TypeSet {
  std::string name;     // "T"; empty for a type that is fixed
  uint32_t types = 0;   // bit N: type N; 0: any
  bool differ = false;  // the operands of a list that have this set may differ

  bool has(OnnxType type) const { return types == 0 || (type > 0 && (types >> type & 1) != 0); }
  // Returns the only type of the set; 0 if there are several.
  OnnxType only() const;
};

class Signature {
 public:
  // Null name and any type beyond the operator's operands.
  TypeSet operand(size_t i) const { return port(operands_, i); }
  TypeSet result(size_t i) const { return port(results_, i); }
  int version() const { return version_; }

 private:
  friend std::optional<Signature> signature_of(const std::string&, const std::string&, int64_t);
  struct Port {
    TypeSet set;
    bool repeats = false;
  };
  static TypeSet port(const std::vector<Port>& ports, size_t i);
  static std::vector<Port> ports(const char* words, const char* sets);

  std::vector<Port> operands_, results_;
  int version_ = 0;
};

// Returns the types of the version of an operator that is in force in an operator set; nullopt for operators
// that the table lacks. Of one that is newer than the set, the first version.
std::optional<Signature> signature_of(const std::string& domain, const std::string& op, int64_t opset);

// Returns the version of an operator that is in force in a set; 0: the table has none, or a newer one.
int version_in_force(const std::string& domain, const std::string& op, int64_t opset);

// Returns the type among `set` that holds every value of `type`, or comes nearest; 0: none is near.
OnnxType nearest_type(OnnxType type, const TypeSet& set);

}  // namespace sinter::convert

// Shapes of HLO values: arrays with a layout, and tuples of shapes.
//
// A tuple shape is a tree. It is stored flat, in pre-order, so that "element 3 of element 1" is one
// number, a node:
//   shape   (f32[2], (s32[], bf16[8,4]))
//   node     0  1     2  3    4              node 0 is the whole tuple, node 2 the inner one
// Shapes are interned in a ShapePool and never change; a Shape is a small handle on one node.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace spillway {

enum class ElementType : std::uint8_t {
  kPred,
  kS1,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU1,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3B11FNUZ,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kToken,
  kOpaque,
  kTuple,
};

/// "bf16", "tuple", …
std::string_view element_type_name(ElementType type);
/// The type of a name as HLO text writes it; false when there is none.
bool find_element_type(std::string_view name, ElementType& type);
/// Bits of one element; 0 for token, opaque and tuple.
int element_bits(ElementType type);

/// Memory spaces by XLA's numbers. 0, 1 and 2 are all HBM; what XLA prints as a name is not
/// trusted.
enum class MemorySpace : std::uint8_t {
  kDevice = 0,
  kCollective = 1,
  kTempBuffer = 2,
  kPinnedHost = 5,
};
/// Pinned host memory. Every other space counts as device memory, 6 (unpinned host) too, as in XLA.
constexpr bool is_host(MemorySpace space) { return space == MemorySpace::kPinnedHost; }

/// Which element of a (nested) tuple, as a node of the flat shape; node 0 is the whole.
using ShapeNodeIndex = std::uint32_t;

/// Storage of one interned shape. Read through Shape.
struct ShapeData {
  struct Node {
    ElementType type = ElementType::kOpaque;
    MemorySpace space = MemorySpace::kDevice;
    bool has_layout = false;
    std::uint8_t bits = 0;        ///< of one element in memory: s4 has 8, and 4 when packed, E(4)
    std::uint32_t rank = 0;       ///< arrays: number of dimensions; tuples: number of elements
    std::uint32_t first_dim = 0;  ///< into `dims`, and into `minor_to_major` when has_layout
    std::uint32_t subtree = 1;    ///< nodes of this subtree, this one included
    std::int64_t bytes = 0;       ///< arrays: packed size; tuples: 8 an element (the pointer table)
  };
  std::vector<Node> nodes;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> minor_to_major;  ///< parallel to `dims`
};

/// A handle on one node of an interned shape; two words, copied freely. The pool must outlive it,
/// which a Computation sees to.
class Shape {
 public:
  Shape() = default;
  Shape(const ShapeData* data, ShapeNodeIndex node) : data_(data), node_(node) {}

  bool valid() const { return data_ != nullptr; }
  bool is_tuple() const { return node().type == ElementType::kTuple; }
  bool is_array() const { return node().type < ElementType::kToken; }
  ElementType type() const { return node().type; }
  MemorySpace space() const { return node().space; }
  int bits() const { return node().bits; }

  /// Dimensions of an array, major to minor as written: bf16[8,4096] is {8, 4096}.
  std::span<const std::int64_t> dims() const;
  /// Physical order of the dimensions, fastest first; empty where the text gave no layout.
  std::span<const std::int64_t> minor_to_major() const;
  /// Number of array elements (1 for a scalar).
  std::int64_t elements() const;

  /// Bytes that XLA allocates for this node alone: the array, or the pointer table of a tuple.
  Bytes bytes() const { return Bytes(node().bytes); }
  /// Sum of the arrays below this node, pointer tables left out.
  Bytes array_bytes() const;

  /// Number of nodes of the tree below this one, itself included.
  std::uint32_t node_count() const { return node().subtree; }
  /// Number of direct elements of a tuple.
  std::uint32_t tuple_size() const { return is_tuple() ? node().rank : 0; }
  /// The node of direct element `i`, relative to this shape.
  ShapeNodeIndex element_node(std::uint32_t i) const;
  /// The shape at a relative node.
  Shape at(ShapeNodeIndex relative) const { return Shape(data_, node_ + relative); }
  /// The shape of direct element `i`.
  Shape element(std::uint32_t i) const { return at(element_node(i)); }
  /// The path {1, 0} of a relative node, as XLA prints ShapeIndex.
  std::vector<std::uint32_t> path(ShapeNodeIndex relative) const;

  /// Whether every element is an array or token: then element i is node 1 + i.
  bool is_flat_tuple() const { return is_tuple() && node_count() == 1 + tuple_size(); }

  /// Same interned storage and node; equal shapes of one pool with equal text are identical.
  friend bool operator==(Shape a, Shape b) { return a.data_ == b.data_ && a.node_ == b.node_; }

 private:
  const ShapeData::Node& node() const { return data_->nodes[node_]; }

  const ShapeData* data_ = nullptr;
  ShapeNodeIndex node_ = 0;
};

/// Same types, dimensions, layouts and memory spaces, everywhere in the tree.
bool same_shape(Shape a, Shape b);
/// Same types and dimensions everywhere in the tree; layouts and memory spaces may differ.
bool compatible(Shape a, Shape b);
/// Same nesting of tuples, whatever the arrays in them are.
bool same_nesting(Shape a, Shape b);
/// "bf16[2,8192,4096]", without layouts; of a tuple with very many elements, the first.
std::string to_string(Shape shape);
/// "{1,0}" of a relative node; "{}" for the whole.
std::string path_to_string(Shape shape, ShapeNodeIndex relative);

/// Owns shapes. Addresses stay valid as long as the pool lives.
class ShapePool {
 public:
  Shape add(ShapeData data) { return Shape(&shapes_.emplace_back(std::move(data)), 0); }

 private:
  std::deque<ShapeData> shapes_;
};

}  // namespace spillway

#include "model/program/shape.h"

#include <algorithm>
#include <array>

#include "model/base/check.h"

namespace spillway {
namespace {

struct TypeRow {
  std::string_view name;
  ElementType type;
  int bits;
};

constexpr auto kTypes = std::to_array<TypeRow>({
    {"pred", ElementType::kPred, 8},
    {"s1", ElementType::kS1, 1},
    {"s2", ElementType::kS2, 2},
    {"s4", ElementType::kS4, 4},
    {"s8", ElementType::kS8, 8},
    {"s16", ElementType::kS16, 16},
    {"s32", ElementType::kS32, 32},
    {"s64", ElementType::kS64, 64},
    {"u1", ElementType::kU1, 1},
    {"u2", ElementType::kU2, 2},
    {"u4", ElementType::kU4, 4},
    {"u8", ElementType::kU8, 8},
    {"u16", ElementType::kU16, 16},
    {"u32", ElementType::kU32, 32},
    {"u64", ElementType::kU64, 64},
    {"f4e2m1fn", ElementType::kF4E2M1FN, 4},
    {"f6e2m3fn", ElementType::kF6E2M3FN, 6},
    {"f6e3m2fn", ElementType::kF6E3M2FN, 6},
    {"f8e3m4", ElementType::kF8E3M4, 8},
    {"f8e4m3", ElementType::kF8E4M3, 8},
    {"f8e4m3fn", ElementType::kF8E4M3FN, 8},
    {"f8e4m3b11fnuz", ElementType::kF8E4M3B11FNUZ, 8},
    {"f8e4m3fnuz", ElementType::kF8E4M3FNUZ, 8},
    {"f8e5m2", ElementType::kF8E5M2, 8},
    {"f8e5m2fnuz", ElementType::kF8E5M2FNUZ, 8},
    {"f8e8m0fnu", ElementType::kF8E8M0FNU, 8},
    {"f16", ElementType::kF16, 16},
    {"bf16", ElementType::kBF16, 16},
    {"f32", ElementType::kF32, 32},
    {"f64", ElementType::kF64, 64},
    {"c64", ElementType::kC64, 64},
    {"c128", ElementType::kC128, 128},
    {"token", ElementType::kToken, 0},
    {"opaque", ElementType::kOpaque, 0},
    {"tuple", ElementType::kTuple, 0},
});

const TypeRow& row_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

std::string_view element_type_name(ElementType type) { return row_of(type).name; }

bool find_element_type(std::string_view name, ElementType& type) {
  const auto row = std::ranges::find(kTypes, name, &TypeRow::name);
  if (row == kTypes.end() || row->type == ElementType::kTuple) return false;
  type = row->type;
  return true;
}

int element_bits(ElementType type) { return row_of(type).bits; }

std::span<const std::int64_t> Shape::dims() const {
  const auto& n = node();
  if (n.type == ElementType::kTuple) return {};
  return std::span(data_->dims).subspan(n.first_dim, n.rank);
}

std::span<const std::int64_t> Shape::minor_to_major() const {
  const auto& n = node();
  if (n.type == ElementType::kTuple || !n.has_layout) return {};
  return std::span(data_->minor_to_major).subspan(n.first_dim, n.rank);
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims()) count *= dim;
  return count;
}

Bytes Shape::array_bytes() const {
  Bytes sum(0);
  for (ShapeNodeIndex i = 0; i < node_count(); ++i)
    if (const Shape part = at(i); !part.is_tuple()) sum += part.bytes();
  return sum;
}

ShapeNodeIndex Shape::element_node(std::uint32_t i) const {
  check(i < tuple_size(), "a tuple element is outside its tuple");
  if (is_flat_tuple()) return 1 + i;
  ShapeNodeIndex child = 1;
  for (std::uint32_t k = 0; k < i; ++k) child += at(child).node_count();
  return child;
}

std::vector<std::uint32_t> Shape::path(ShapeNodeIndex relative) const {
  std::vector<std::uint32_t> path;
  Shape here = *this;
  while (relative > 0) {
    ShapeNodeIndex child = 1;
    std::uint32_t i = 0;
    while (child + here.at(child).node_count() <= relative) {
      child += here.at(child).node_count();
      ++i;
    }
    path.push_back(i);
    here = here.at(child);
    relative -= child;
  }
  return path;
}

bool same_shape(Shape a, Shape b) {
  if (a == b) return true;
  if (!compatible(a, b)) return false;
  for (ShapeNodeIndex i = 0; i < a.node_count(); ++i) {
    const Shape x = a.at(i);
    const Shape y = b.at(i);
    if (x.space() != y.space() || x.bits() != y.bits()) return false;
    if (!std::ranges::equal(x.minor_to_major(), y.minor_to_major())) return false;
  }
  return true;
}

bool compatible(Shape a, Shape b) {
  if (a == b) return true;
  if (!same_nesting(a, b)) return false;
  for (ShapeNodeIndex i = 0; i < a.node_count(); ++i) {
    const Shape x = a.at(i);
    const Shape y = b.at(i);
    if (x.type() != y.type() || !std::ranges::equal(x.dims(), y.dims())) return false;
  }
  return true;
}

bool same_nesting(Shape a, Shape b) {
  if (a == b) return true;
  if (a.node_count() != b.node_count()) return false;
  for (ShapeNodeIndex i = 0; i < a.node_count(); ++i)
    if (a.at(i).is_tuple() != b.at(i).is_tuple() || a.at(i).tuple_size() != b.at(i).tuple_size())
      return false;
  return true;
}

std::string to_string(Shape shape) {
  constexpr ShapeNodeIndex kMostNodes = 4096;  // a text, not storage: enough for every real program
  std::string text;
  std::vector<ShapeNodeIndex> ends;  // of the tuples that are open
  const char* separator = "";
  for (ShapeNodeIndex i = 0; i < shape.node_count() && i < kMostNodes; ++i) {
    const Shape part = shape.at(i);
    text += separator;
    separator = ", ";
    if (part.is_tuple()) {
      text += '(';
      separator = "";
      ends.push_back(i + part.node_count());
    } else {
      text += element_type_name(part.type());
      const char* comma = "[";
      for (const std::int64_t dim : part.dims()) {
        text += comma + std::to_string(dim);
        comma = ",";
      }
      text += part.dims().empty() ? "[]" : "]";
    }
    for (; !ends.empty() && ends.back() == i + 1; ends.pop_back()) {
      text += ')';
      separator = ", ";
    }
  }
  if (!ends.empty()) text += ", …" + std::string(ends.size(), ')');
  return text;
}

std::string path_to_string(Shape shape, ShapeNodeIndex relative) {
  std::string text = "{";
  const char* separator = "";
  for (const std::uint32_t i : shape.path(relative)) {
    text += separator + std::to_string(i);
    separator = ",";
  }
  return text + "}";
}

}  // namespace spillway

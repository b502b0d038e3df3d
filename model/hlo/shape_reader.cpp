#include "model/hlo/shape_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace spillway::hlo {
namespace {

constexpr int kDeepestTuple = 64;
constexpr std::int64_t kPointerBytes = 8;

/// Where an array's text ends: f32[8,128]{1,0:S(5)}. Null for anything unusual.
const char* quick_end_of_array(const char* at) {
  const char* const start = at;
  while (is(*at, kTypeName)) ++at;
  if (at == start || *at != '[') return nullptr;
  do ++at;
  while (is(*at, kDims));
  if (*at != ']') return nullptr;
  if (*++at != '{') return at;
  do ++at;
  while (is(*at, kLayout));
  return *at == '}' ? at + 1 : nullptr;
}

/// The same for a tuple: what stands in its parentheses is looked at when it is parsed.
const char* quick_end_of_tuple(const char* at) {
  for (std::size_t depth = 0;; ++at) {
    while (!is(*at, kTupleStop)) ++at;
    if (*at == '(') {
      ++depth;
    } else if (*at == ')') {
      if (--depth == 0) return at + 1;
    } else if (*at == '/' && at[1] == '*') {
      const char* const end = std::strstr(at + 2, "*/");
      if (end == nullptr) return nullptr;
      at = end + 1;
    } else {
      return nullptr;
    }
  }
}

/// A layout stands right behind the dimensions, and begins with a number or a colon; any other
/// brace opens a computation.
bool layout_follows(const Cursor& cursor) {
  const std::string_view rest = cursor.rest();
  if (!rest.starts_with('{')) return false;
  const std::size_t inside = rest.find_first_not_of(' ', 1);
  return inside != std::string_view::npos &&
         (is(rest[inside], kDigit) || rest[inside] == ':' || rest[inside] == '}');
}

/// Moves behind any shape without looking inside.
void skip_shape(Cursor& cursor) {
  if (cursor.peek() == '(') {
    cursor.balanced();
    return;
  }
  const std::string_view type = cursor.word();
  if (type == "b" && cursor.rest().starts_with('(')) {
    cursor.balanced();
    return;
  }
  if (type.empty() || !cursor.rest().starts_with('[')) {
    if (!type.empty()) cursor.move_to(cursor.position() - type.size());
    return cursor.fail_here("expected a shape such as f32[8,128]");
  }
  cursor.balanced();
  if (layout_follows(cursor)) cursor.balanced();
}

/// Parses the text of one shape into flat form.
class ShapeParser {
 public:
  ShapeParser(Cursor& cursor, ShapeData& data) : cursor_(cursor), data_(data) {}

  void parse(int depth = 0) {
    if (cursor_.failed()) return;
    if (cursor_.peek() == '(') return parse_tuple(depth);
    if (cursor_.accept("b(")) {  // a buffer: the array itself
      if (depth >= kDeepestTuple) return cursor_.fail_here("a shape nests too deep");
      parse(depth + 1);
      cursor_.expect(')');
      return;
    }
    parse_array();
  }

 private:
  void parse_tuple(int depth) {
    if (depth >= kDeepestTuple) return cursor_.fail_here("a shape nests too deep");
    const std::size_t self = data_.nodes.size();
    data_.nodes.push_back({.type = ElementType::kTuple});
    cursor_.expect('(');
    std::uint32_t count = 0;
    while (!cursor_.failed() && !cursor_.accept(')')) {
      if (count > 0 && !cursor_.expect(',')) return;
      parse(depth + 1);
      ++count;
    }
    ShapeData::Node& node = data_.nodes[self];
    node.rank = count;
    node.bytes = count * kPointerBytes;
    node.subtree = static_cast<std::uint32_t>(data_.nodes.size() - self);
  }

  void parse_array() {
    cursor_.peek();
    const std::size_t start = cursor_.position();
    const std::string_view name = cursor_.word();
    ShapeData::Node node;
    if (!find_element_type(name, node.type))
      return cursor_.fail(start, "unknown element type " + quoted(name));
    node.first_dim = static_cast<std::uint32_t>(data_.dims.size());
    // s4, f4e2m1fn, … take a byte each unless their layout packs them with E(4).
    const int bits = element_bits(node.type);
    node.bits = static_cast<std::uint8_t>(bits > 0 && bits < 8 ? 8 : bits);
    cursor_.expect('[');
    while (!cursor_.failed() && !cursor_.accept(']')) {
      if (data_.dims.size() > node.first_dim && !cursor_.expect(',')) return;
      parse_dim();
    }
    node.rank = static_cast<std::uint32_t>(data_.dims.size()) - node.first_dim;
    data_.minor_to_major.resize(data_.dims.size(), 0);
    if (layout_follows(cursor_)) parse_layout(node);
    set_size(node, start);
    data_.nodes.push_back(node);
  }

  void parse_dim() {
    if (cursor_.peek() == '?')
      return cursor_.fail_here("a dimension without bound has no size",
                               "XLA compiles for GPUs once it is known");
    cursor_.accept("<=");  // a dynamic dimension has this bound
    const bool is_number = is(cursor_.peek(), kDigit);
    const auto dim = cursor_.number();
    if (dim) return data_.dims.push_back(*dim);
    cursor_.fail_here(is_number ? "the size of a dimension does not fit 64 bits"
                                : "expected the size of a dimension");
  }

  void parse_layout(ShapeData::Node& node) {
    const std::size_t start = cursor_.position();
    cursor_.expect('{');
    node.has_layout = true;
    std::uint32_t count = 0;
    const auto order = data_.minor_to_major.begin() + node.first_dim;
    while (const auto dim = cursor_.number()) {
      if (*dim >= node.rank || count >= node.rank)
        return cursor_.fail_here("a layout names a dimension that the shape does not have");
      if (std::find(order, order + count, *dim) != order + count)
        return cursor_.fail_here("a layout names a dimension twice");
      order[count++] = *dim;
      cursor_.accept(',');
    }
    if (cursor_.accept(':'))
      while (!cursor_.failed() && cursor_.peek() != '}') parse_layout_property(node);
    cursor_.expect('}');
    if (!cursor_.failed() && count != node.rank)
      cursor_.fail(start, "a layout must order every dimension");
  }

  /// T(8,128)(2,1), S(5), E(4), and those that have no meaning here: L, SC, P, M, #, *.
  void parse_layout_property(ShapeData::Node& node) {
    const std::string_view key = cursor_.word();
    if (key.empty() && !cursor_.accept('*') && !cursor_.accept('#'))
      return cursor_.fail_here("expected a layout property such as S(5)");
    if (cursor_.peek() != '(') return cursor_.fail_here("expected '('");
    if (key == "S" || key == "E") {
      cursor_.expect('(');
      const std::int64_t number = cursor_.number().value_or(-1);
      if (key == "S" && number >= 0 && number <= 255)
        node.space = static_cast<MemorySpace>(number);
      else if (key == "E" && number > 0 && number <= 128)
        node.bits = static_cast<std::uint8_t>(number);
      else
        return cursor_.fail_here(key == "S" ? "expected the number of a memory space"
                                            : "expected the bits of an element");
      cursor_.expect(')');
      return;
    }
    while (cursor_.peek() == '(') cursor_.balanced();
  }

  void set_size(ShapeData::Node& node, std::size_t start) {
    std::int64_t bits = node.bits;
    bool overflow = false;
    bool empty = false;
    for (std::uint32_t i = 0; i < node.rank; ++i) {
      const std::int64_t dim = data_.dims[node.first_dim + i];
      if (dim == 0)
        empty = true;
      else
        overflow |= __builtin_mul_overflow(bits == 0 ? 1 : bits, dim, &bits);
    }
    if (overflow || bits > std::numeric_limits<std::int64_t>::max() - 8)
      return cursor_.fail(start, "the size of a shape does not fit 64 bits");
    node.bytes = empty || node.bits == 0 ? 0 : (bits + 7) / 8;
  }

  Cursor& cursor_;
  ShapeData& data_;
};

}  // namespace

Shape ShapeReader::read(Cursor& cursor) {
  const char* const at = cursor.peek() == '(' ? quick_end_of_tuple(cursor.rest().data())
                                              : quick_end_of_array(cursor.rest().data());
  const std::size_t start = cursor.position();
  if (at != nullptr)
    cursor.skip(static_cast<std::size_t>(at - cursor.rest().data()));
  else
    skip_shape(cursor);
  if (cursor.failed()) return {};
  const std::size_t end = cursor.position();
  bool is_new = false;
  Shape& shape = by_text_.insert(cursor.since(start), is_new);
  if (!is_new && shape.valid()) [[likely]]
    return shape;
  cursor.move_to(start);
  scratch_.nodes.clear();
  scratch_.dims.clear();
  scratch_.minor_to_major.clear();
  ShapeParser(cursor, scratch_).parse();
  if (cursor.failed()) return {};
  if (cursor.position() != end) {
    cursor.fail_here("a shape ends in an unexpected place");
    return {};
  }
  shape = pool_->add(ShapeData(scratch_));  // a copy has no room to spare
  return shape;
}

}  // namespace spillway::hlo

#include "model/hlo/shape_reader.h"

#include <limits>
#include <string>

namespace spillway::hlo {
namespace {

constexpr int kDeepestTuple = 64;
constexpr std::int64_t kPointerBytes = 8;

bool is_type_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// A layout stands right behind the dimensions; after a blank, a brace opens something else.
bool layout_follows(const Cursor& cursor) {
  return cursor.position() < cursor.text().size() && cursor.text()[cursor.position()] == '{';
}

/// Moves behind a shape without looking inside; returns its text.
std::string_view skip_shape(Cursor& cursor) {
  const char first = cursor.peek();
  const std::size_t start = cursor.position();
  if (first == '(') return cursor.balanced();
  std::size_t at = start;
  const std::string_view text = cursor.text();
  while (at < text.size() && is_type_char(text[at])) ++at;
  if (at == start || at >= text.size() || text[at] != '[') {
    cursor.fail(start, "expected a shape such as f32[8,128]");
    return {};
  }
  cursor.move_to(at);
  cursor.balanced();
  if (layout_follows(cursor)) cursor.balanced();
  return cursor.since(start);
}

/// Parses the text of one shape into flat form.
class ShapeParser {
 public:
  ShapeParser(Cursor& cursor, ShapeData& data) : cursor_(cursor), data_(data) {}

  void parse(int depth = 0) {
    if (cursor_.failed()) return;
    if (cursor_.peek() == '(') return parse_tuple(depth);
    parse_array();
  }

 private:
  void parse_tuple(int depth) {
    if (depth >= kDeepestTuple) return cursor_.fail_here("a shape nests too many tuples");
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
    const std::size_t start = cursor_.position();
    const std::string_view name = cursor_.word();
    ShapeData::Node node;
    if (!find_element_type(name, node.type))
      return cursor_.fail(start, "unknown element type '" + std::string(name) + "'");
    node.first_dim = static_cast<std::uint32_t>(data_.dims.size());
    node.bits = static_cast<std::uint8_t>(element_bits(node.type));
    cursor_.expect('[');
    while (!cursor_.failed() && !cursor_.accept(']')) {
      if (data_.dims.size() > node.first_dim && !cursor_.expect(',')) return;
      cursor_.accept("<=");  // a dynamic dimension has this bound
      const auto dim = cursor_.number();
      if (!dim || *dim < 0) return cursor_.fail_here("expected the size of a dimension");
      data_.dims.push_back(*dim);
    }
    node.rank = static_cast<std::uint32_t>(data_.dims.size()) - node.first_dim;
    data_.minor_to_major.resize(data_.dims.size(), 0);
    if (layout_follows(cursor_)) parse_layout(node);
    set_size(node, start);
    data_.nodes.push_back(node);
  }

  void parse_layout(ShapeData::Node& node) {
    cursor_.expect('{');
    node.has_layout = true;
    std::uint32_t count = 0;
    while (const auto dim = cursor_.number()) {
      if (*dim < 0 || *dim >= node.rank || count >= node.rank)
        return cursor_.fail_here("a layout names a dimension that the shape does not have");
      data_.minor_to_major[node.first_dim + count++] = *dim;
      cursor_.accept(',');
    }
    if (cursor_.accept(':'))
      while (!cursor_.failed() && cursor_.peek() != '}') parse_layout_property(node);
    cursor_.expect('}');
    if (!cursor_.failed() && count != node.rank && count != 0)
      cursor_.fail_here("a layout must order every dimension");
  }

  /// T(8,128)(2,1), S(5), E(4), and those that have no meaning here.
  void parse_layout_property(ShapeData::Node& node) {
    const std::string_view key = cursor_.word();
    if (cursor_.accept('*') || cursor_.accept('#')) return;
    if (cursor_.peek() != '(') return cursor_.fail_here("expected a layout property such as S(5)");
    while (cursor_.peek() == '(') {
      const std::string_view value = cursor_.balanced();
      if (value.size() < 3) continue;
      const auto number = value[1] - '0';
      if (key == "S" && value.size() == 3 && number >= 0 && number <= 9)
        node.space = static_cast<MemorySpace>(number);
      if (key == "E" && value.size() == 3 && number > 0 && number < 8)
        node.bits = static_cast<std::uint8_t>(number);
    }
  }

  void set_size(ShapeData::Node& node, std::size_t start) {
    std::int64_t bits = node.bits;
    bool overflow = false;
    bool empty = false;
    for (std::uint32_t i = 0; i < node.rank; ++i) {
      const std::int64_t dim = data_.dims[node.first_dim + i];
      if (dim == 0) {
        empty = true;
        continue;
      }
      overflow |= __builtin_mul_overflow(bits, dim, &bits);
    }
    if (overflow || bits > std::numeric_limits<std::int64_t>::max() - 8)
      return cursor_.fail(start, "the size of a shape does not fit 64 bits");
    node.bytes = empty ? 0 : (bits + 7) / 8;
  }

  Cursor& cursor_;
  ShapeData& data_;
};

}  // namespace

Shape ShapeReader::read(Cursor& cursor) {
  cursor.peek();
  const std::size_t start = cursor.position();
  const std::string_view text = skip_shape(cursor);
  if (cursor.failed()) return {};
  const std::size_t end = cursor.position();
  bool is_new = false;
  Shape& shape = by_text_.insert(text, is_new);
  if (!is_new && shape.valid()) return shape;
  ShapeData data;
  cursor.move_to(start);
  ShapeParser(cursor, data).parse();
  if (cursor.failed()) return {};
  if (cursor.position() != end) {
    cursor.fail_here("a shape ends in an unexpected place");
    return {};
  }
  shape = pool_->add(std::move(data));
  return shape;
}

}  // namespace spillway::hlo

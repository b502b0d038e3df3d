#include "model/hlo/proto_values.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "model/hlo/proto/hlo.pb.h"
#include "model/program/shape.h"

namespace spillway::hlo {
namespace {

struct TypeNumber {
  int number;
  ElementType type;
};

/// XLA's numbers of element types.
constexpr auto kTypes = std::to_array<TypeNumber>({
    {1, ElementType::kPred},        {2, ElementType::kS8},
    {3, ElementType::kS16},         {4, ElementType::kS32},
    {5, ElementType::kS64},         {6, ElementType::kU8},
    {7, ElementType::kU16},         {8, ElementType::kU32},
    {9, ElementType::kU64},         {10, ElementType::kF16},
    {11, ElementType::kF32},        {12, ElementType::kF64},
    {14, ElementType::kOpaque},     {15, ElementType::kC64},
    {16, ElementType::kBF16},       {17, ElementType::kToken},
    {18, ElementType::kC128},       {19, ElementType::kF8E5M2},
    {20, ElementType::kF8E4M3FN},   {21, ElementType::kS4},
    {22, ElementType::kU4},         {23, ElementType::kF8E4M3B11FNUZ},
    {24, ElementType::kF8E5M2FNUZ}, {25, ElementType::kF8E4M3FNUZ},
    {26, ElementType::kS2},         {27, ElementType::kU2},
    {28, ElementType::kF8E4M3},     {29, ElementType::kF8E3M4},
    {30, ElementType::kS1},         {31, ElementType::kU1},
    {32, ElementType::kF4E2M1FN},   {33, ElementType::kF8E8M0FNU},
});
constexpr int kTuple = 13;
constexpr int kBuffer = 34;

void append_type(std::string& text, int number) {
  for (const TypeNumber& row : kTypes) {
    if (row.number != number) continue;
    text += element_type_name(row.type);
    return;
  }
  text += "type" + std::to_string(number);
}

bool is_type(const pb::Shape& shape, ElementType type) {
  for (const TypeNumber& row : kTypes)
    if (row.number == shape.element_type()) return row.type == type;
  return false;
}

void append_layout(std::string& text, const pb::Shape& shape) {
  if (!shape.has_layout()) return;
  const pb::Layout& layout = shape.layout();
  const bool plain =
      layout.tiles().empty() && layout.element_size_in_bits() == 0 && layout.memory_space() == 0;
  if (layout.minor_to_major().empty() && plain) return;
  text += '{';
  append_numbers(text, layout.minor_to_major());
  if (!plain) text += ':';
  const char* before = "T(";
  for (const pb::Tile& tile : layout.tiles()) {
    text += std::exchange(before, "(");
    append_numbers(text, tile.dimensions());
    text += ')';
  }
  if (layout.element_size_in_bits() != 0)
    text += fmt::format("E({})", layout.element_size_in_bits());
  if (layout.memory_space() != 0) text += fmt::format("S({})", layout.memory_space());
  text += '}';
}

void append_array(std::string& text, const pb::Shape& shape) {
  append_type(text, shape.element_type());
  text += '[';
  for (int i = 0; i < shape.dimensions_size(); ++i) {
    if (i > 0) text += ',';
    const bool dynamic = i < shape.is_dynamic_dimension_size() && shape.is_dynamic_dimension(i);
    // An unbounded dimension has the least of all numbers as its bound.
    if (shape.dimensions(i) < 0)
      text += '?';
    else
      text += (dynamic ? "<=" : "") + std::to_string(shape.dimensions(i));
  }
  text += ']';
  append_layout(text, shape);
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

float from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  float value = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                : exponent == 31 ? (fraction == 0 ? HUGE_VALF : NAN)
                                 : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits >> 15 != 0 ? -value : value;
}

/// XLA's digits: few where they say the number exactly, else as many as every number needs.
std::string to_word(float value) {
  std::string few = fmt::format("{:.6g}", value);
  return std::strtof(few.c_str(), nullptr) == value ? few : fmt::format("{:.9g}", value);
}
std::string to_word(double value) {
  std::string few = fmt::format("{:.15g}", value);
  return std::strtod(few.c_str(), nullptr) == value ? few : fmt::format("{:.17g}", value);
}

/// The elements as words; empty where there are none that can be written.
class LiteralWords {
 public:
  LiteralWords(const pb::Literal& literal, const pb::Shape& shape)
      : literal_(literal), shape_(shape) {}

  std::vector<std::string> words() const {
    using enum ElementType;
    if (is_type(shape_, kPred))
      return map(literal_.preds(), [](bool b) { return b ? "true" : "false"; });
    if (is_type(shape_, kS32)) return map(literal_.s32s(), as_integer<std::int32_t>);
    if (is_type(shape_, kS64)) return map(literal_.s64s(), as_integer<std::int64_t>);
    if (is_type(shape_, kU32)) return map(literal_.u32s(), as_integer<std::uint32_t>);
    if (is_type(shape_, kU64)) return map(literal_.u64s(), as_integer<std::uint64_t>);
    if (is_type(shape_, kS8))
      return map(literal_.s8s(),
                 [](char c) { return std::to_string(static_cast<signed char>(c)); });
    if (is_type(shape_, kU8))
      return map(literal_.u8s(),
                 [](char c) { return std::to_string(static_cast<unsigned char>(c)); });
    if (is_type(shape_, kS16))
      return map(halves(literal_.s16s()),
                 [](std::uint16_t h) { return std::to_string(static_cast<std::int16_t>(h)); });
    if (is_type(shape_, kU16)) return map(halves(literal_.u16s()), as_integer<std::uint16_t>);
    if (is_type(shape_, kF32)) return map(literal_.f32s(), [](float f) { return to_word(f); });
    if (is_type(shape_, kF64)) return map(literal_.f64s(), [](double d) { return to_word(d); });
    if (is_type(shape_, kBF16))
      return map(halves(literal_.bf16s()),
                 [](std::uint16_t h) { return fmt::format("{:.4g}", from_bf16(h)); });
    if (is_type(shape_, kF16))
      return map(halves(literal_.f16s()),
                 [](std::uint16_t h) { return fmt::format("{:.5g}", from_f16(h)); });
    if (is_type(shape_, kC64)) return pairs(literal_.c64s());
    if (is_type(shape_, kC128)) return pairs(literal_.c128s());
    return {};
  }

 private:
  template <typename T>
  static std::string as_integer(T value) {
    return std::to_string(value);
  }
  template <typename Range, typename Write>
  static std::vector<std::string> map(const Range& values, Write write) {
    std::vector<std::string> words;
    for (const auto value : values) {
      if (words.size() == kMostElements) return {};
      words.emplace_back(write(value));
    }
    return words;
  }
  /// (real, imaginary)
  template <typename Numbers>
  static std::vector<std::string> pairs(const Numbers& numbers) {
    std::vector<std::string> words;
    for (int i = 0; i + 1 < numbers.size(); i += 2) {
      if (words.size() == kMostElements) return {};
      words.push_back("(" + to_word(numbers[i]) + ", " + to_word(numbers[i + 1]) + ")");
    }
    return words;
  }
  static std::vector<std::uint16_t> halves(const std::string& bytes) {
    std::vector<std::uint16_t> values(std::min(bytes.size() / 2, kMostElements + 1));
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], bytes.data() + 2 * i, sizeof values[i]);
    return values;
  }

  static constexpr std::size_t kMostElements = 10;  // XLA writes no more either

  const pb::Literal& literal_;
  const pb::Shape& shape_;
};

constexpr int kMostLiteralDimensions = 8;

/// 1, {1, 2}, { {1, 2}, {3, 4} }
void append_nested(std::string& text, const pb::Shape& shape, int dimension,
                   std::vector<std::string>::const_iterator& next) {
  if (dimension == shape.dimensions_size()) {
    text += *next++;
    return;
  }
  const bool innermost = dimension + 1 == shape.dimensions_size();
  text += innermost ? "{" : "{ ";
  for (std::int64_t i = 0; i < shape.dimensions(dimension); ++i) {
    if (i > 0) text += ", ";
    append_nested(text, shape, dimension + 1, next);
  }
  text += innermost ? "}" : " }";
}

/// Whether the reader of text takes `content` as one group of JSON.
bool is_json(std::string_view content) {
  if (!content.starts_with('{')) return false;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    if (c == '\0') return false;
    if (c == '"') {
      for (++i; i < content.size() && content[i] != '"'; ++i)
        if (content[i] == '\\') ++i;
      if (i >= content.size()) return false;
    }
    if (c == '{' || c == '[' || c == '(') ++depth;
    if ((c == '}' || c == ']' || c == ')') && --depth == 0) return i + 1 == content.size();
  }
  return false;
}

}  // namespace

void append_shape(std::string& text, const pb::Shape& shape) {
  const bool is_buffer = shape.element_type() == kBuffer;
  if (shape.element_type() != kTuple && !is_buffer) return append_array(text, shape);
  text += is_buffer ? "b(" : "(";
  for (int i = 0; i < shape.tuple_shapes_size(); ++i) {
    if (i > 0) text += ", ";
    append_shape(text, shape.tuple_shapes(i));
  }
  text += ')';
}

void append_literal(std::string& text, const pb::Literal& literal, const pb::Shape& shape) {
  const std::vector<std::string> words = LiteralWords(literal, shape).words();
  std::int64_t elements = shape.dimensions_size() <= kMostLiteralDimensions ? 1 : 0;
  for (int d = 0; d < shape.dimensions_size() && elements > 0; ++d)
    if (shape.dimensions(d) < 0 || __builtin_mul_overflow(elements, shape.dimensions(d), &elements))
      elements = 0;
  if (words.empty() || elements != static_cast<std::int64_t>(words.size())) {
    text += "{...}";
    return;
  }
  auto next = words.begin();
  append_nested(text, shape, 0, next);
}

void append_quoted(std::string& text, std::string_view content) {
  const auto is_plain = [](char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\';
  };
  text += '"';
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::size_t end = at;
    while (end < content.size() && is_plain(content[end])) ++end;
    text += content.substr(at, end - at);
    if (end == content.size()) break;
    at = end;
    const char c = content[at];
    switch (c) {
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\t':
        text += "\\t";
        break;
      case '"':
      case '\'':
      case '\\':
        text += '\\';
        text += c;
        break;
      default:
        text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  text += '"';
}

void append_json_or_quoted(std::string& text, std::string_view content) {
  if (is_json(content))
    text += content;
  else
    append_quoted(text, content);
}

}  // namespace spillway::hlo

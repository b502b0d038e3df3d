#include "model/hlo/shape_reader.h"

#include <doctest/doctest.h>

#include <string>

namespace spillway::hlo {
namespace {

struct Read {
  std::string shape;  ///< or the error
  std::size_t end = 0;
};

Read read(const std::string& text) {
  Cursor cursor(text, "x");
  ShapeReader reader;
  const Shape shape = reader.read(cursor);
  if (cursor.failed()) {
    Error error = cursor.error();
    error.advice.erase(0, error.advice == "the file may be cut" ? std::string::npos : 0);
    return {to_text(error), 0};
  }
  std::string found = to_string(shape);
  for (ShapeNodeIndex i = 0; i < shape.node_count(); ++i)
    if (shape.at(i).space() != MemorySpace::kDevice)
      found += " " + path_to_string(shape, i) + ":S(" +
               std::to_string(static_cast<int>(shape.at(i).space())) + ")";
  return {found, cursor.position()};
}

TEST_CASE("shapes that XLA prints") {
  struct Row {
    std::string text;
    std::string expected;
    std::string rest = "";  ///< what is left behind the shape
  };
  const Row rows[] = {
      {"f32[]", "f32[]"},
      {"f32[]{}", "f32[]"},
      {"bf16[8,4096]{1,0}", "bf16[8,4096]"},
      {"f32[ 1, 2,3]{0, 1, 2 }", "f32[1,2,3]"},
      {"bf16[8,4096]{1,0:T(8,128)(2,1)S(5)}", "bf16[8,4096] {}:S(5)"},
      {"f32[8,16]{1,0:T(2, * , 128)}", "f32[8,16]"},
      {"u32[]{:S(2)}", "u32[] {}:S(2)"},
      {"f32[8]{0:S(6)}", "f32[8] {}:S(6)"},
      {"s4[8]{0:T(8)E(4)S(1)}", "s4[8] {}:S(1)"},
      {"f32[8]{0:L(128)}", "f32[8]"},
      {"f32[8]{0:#(u32)*(u8)}", "f32[8]"},
      {"f32[8]{0:T(8)SC(0:4,8)M(1024)}", "f32[8]"},
      {"f32[8]{0:P((f32[2]{0:S(5)}, s32[]))S(5)}", "f32[8] {}:S(5)"},
      {"f32[8,<=16]", "f32[8,16]"},
      {"u32[<=123,<=456]{1,0}", "u32[123,456]"},
      {"f32[2,0,4,3]", "f32[2,0,4,3]"},
      {"token[]", "token[]"},
      {"opaque[]", "opaque[]"},
      {"b(f32[8,16]{1,0})", "f32[8,16]"},
      {"()", "()"},
      {"(f32[2], (s32[], token[]))", "(f32[2], (s32[], token[]))"},
      {"( f32[2] ,( ) )", "(f32[2], ())"},
      {"(f32[2]{0:S(5)}, f32[2]{0}, u32[])", "(f32[2], f32[2], u32[]) {0}:S(5)"},
      {"(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[2])",
       "(f32[], f32[], f32[], f32[], f32[], f32[2])"},
      {"(f32[] /* a ) here */, f32[2]) x", "(f32[], f32[2])", " x"},
      {"(f32[], // the first\n f32[2])", "(f32[], f32[2])"},
      {"f32[2] {", "f32[2]", " {"},
      {"f32[2]{\n", "f32[2]", "{\n"},
      {"f32[2]{0} add(", "f32[2]", " add("},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Read found = read(row.text);
    CHECK(found.shape == row.expected);
    CHECK(std::string(row.text).substr(found.end) == row.rest);
  }
}

TEST_CASE("text that is no shape") {
  struct Row {
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"", "x:1:1: error: expected a shape such as f32[8,128]"},
      {"f32",
       "x:1:1: error: expected a shape such as f32[8,128]\n"
       "   1 | f32\n"
       "     | ^"},
      {"f33[2]",
       "x:1:1: error: unknown element type 'f33'\n"
       "   1 | f33[2]\n"
       "     | ^"},
      {"tuple[2]",
       "x:1:1: error: unknown element type 'tuple'\n"
       "   1 | tuple[2]\n"
       "     | ^"},
      {"f32[2",
       "x:1:4: error: a bracket is not closed\n"
       "   1 | f32[2\n"
       "     |    ^"},
      {"f32[2,]",
       "x:1:7: error: expected the size of a dimension\n"
       "   1 | f32[2,]\n"
       "     |       ^"},
      {"f32[-2]",
       "x:1:5: error: expected the size of a dimension\n"
       "   1 | f32[-2]\n"
       "     |     ^"},
      {"f32[2x3]",
       "x:1:6: error: expected ','\n"
       "   1 | f32[2x3]\n"
       "     |      ^"},
      {"f32[?,3]",
       "x:1:5: error: a dimension without bound has no size\n"
       "   1 | f32[?,3]\n"
       "     |     ^ XLA compiles for GPUs once it is known"},
      {"f32[99999999999999999999]",
       "x:1:5: error: the size of a dimension does not fit 64 bits\n"
       "   1 | f32[99999999999999999999]\n"
       "     |     ^"},
      {"f32[4611686018427387904,4]",
       "x:1:1: error: the size of a shape does not fit 64 bits\n"
       "   1 | f32[4611686018427387904,4]\n"
       "     | ^"},
      {"pred[9223372036854775807]",
       "x:1:1: error: the size of a shape does not fit 64 bits\n"
       "   1 | pred[9223372036854775807]\n"
       "     | ^"},
      {"f32[0,4611686018427387904,4611686018427387904]",
       "x:1:1: error: the size of a shape does not fit 64 bits\n"
       "   1 | f32[0,4611686018427387904,4611686018427387904]\n"
       "     | ^"},
      {"f32[2,3]{0}",
       "x:1:9: error: a layout must order every dimension\n"
       "   1 | f32[2,3]{0}\n"
       "     |         ^"},
      {"f32[2,3]{0,2}",
       "x:1:13: error: a layout names a dimension that the shape does not have\n"
       "   1 | f32[2,3]{0,2}\n"
       "     |             ^"},
      {"f32[2,3]{0,0}",
       "x:1:13: error: a layout names a dimension twice\n"
       "   1 | f32[2,3]{0,0}\n"
       "     |             ^"},
      {"f32[2]{0:S(x)}",
       "x:1:12: error: expected the number of a memory space\n"
       "   1 | f32[2]{0:S(x)}\n"
       "     |            ^"},
      {"f32[2]{0:E(0)}",
       "x:1:13: error: expected the bits of an element\n"
       "   1 | f32[2]{0:E(0)}\n"
       "     |             ^"},
      {"f32[2]{0:S}",
       "x:1:11: error: expected '('\n"
       "   1 | f32[2]{0:S}\n"
       "     |           ^"},
      {"(f32[2]",
       "x:1:1: error: a bracket is not closed\n"
       "   1 | (f32[2]\n"
       "     | ^"},
      {"(f32[2] f32[3])",
       "x:1:9: error: expected ','\n"
       "   1 | (f32[2] f32[3])\n"
       "     |         ^"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read(row.text).shape == row.expected);
  }
}

TEST_CASE("nesting ends somewhere") {
  const auto nested = [](std::size_t depth, const char* open, const char* close) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += open;
    text += "f32[2]";
    for (std::size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  CHECK(read(nested(64, "(", ")")).shape == nested(64, "(", ")"));
  CHECK(read(nested(65, "(", ")")).shape.starts_with("x:1:65: error: a shape nests too deep\n"));
  CHECK(read(nested(10000, "(", ")")).shape.starts_with("x:1:65: error: a shape nests too deep\n"));
  CHECK(
      read(nested(10000, "b(", ")")).shape.starts_with("x:1:131: error: a shape nests too deep\n"));
  CHECK(
      read(nested(1000000, "(", "")).shape.starts_with("x:1:1: error: a bracket is not closed\n"));
}

}  // namespace
}  // namespace spillway::hlo

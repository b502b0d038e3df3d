#include "model/program/shape.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/hlo/cursor.h"
#include "model/hlo/shape_reader.h"

namespace spillway {
namespace {

/// Shapes of one pool, by their text.
class Shapes {
 public:
  Shape operator()(const std::string& text) {
    const std::string& kept = texts_.emplace_back(text);
    hlo::Cursor cursor(kept, "shape");
    const Shape shape = reader_.read(cursor);
    REQUIRE_MESSAGE(!cursor.failed(), (cursor.failed() ? to_text(cursor.error()) : ""));
    return shape;
  }

 private:
  std::deque<std::string> texts_;
  hlo::ShapeReader reader_;
};

TEST_CASE("sizes of types") {
  struct Row {
    std::string text;
    int type_bits, bits;
    std::int64_t bytes;
  };
  // Types below a byte take a byte an element, unless the layout packs them.
  const Row rows[] = {
      {"pred[5]", 8, 8, 5},       {"s4[5]", 4, 8, 5},
      {"s4[5]{0:E(4)}", 4, 4, 3}, {"u4[2,3]{1,0:E(4)}", 4, 4, 3},
      {"s2[5]{0:E(2)}", 2, 2, 2}, {"u1[9]{0:E(1)}", 1, 1, 2},
      {"f4e2m1fn[4]", 4, 8, 4},   {"f4e2m1fn[4]{0:E(4)}", 4, 4, 2},
      {"f6e2m3fn[4]", 6, 8, 4},   {"f6e3m2fn[4]{0:E(6)}", 6, 6, 3},
      {"s8[5]", 8, 8, 5},         {"f8e4m3fn[5]", 8, 8, 5},
      {"f8e5m2fnuz[5]", 8, 8, 5}, {"f8e8m0fnu[32]", 8, 8, 32},
      {"bf16[5]", 16, 16, 10},    {"f16[5]", 16, 16, 10},
      {"s32[]", 32, 32, 4},       {"f64[3]", 64, 64, 24},
      {"c64[3]", 64, 64, 24},     {"c128[3]", 128, 128, 48},
      {"token[]", 0, 0, 0},       {"opaque[]", 0, 0, 0},
      {"f32[2,0,4]", 32, 32, 0},  {"f32[8,<=16]{1,0}", 32, 32, 512},
  };
  Shapes shapes;
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Shape shape = shapes(row.text);
    CHECK(element_bits(shape.type()) == row.type_bits);
    CHECK(shape.bits() == row.bits);
    CHECK(shape.bytes() == Bytes(row.bytes));
  }
  ElementType type = ElementType::kPred;
  CHECK_FALSE(find_element_type("tuple", type));
  CHECK_FALSE(find_element_type("f31", type));
}

TEST_CASE("an array knows its dimensions, layout and memory space") {
  Shapes shapes;
  const Shape shape = shapes("bf16[8,16,4]{0,2,1:T(8,128)(2,1)S(5)}");
  CHECK(std::vector(shape.dims().begin(), shape.dims().end()) ==
        std::vector<std::int64_t>{8, 16, 4});
  CHECK(std::vector(shape.minor_to_major().begin(), shape.minor_to_major().end()) ==
        std::vector<std::int64_t>{0, 2, 1});
  CHECK(shape.space() == MemorySpace::kPinnedHost);
  CHECK(is_host(shape.space()));
  CHECK(shape.elements() == 512);
  CHECK(shapes("f32[2,3]").minor_to_major().empty());
  CHECK(shapes("f32[2,3]").space() == MemorySpace::kDevice);
  CHECK(shapes("f32[]").elements() == 1);
  CHECK(shapes("u32[]{:S(2)}").space() == MemorySpace::kTempBuffer);
}

TEST_CASE("a tuple is a tree in pre-order") {
  //                          0  1      2  3      4  5        6
  Shapes shapes;
  const Shape shape = shapes("(f32[2], (s32[], (bf16[8,4])), token[])");
  CHECK(shape.node_count() == 7);
  CHECK(shape.tuple_size() == 3);
  CHECK(shape.bytes() == Bytes(24));
  CHECK(shape.array_bytes() == Bytes(8 + 4 + 64));
  CHECK(shape.element_node(0) == 1);
  CHECK(shape.element_node(1) == 2);
  CHECK(shape.element_node(2) == 6);
  CHECK(to_string(shape.element(1)) == "(s32[], (bf16[8,4]))");
  CHECK(to_string(shape.at(5)) == "bf16[8,4]");
  CHECK_FALSE(shape.is_flat_tuple());
  const char* const paths[] = {"{}", "{0}", "{1}", "{1,0}", "{1,1}", "{1,1,0}", "{2}"};
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    CHECK(path_to_string(shape, node) == paths[node]);
  CHECK(shape.element(1).path(3) == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("elements of a flat tuple") {
  Shapes shapes;
  const Shape flat = shapes("(f32[2], s32[], pred[8])");
  CHECK(flat.is_flat_tuple());
  CHECK(flat.element_node(2) == 3);
  CHECK(shapes("()").is_flat_tuple());
  CHECK(shapes("()").node_count() == 1);
  CHECK_FALSE(shapes("f32[2]").is_flat_tuple());
}

TEST_CASE("when shapes are the same") {
  struct Row {
    std::string a;
    std::string b;
    bool same, compatible, same_nesting;
  };
  const Row rows[] = {
      {"f32[2,3]{1,0}", "f32[2,3]{1,0}", true, true, true},
      {"f32[2,3]{1,0}", "f32[ 2, 3]{1, 0}", true, true, true},
      {"f32[2,3]{1,0}", "f32[2,3]{0,1}", false, true, true},
      {"f32[2,3]{1,0}", "f32[2,3]{1,0:S(5)}", false, true, true},
      {"s4[2,3]{1,0}", "s4[2,3]{1,0:E(4)}", false, true, true},
      {"f32[2,3]{1,0}", "f32[3,2]{1,0}", false, false, true},
      {"f32[2,3]{1,0}", "s32[2,3]{1,0}", false, false, true},
      {"f32[1]", "f32[]", false, false, true},
      {"(f32[2], s32[])", "(f32[2], s32[])", true, true, true},
      {"(f32[2], s32[])", "(f32[2], /*index=1*/s32[])", true, true, true},
      {"(f32[2], s32[])", "(f32[2], s32[1])", false, false, true},
      {"(f32[2], s32[])", "(f32[2])", false, false, false},
      {"(f32[2], (s32[]))", "((f32[2]), s32[])", false, false, false},
      {"(f32[2])", "f32[2]", false, false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.a);
    CAPTURE(row.b);
    Shapes shapes;
    const Shape a = shapes(row.a);
    const Shape b = shapes(row.b);
    CHECK(same_shape(a, b) == row.same);
    CHECK(compatible(a, b) == row.compatible);
    CHECK(same_nesting(a, b) == row.same_nesting);
    CHECK(same_shape(b, a) == row.same);
    CHECK(compatible(b, a) == row.compatible);
  }
}

TEST_CASE("equal text is one shape") {
  Shapes shapes;
  CHECK(shapes("f32[2]{0}") == shapes("f32[2]{0}"));
  CHECK_FALSE(shapes("f32[2]{0}") == shapes("f32[2]"));
}

TEST_CASE("shapes as text") {
  Shapes shapes;
  for (const char* text : {"f32[]", "bf16[2,8192]", "()", "(f32[], (), (s32[1], (token[])))"})
    CHECK(to_string(shapes(text)) == text);
  std::string many = "(f32[]";
  for (int i = 1; i < 10000; ++i) many += ", f32[]";
  CHECK(to_string(shapes(many + ")")).ends_with("f32[], f32[], …)"));
}

}  // namespace
}  // namespace spillway

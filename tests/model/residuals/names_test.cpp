// The names sidecar: what is read, what is refused, and which stacks a name may be.
#include "model/residuals/names.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

/// A sidecar of these entries.
std::string sidecar(const std::string& entries) {
  return R"({"schema": "spillway.names/1", "names": [)" + entries + "]}";
}

TEST_CASE("a sidecar is read in the order of the program") {
  const testing::TemporaryFolder folder;
  const Result<NameList> list = read_names(folder.write("names.json", R"({
  "schema": "spillway.names/1", "note": "what is unknown is left alone", "devices": 8,
  "names": [
    {"name": "query", "shape": [16, 64, 4, 8], "dtype": "bfloat16", "source": "m/a.py:12", "layers": 3},
    {"name": "key", "shape": [], "dtype": "f8e4m3fn"}
  ]
})"));
  REQUIRE(list.ok());
  CHECK(list->devices == 8);
  REQUIRE(list->names.size() == 2);
  const CheckpointName& query = list->names[0];
  CHECK(query.name == "query");
  CHECK(query.shape == std::vector<std::int64_t>{16, 64, 4, 8});
  CHECK(query.type == ElementType::kBF16);
  CHECK(query.source == "m/a.py:12");
  CHECK(query.layers == 3);
  const CheckpointName& key = list->names[1];
  CHECK(key.name == "key");
  CHECK(key.shape.empty());
  CHECK(key.type == ElementType::kF8E4M3FN);
  CHECK(key.source == "");
  CHECK(key.layers == 1);
}

TEST_CASE("types are JAX's long names or HLO's short ones") {
  const testing::TemporaryFolder folder;
  const std::pair<const char*, ElementType> rows[] = {{"bfloat16", ElementType::kBF16},
                                                      {"float16", ElementType::kF16},
                                                      {"float32", ElementType::kF32},
                                                      {"float64", ElementType::kF64},
                                                      {"int8", ElementType::kS8},
                                                      {"int32", ElementType::kS32},
                                                      {"uint32", ElementType::kU32},
                                                      {"bool", ElementType::kPred},
                                                      {"float8_e4m3fn", ElementType::kF8E4M3FN},
                                                      {"float8_e5m2", ElementType::kF8E5M2},
                                                      {"bf16", ElementType::kBF16},
                                                      {"s4", ElementType::kS4}};
  for (const auto& [text, type] : rows) {
    CAPTURE(text);
    const Result<NameList> list = read_names(folder.write(
        "names.json",
        sidecar(std::string(R"({"name": "x", "shape": [1], "dtype": ")") + text + "\"}")));
    REQUIRE(list.ok());
    CHECK(list->devices == 1);
    CHECK(list->names[0].type == type);
  }
}

TEST_CASE("what cannot be read is refused, with the place and what would be right") {
  const testing::TemporaryFolder folder;
  const std::string good = R"({"name": "x", "shape": [1], "dtype": "f32"})";
  struct Row {
    std::string text, error;
  };
  const std::string not_json =
      "1: error: is not JSON\n  the names sidecar is written by spillway.jax.names";
  const std::string no_list =
      " error: has no list 'names'\n  the names sidecar has schema "
      "spillway.names/1";
  const auto entry = [](const std::string& what) { return " error: entry 0 " + what; };
  const std::string devices = " error: has damaged 'devices'\n  a whole number from 1 on";
  const Row rows[] = {
      {"", " error: is empty"},
      {"names", not_json},
      {"{\"names\": [\n  {\"name\": \"x\",\n   'shape': []}\n]}",
       "3: error: is not JSON\n  the names sidecar is written by spillway.jax.names"},
      {"{\"names\": [", not_json},
      {"{\"names\": \"\xff\"}", not_json},
      {R"({"schema": "spillway.names/1", "names": [], "devices": 1e999})",
       " error: holds a number that is out of range"},
      {"[]", no_list},
      {R"({"schema": "spillway.names/1"})", no_list},
      {R"({"schema": "spillway.names/1", "names": {}})", no_list},
      {R"({"names": []})", " error: is not of schema spillway.names/1"},
      {R"({"schema": 1, "names": []})", " error: is not of schema spillway.names/1"},
      {R"({"schema": "spillway.names/2", "names": []})",
       " error: is not of schema spillway.names/1"},
      {R"({"schema": "spillway.names/1", "names": [], "devices": "8"})", devices},
      {R"({"schema": "spillway.names/1", "names": [], "devices": 0})", devices},
      {R"({"schema": "spillway.names/1", "names": [], "devices": 1.5})", devices},
      {R"({"schema": "spillway.names/1", "names": [], "jaxlib": 12})",
       " error: has damaged 'jaxlib'\n  a version as text, \"0.12.0.1\""},
      {sidecar("7"), entry("is not an object")},
      {sidecar("{}"), entry("has no name")},
      {sidecar(R"({"name": 7})"), entry("has no name")},
      {sidecar(good + R"(, {"name": "y"})"), " error: entry 1 'y' has no shape"},
      {sidecar(R"({"name": "x", "shape": 4})"), entry("'x' has no shape")},
      {sidecar(R"({"name": "x", "shape": ["4"]})"), entry("'x' has a damaged shape")},
      {sidecar(R"({"name": "x", "shape": [2.0]})"), entry("'x' has a damaged shape")},
      {sidecar(R"({"name": "x", "shape": [-1]})"), entry("'x' has a damaged shape")},
      {sidecar(R"({"name": "x", "shape": [18446744073709551615]})"),
       entry("'x' has a damaged shape")},
      {sidecar(R"({"name": "x", "shape": []})"), entry("'x' has no known dtype")},
      {sidecar(R"({"name": "x", "shape": [], "dtype": 32})"), entry("'x' has no known dtype")},
      {sidecar(R"({"name": "x", "shape": [], "dtype": "float31"})"),
       entry("'x' has no known dtype")},
      {sidecar(R"({"name": "x", "shape": [], "dtype": "f32", "layers": 0})"),
       entry("'x' has damaged layers")},
      {sidecar(R"({"name": "x", "shape": [], "dtype": "f32", "layers": "4"})"),
       entry("'x' has damaged layers")}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string path = folder.write("names.json", row.text);
    const Result<NameList> list = read_names(path);
    REQUIRE_FALSE(list.ok());
    CHECK(list.error().kind == ErrorKind::kInput);
    CHECK(to_text(list.error()) == path + ":" + row.error);
  }
  CHECK_FALSE(read_names(folder.path("absent.json")).ok());
}

TEST_CASE("a name may be a stack whose slices are shards of it") {
  struct Row {
    const char* what;
    std::vector<std::int64_t> global, slice;
    std::int64_t name_layers, layers;
    bool as_is, transposed;
  };
  const Row rows[] = {
      {"the same on every device", {8, 64}, {1, 8, 64}, 4, 4, true, true},
      {"a slice without the layer's 1", {8, 64}, {8, 64}, 4, 4, true, true},
      {"one dimension over all devices", {8, 64}, {1, 1, 64}, 4, 4, true, true},
      {"two dimensions, 2 times 4", {8, 64}, {1, 4, 16}, 4, 4, true, true},
      {"more shares than devices", {8, 64}, {1, 1, 32}, 4, 4, false, false},
      {"shares that do not divide the devices", {9, 64}, {1, 3, 64}, 4, 4, false, false},
      {"no whole share", {8, 64}, {1, 3, 64}, 4, 4, false, false},
      {"another order of the dimensions", {8, 64}, {1, 64, 8}, 4, 4, false, true},
      {"another order, and shares", {8, 64}, {1, 64, 1}, 4, 4, false, true},
      {"a 1 of its own stays", {1, 64}, {1, 1, 64}, 4, 4, true, true},
      {"too few dimensions", {8, 8, 64}, {8, 64}, 4, 4, false, false},
      {"too many dimensions", {64}, {1, 8, 8}, 4, 4, false, false},
      {"an empty array", {0}, {1, 0}, 4, 4, false, false},
      {"a part of nested scans", {8, 64}, {1, 8, 64}, 12, 4, true, true},
      {"more layers than the name has", {8, 64}, {1, 8, 64}, 4, 12, false, false},
      {"no layers", {8, 64}, {1, 8, 64}, 4, 0, false, false},
      {"more orders than are tried",
       {1, 2, 3, 4, 5, 6, 7},
       {7, 6, 5, 4, 3, 2, 1},
       4,
       4,
       false,
       false}};
  ShapePool shapes;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    ShapeData data;
    data.nodes.push_back({.type = ElementType::kF32,
                          .bits = 32,
                          .rank = static_cast<std::uint32_t>(row.slice.size())});
    data.dims = row.slice;
    data.minor_to_major.resize(row.slice.size());
    const Shape slice = shapes.add(std::move(data));
    CheckpointName name{"x", row.global, ElementType::kF32, "", row.name_layers};
    CHECK(may_be_shard(name, slice, row.layers, 8) == row.as_is);
    CHECK(may_be_transposed_shard(name, slice, row.layers, 8) == row.transposed);
    name.type = ElementType::kBF16;
    CHECK_FALSE(may_be_shard(name, slice, row.layers, 8));
    CHECK_FALSE(may_be_transposed_shard(name, slice, row.layers, 8));
  }
}

}  // namespace
}  // namespace spillway

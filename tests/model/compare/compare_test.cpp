#include "model/compare/compare.h"

#include <doctest/doctest.h>

#include <string>

namespace spillway {
namespace {

std::string text(const std::vector<Item>& items) {
  std::string out;
  for (const Item& item : items)
    out += (out.empty() ? "" : " ") + std::to_string(item.count) + "x" + item.name;
  return out;
}

TEST_CASE("what both have is taken away, the most alike first") {
  struct Row {
    const char* what;
    std::vector<Item> first, second;
    const char *only_first, *only_second;
  };
  const Bytes b(4);
  const Row rows[] = {
      {"nothing", {}, {}, "", ""},
      {"the same", {{"a", "f32[1]", "x", b}}, {{"a", "f32[1]", "x", b}}, "", ""},
      {"renumbered", {{"add.1{2}", "f32[1]", "", b}}, {{"add.7", "f32[1]", "", b}}, "", ""},
      {"another shape", {{"a", "f32[1]", "x", b}}, {{"a", "f32[2]", "x", b}}, "1xa", "1xa"},
      {"one more of a shape",
       {{"a", "f32[1]", "x", b}},
       {{"b", "f32[1]", "y", b}, {"c", "f32[1]", "x", b}},
       "",
       "1xb"},
      {"the number is remembered over other names, then the origin",
       {{"add.1", "f32[1]", "", b}},
       {{"mul.1", "f32[1]", "", b}, {"add.2", "f32[1]", "", b}},
       "",
       "1xmul.1"},
      {"copies that run more often",
       {{"c", "f32[1]", "x", b, 3}},
       {{"c", "f32[1]", "x", b, 5}},
       "",
       "2xc"},
      {"several make up for one",
       {{"c", "f32[1]", "x", b, 5}},
       {{"d", "f32[1]", "x", b, 2}, {"e", "f32[1]", "y", b, 2}},
       "1xc",
       ""},
      {"alike ones are put together, the largest sum first",
       {},
       {{"a", "f32[9]", "x", Bytes(36)},
        {"b", "f32[5]", "x", Bytes(20)},
        {"c", "f32[5]", "x", Bytes(20)}},
       "",
       "2xb 1xa"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const Excess excess = find_excess(row.first, row.second);
    CHECK(text(excess.first) == row.only_first);
    CHECK(text(excess.second) == row.only_second);
    const Excess turned = find_excess(row.second, row.first);
    CHECK(text(turned.first) == row.only_second);
    CHECK(text(turned.second) == row.only_first);
  }
}

Residual residual(const char* name, std::int64_t layers, Placement placement) {
  Residual r;
  if (*name != '\0') r.names = {name};
  r.layers = layers;
  r.placement = placement;
  return r;
}

ResidualTable table(const std::vector<Residual>& residuals) {
  ResidualTable t;
  for (const Residual& r : residuals) t.residuals.push(r);
  return t;
}

std::string text(const std::vector<ResidualChange>& changes) {
  std::string out;
  const auto place = [](const std::optional<Placement>& p) {
    return p ? std::string(name_of(*p)) : std::string("-");
  };
  for (const ResidualChange& c : changes)
    out += c.label + ":" + place(c.first) + ">" + place(c.second) + " ";
  return out;
}

TEST_CASE("residuals are paired by name, or by shape in order") {
  using enum Placement;
  const ResidualTable kept = table({residual("q", 4, kDevice), residual("k", 4, kDevice)});
  CHECK(text(compare_residuals(kept, kept)).empty());
  CHECK(text(compare_residuals(
            kept, table({residual("k", 4, kDevice), residual("q", 4, kPinnedHost)}))) ==
        "q:device>pinned_host ");
  CHECK(text(compare_residuals(kept, table({residual("k", 4, kDevice)}))) == "q:device>- ");
  CHECK(text(compare_residuals(kept, table({residual("q", 4, kDevice), residual("k", 4, kDevice),
                                            residual("v", 4, kPinnedHost)}))) ==
        "v:->pinned_host ");
}

}  // namespace
}  // namespace spillway

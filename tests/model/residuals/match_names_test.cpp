// Which name a residual gets: shapes first, then places, then order. One device, four layers; a
// residual is written down by its size and what else is known of it.
#include "model/residuals/match_names.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

struct Found {
  std::int64_t size = 8;
  bool is_layer_input = false;
  std::string source = "";
  std::uint32_t loop = 0;
  Placement placement = Placement::kDevice;
};
struct Named {
  const char* name;
  std::int64_t size = 8;
  std::string source = "";
};

class Matched {
 public:
  Matched(const std::vector<Found>& residuals, const std::vector<Named>& names) {
    for (const Found& found : residuals) {
      ShapeData data;
      data.nodes.push_back({.type = ElementType::kF32, .bits = 32, .rank = 2});
      data.dims = {1, found.size};
      data.minor_to_major = {1, 0};
      Residual residual;
      residual.slice = shapes_.add(std::move(data));
      residual.layers = 4;
      residual.is_layer_input = found.is_layer_input;
      residual.source = found.source;
      residual.placement = found.placement;
      residual.forward_loop.instruction = InstructionIndex(found.loop);
      table_.residuals.push(std::move(residual));
    }
    NameList list;
    for (const Named& named : names)
      list.names.push_back({named.name, {named.size}, ElementType::kF32, named.source, 4});
    match_names(list, 1, table_);
  }

  /// "q (shape), none, k=k2 (order); left: v"
  std::string text() const {
    std::string text;
    for (const Residual& residual : table_.residuals) {
      if (!text.empty()) text += ", ";
      for (std::size_t k = 0; k < residual.names.size(); ++k)
        text += (k > 0 ? "=" : "") + residual.names[k];
      text += (residual.names.empty() ? "" : " (") + std::string(name_of(residual.evidence)) +
              (residual.names.empty() ? "" : ")");
    }
    for (std::size_t k = 0; k < table_.unmatched_names.size(); ++k)
      text += (k == 0 ? "; left: " : " ") + table_.unmatched_names[k];
    return text;
  }

 private:
  ShapePool shapes_;
  ResidualTable table_;
};

TEST_CASE("names find residuals by shape, place and order") {
  struct Row {
    const char* what;
    std::vector<Found> residuals;
    std::vector<Named> names;
    const char* expected;
  };
  const Row rows[] = {
      {"no names", {{}, {}}, {}, "none, none"},
      {"no residuals", {}, {{"q"}, {"k"}}, "; left: q k"},
      {"each shape once",
       {{8}, {16}},
       {{"wide", 16}, {"narrow", 8}},
       "narrow (shape), wide (shape)"},
      {"a shape that no name has", {{8}, {32}}, {{"q", 8}, {"v", 16}}, "q (shape), none; left: v"},
      {"as many names as residuals", {{}, {}}, {{"q"}, {"k"}}, "q (order), k (order)"},
      {"more names than residuals", {{}}, {{"q"}, {"k"}}, "q (guess); left: k"},
      {"more residuals than names", {{}, {}}, {{"q"}}, "q (guess), none"},
      {"the layer's input is the first name",
       {{}, {8, true}},
       {{"input"}, {"q"}},
       "q (shape), input (layer input)"},
      {"a layer's input that has a shape of its own",
       {{16}, {8, true}},
       {{"input"}, {"q", 16}},
       "q (shape), input (shape)"},
      {"a source a few lines in front of the name",
       {{8, false, "/site/m/layer.py:100"}},
       {{"early", 8, "m/layer.py:90"}, {"q", 8, "m/layer.py:103"}, {"k", 8, "m/layer.py:120"}},
       "q (source); left: early k"},
      {"the name 40 lines behind is near enough",
       {{8, false, "layer.py:100"}},
       {{"other", 8, "layer.py:10"}, {"q", 8, "layer.py:140"}},
       "q (source); left: other"},
      {"the name 41 lines behind is not",
       {{8, false, "layer.py:100"}},
       {{"other", 8, "layer.py:10"}, {"q", 8, "layer.py:141"}},
       "other (guess); left: q"},
      {"a file whose name only ends alike is another",
       {{8, false, "my_layer.py:100"}},
       {{"other", 8, "layer.py:10"}, {"q", 8, "layer.py:101"}},
       "other (guess); left: q"},
      {"what sources leave open is paired in order between them",
       {{}, {8, false, "layer.py:50"}, {}},
       {{"a"}, {"b"}, {"c", 8, "layer.py:51"}, {"d"}},
       "a (guess), c (source), d (guess); left: b"},
      {"order holds: a later residual has a later name",
       {{8, false, "layer.py:50"}, {8, false, "layer.py:50"}},
       {{"a", 8, "layer.py:51"}, {"b", 8, "layer.py:52"}, {"c"}},
       "a (source), b (source); left: c"},
      {"two names on one value go together",
       {{}, {16}},
       {{"moe_q", 8, "layer.py:5"}, {"q", 8, "layer.py:5"}, {"wide", 16}},
       "moe_q=q (shape), wide (shape)"},
      {"one line, but names that are not alike",
       {{}, {}},
       {{"q", 8, "layer.py:5"}, {"k", 8, "layer.py:5"}},
       "q (order), k (order)"},
      {"every loop has the names",
       {{8, false, "", 0}, {8, false, "", 0}, {8, false, "", 1}, {8, false, "", 1}},
       {{"q"}, {"k"}},
       "q (order), k (order), q (order), k (order)"},
      {"one kept and one offloaded: the loop may carry either first",
       {{8, false, "layer.py:5"}, {8, false, "layer.py:5", 0, Placement::kPinnedHost}},
       {{"q", 8, "layer.py:6"}, {"k", 8, "layer.py:6"}},
       "q (guess), k (guess)"},
      {"one kept and one offloaded, each with a line of its own",
       {{8, false, "layer.py:60"}, {8, false, "layer.py:50", 0, Placement::kPinnedHost}},
       {{"q", 8, "layer.py:51"}, {"k", 8, "layer.py:61"}},
       "k (source), q (source)"},
      {"one kept and one offloaded, and a line for one of them",
       {{8, false, "layer.py:60"}, {8, false, "", 0, Placement::kPinnedHost}},
       {{"q", 8, "layer.py:51"}, {"k", 8, "layer.py:61"}},
       "q (guess), k (guess)"},
      {"a name given twice is left once", {}, {{"q"}, {"q"}}, "; left: q"}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(Matched(row.residuals, row.names).text() == row.expected);
  }
}

}  // namespace
}  // namespace spillway

#include "validation/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/hardware/strict_map.h"
#include "model/spec/config_keys.h"

namespace spillway {
namespace {

constexpr std::string_view kSchema = "spillway.published/1";

/// A value as it stands in the file: "[gelu]" for a list.
std::string value_text(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kSequence) return node.scalar;
  std::string text;
  for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + item.scalar;
  return "[" + text + "]";
}

class Reader {
 public:
  explicit Reader(const YamlDocument& document) : document_(document), problems_(document) {}

  Result<PublishedResults> read() {
    StrictMap map(document_.root, {}, "", problems_);
    const auto schema = map.require_scalar("schema", "schema: spillway.published/1");
    if (schema && schema->node->scalar != kSchema)
      problems_.add(schema->node->at,
                    fmt::format("the schema {} is not known", quoted(schema->node->scalar)),
                    fmt::format("this version reads {}", kSchema));
    if (const auto rows = map.require("rows", "rows: []"))
      for (const YamlNode& node : rows->node->items) read_row(node);
    if (const auto excluded = map.find("excluded"))
      for (const YamlNode& node : excluded->node->items) read_excluded(node);
    map.finish();
    if (const auto problem = problems_.first()) return *problem;
    return std::move(results_);
  }

 private:
  std::string text(StrictMap& map, std::string_view key) {
    const auto value = map.require_scalar(key, fmt::format("{}: …", key));
    return value ? value->node->scalar : "";
  }
  std::string text_or_nothing(StrictMap& map, std::string_view key) {
    const auto value = map.find(key);
    return value ? value->node->scalar : "";
  }

  Settings settings(const YamlNode& node, TextPosition at, std::string_view name) {
    if (node.kind != YamlNode::Kind::kMapping)
      problems_.add(at, fmt::format("'{}' must be a mapping", name), "{setting: value}");
    Settings result;
    for (const YamlNode::Entry& entry : node.entries) {
      if (!result.emplace(entry.key, value_text(entry.value)).second)
        problems_.add(entry.key_at, fmt::format("'{}' is given twice", entry.key));
    }
    return result;
  }

  void read_tier(StrictMap& map, PublishedRow& row) {
    const auto value = map.require_scalar("tier", "tier: exact");
    if (!value) return;
    const auto found = std::ranges::find(kTiers, value->node->scalar,
                                         [](Tier tier) { return std::string(name_of(tier)); });
    if (found == std::end(kTiers))
      problems_.add(value->node->at,
                    fmt::format("the tier {} is not known", quoted(value->node->scalar)),
                    "exact, sign, fit, memory, ratio or absolute");
    else
      row.tier = *found;
  }

  void read_published_value(StrictMap& map, PublishedRow& row) {
    const auto value = map.require_scalar("published", "published: 15.5");
    if (!value) return;
    row.published = value->node->scalar;
    const bool is_word = row.tier == Tier::kSign || row.tier == Tier::kFit;
    if (!is_word && !parse_number(row.published))
      problems_.add(value->node->at, fmt::format("{} is no number", quoted(row.published)));
    constexpr std::string_view kWords[] = {"gains", "loses", "neutral", "fits", "out of memory"};
    if (is_word && std::ranges::find(kWords, row.published) == std::end(kWords))
      problems_.add(value->node->at, fmt::format("{} is no outcome", quoted(row.published)),
                    "gains, loses or neutral; fits or out of memory");
    const auto tolerance = map.find("tolerance");
    if (!tolerance) return;
    if (const auto parsed = parse_tolerance(tolerance->node->scalar))
      row.tolerance = *parsed;
    else
      problems_.add(tolerance->node->at,
                    fmt::format("{} is no tolerance", quoted(tolerance->node->scalar)),
                    "15 %, or a number in the unit of the row");
  }

  void read_open(const YamlNode& node, PublishedRow& row) {
    StrictMap map(node, node.at, "open", problems_);
    OpenInput open{text(map, "what"), {}};
    if (const auto values = map.require("values", "values: [{…}, {…}]"))
      for (const YamlNode& value : values->node->items)
        open.values.push_back(settings(value, value.at, "values"));
    if (open.values.empty())
      problems_.add(node.at, fmt::format("nothing is tried for {}", quoted(open.what)));
    map.finish();
    row.open.push_back(std::move(open));
  }

  void read_row(const YamlNode& node) {
    StrictMap map(node, node.at, "rows", problems_);
    PublishedRow row;
    row.id = text(map, "id");
    if (!ids_.insert(row.id).second)
      problems_.add(node.at, fmt::format("the row {} is there twice", quoted(row.id)));
    row.source = text(map, "source");
    row.claim = text(map, "claim");
    row.measure = text(map, "measure");
    read_tier(map, row);
    if (const auto step = map.require("step", "step: {model_name: llama3.1-8b}"))
      row.step = settings(*step->node, step->key_at, "step");
    if (const auto against = map.find("against"))
      row.against = settings(*against->node, against->key_at, "against");
    if (const auto open = map.find("open"))
      for (const YamlNode& item : open->node->items) read_open(item, row);
    read_published_value(map, row);
    row.unit = text_or_nothing(map, "unit");
    row.series = text_or_nothing(map, "series");
    row.calibrates = text_or_nothing(map, "calibrates") == "true";
    row.note = text_or_nothing(map, "note");
    map.finish();
    results_.rows.push_back(std::move(row));
  }

  void read_excluded(const YamlNode& node) {
    StrictMap map(node, node.at, "excluded", problems_);
    results_.excluded.push_back({text(map, "rows"), text(map, "why")});
    map.finish();
  }

  const YamlDocument& document_;
  YamlProblems problems_;
  PublishedResults results_;
  std::set<std::string> ids_;
};

}  // namespace

std::string_view name_of(Tier tier) {
  constexpr std::string_view kNames[] = {"exact", "sign", "fit", "memory", "ratio", "absolute"};
  return kNames[static_cast<std::size_t>(tier)];
}

Settings merged(Settings under, const Settings& over) {
  for (const auto& [key, value] : over) under[key] = value;
  return under;
}

std::optional<Tolerance> parse_tolerance(std::string_view text) {
  const bool is_relative = text.ends_with("%");
  if (is_relative) text.remove_suffix(1);
  while (text.ends_with(" ")) text.remove_suffix(1);
  const auto number = parse_number(text);
  if (!number || *number < 0) return std::nullopt;
  return Tolerance{is_relative ? *number / 100 : *number, is_relative};
}

std::vector<Settings> combinations(const std::vector<OpenInput>& open) {
  std::vector<Settings> all{{}};
  for (const OpenInput& input : open) {
    std::vector<Settings> next;
    for (const Settings& before : all)
      for (const Settings& value : input.values) next.push_back(merged(before, value));
    all = std::move(next);
  }
  return all;
}

Result<PublishedResults> parse_published(const std::string& text, const std::string& path) {
  const Result<YamlDocument> document = parse_yaml(text, path);
  if (!document.ok()) return document.error();
  return Reader(*document).read();
}

Result<PublishedResults> read_published(const std::string& path) {
  const Result<YamlDocument> document = read_yaml(path);
  if (!document.ok()) return document.error();
  return Reader(*document).read();
}

}  // namespace spillway
